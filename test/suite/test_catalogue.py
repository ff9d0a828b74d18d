# SPDX-License-Identifier: BSD-3-Clause
"""Checks and requirements map onto each other completely, and ids keep their form."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from torch_conformance.authoring import check as authoring_check
from torch_conformance.authoring.check import Body, Check, Registry, check
from torch_conformance.authoring.discovery import (
    chapter_files,
    chapter_of,
    import_checks,
    topic_files,
)
from torch_conformance.running import capability_probes, probes
from torch_conformance.spec import capabilities, catalogue, catalogue_rules
from torch_conformance.spec.catalogue import Requirement, Source
from torch_conformance.spec.chapters import ChapterError, chapters
from torch_conformance.spec.ids import BREADTHS, FULL, ID, PR, STANDARD


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    """Every check of the suite, all dtypes included."""
    files = [*chapter_files(None), *topic_files()]
    return [check for file in files for check in import_checks(file)]


@pytest.fixture(scope="module")
def requirements() -> dict[str, catalogue.Requirement]:
    """Every requirement."""
    return catalogue.load()


def test_every_check_names_requirements_that_exist(
    checks: list[Check], requirements: dict[str, catalogue.Requirement]
) -> None:
    unknown = {id for check in checks for id in check.requirements} - set(requirements)
    assert not unknown


def test_every_requirement_has_a_check(
    checks: list[Check], requirements: dict[str, catalogue.Requirement]
) -> None:
    unchecked = set(requirements) - {id for check in checks for id in check.requirements}
    assert not unchecked


def test_every_requirement_has_a_check_in_the_default_selection(
    checks: list[Check], requirements: dict[str, catalogue.Requirement]
) -> None:
    """Otherwise no ordinary run could reach the level of the requirement."""
    width = BREADTHS.index(STANDARD)
    selected = [check for check in checks if BREADTHS.index(check.breadth) <= width]
    assert set(requirements) - {id for check in selected for id in check.requirements} == set()


def test_ids_are_unique_and_well_formed(checks: list[Check]) -> None:
    ids = [check.id for check in checks]
    assert len(ids) == len(set(ids))
    assert [id for id in ids if not ID.fullmatch(id)] == []


def test_a_check_belongs_to_the_surface_of_its_file(checks: list[Check]) -> None:
    for entry in checks:
        assert entry.surface == chapter_of(Path(entry.file))
        assert entry.surface in chapters()


def test_a_chapter_is_a_file_or_package_of_checks_and_a_file_of_requirements() -> None:
    files = [*chapter_files(None), *topic_files()]
    assert set(chapters()) == {chapter_of(file) for file in files}
    orders = [chapter.order for chapter in chapters().values()]
    assert orders == sorted(set(orders)), "two chapters have one place"


def test_the_time_budgets_of_all_chapters_are_less_than_four_minutes() -> None:
    assert sum(chapter.budget_s for chapter in chapters().values()) < 240


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (
            "surface: other\ntitle: t\nsummary: s\norder: 1\nbudget_s: 1\nupstream: []",
            "needs `surface: mine`",
        ),
        ("surface: mine\ntitle: t\nsummary: s\norder: 1\nupstream: []", "`budget_s`"),
        ("surface: mine\ntitle: t\nsummary: s\norder: 1\nbudget_s: 0\nupstream: []", "budget_s"),
        ("surface: mine\ntitle: t\nsummary: s\nupstream: []", "`order`"),
        ("surface: mine\ntitle: t\nsummary: s\norder: 1\nupstream: x", "`$.upstream`"),
        ("surface: [", "mine.yaml"),
    ],
)
def test_a_head_that_breaks_the_rules_is_an_error_that_names_the_file(
    tmp_path: Path, head: str, words: str
) -> None:
    (tmp_path / "mine.yaml").write_text(f"{head}\nrequirements: {{}}\n")
    with pytest.raises(ChapterError, match=re.escape(words)):
        chapters(tmp_path)


def test_one_dtype_of_each_operator_stands_for_it_in_the_gate(checks: list[Check]) -> None:
    breadths: dict[str, list[str]] = {}
    for entry in checks:
        if entry.surface == "opinfo" and "compile" not in entry.needs:  # those take too long
            topic_and_operator = ":".join(entry.id.split(":")[:2])
            breadths.setdefault(topic_and_operator, []).append(entry.breadth)
    assert {found.count(PR) for found in breadths.values()} == {1}
    assert {breadth for found in breadths.values() for breadth in found} == {PR, STANDARD, FULL}


def test_forward_results_are_verified_in_every_dtype_by_default(checks: list[Check]) -> None:
    forward = [entry for entry in checks if entry.id.startswith("opinfo/forward:")]
    assert len(forward) > 6000
    assert FULL not in {entry.breadth for entry in forward}


def test_there_are_at_least_250_checks_outside_opinfo(checks: list[Check]) -> None:
    assert sum(check.surface != "opinfo" for check in checks) >= 250


def test_every_check_says_what_it_verifies(checks: list[Check]) -> None:
    assert [check.id for check in checks if not check.title] == []


def test_requirements_need_capabilities_that_exist(
    requirements: dict[str, catalogue.Requirement],
) -> None:
    needed = {need for r in requirements.values() for need in r.needs}
    assert needed <= set(capabilities.MEANING)


def test_every_probe_is_of_a_capability() -> None:
    assert set(capability_probes.PROBES) <= set(capabilities.MEANING)
    assert {probes.check_of(name).id for name in capability_probes.PROBES} == {
        f"probe/{name}" for name in capability_probes.PROBES
    }


def test_requirements_are_one_clause_with_a_source(requirements: dict[str, Requirement]) -> None:
    assert list(catalogue_rules.problems(requirements.values())) == []


def test_names_in_links_exist(requirements: dict[str, Requirement]) -> None:
    """An anchor such as #torch.Stream.query is a name of this torch."""
    anchors = {entry.source.url.partition("#")[2] for entry in requirements.values()}
    names = {anchor for anchor in anchors if anchor.startswith("torch.")}
    assert len(names) > 100
    assert {name for name in names if not exists(name)} == set()


def exists(name: str) -> bool:
    """Whether torch has something of this dotted name."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def test_lines_in_links_exist(requirements: dict[str, Requirement]) -> None:
    """Verified where this torch is of the tag that a link names, in the files that it has."""
    verified = 0
    for entry in requirements.values():
        link = CODE_LINK.fullmatch(entry.source.url)
        if link is None or link["tag"] != torch.__version__.partition("+")[0]:
            continue
        places = (root / link["path"].removeprefix("aten/src/") for root in ROOTS)
        file = next((place for place in places if place.is_file()), None)
        assert file is not None, f"{entry.id}: torch {link['tag']} has no {link['path']}"
        lines = len(file.read_text(encoding="utf-8").splitlines())
        assert int(link["last"]) <= lines, f"{entry.id}: {file} has {lines} lines"
        verified += 1
    assert verified > 100 or not torch.__version__.startswith("2.13.0")


CODE_LINK = re.compile(
    r"https://github\.com/pytorch/pytorch/blob/v(?P<tag>[0-9.]+)/(?P<path>[^#]+)"
    r"#L[0-9]+-L(?P<last>[0-9]+)"
)
ROOTS = (Path(torch.__file__).parents[1], Path(torch.__file__).parent / "include")

GOOD: dict[str, Any] = {
    "tier": "core",
    "statement": "Work of one stream MUST run in the order in which it was queued.",
    "reason": "Every operator relies on it.",
    "source": {"kind": "documented", "url": "https://docs.pytorch.org/docs/stable/a.html#b"},
}


def bad_entries() -> Iterator[tuple[dict[str, object], str]]:
    """Keys of a requirement that the loader refuses, and words of the message."""
    yield {"statement": "Work runs in order."}, "it has none"
    yield {"statement": "Work must run in order."}, "it has none"
    yield {"statement": "Work MUST run and MUST NOT stop."}, "it has MUST, MUST NOT"
    yield {"level": "must"}, "unknown key 'level'"
    yield {"source": None}, "'source' is missing"
    yield {"source": "https://example.org/#a"}, "source is a map"
    yield {"source": {"kind": "hearsay", "url": "https://example.org/#a"}}, "the kind of a source"
    yield {"source": {"kind": "code", "url": "example.org"}}, "begins with https://"
    yield {"tier": "none"}, "tier is one of"


@pytest.mark.parametrize(("keys", "words"), list(bad_entries()))
def test_a_mistake_in_a_requirement_is_refused(
    keys: dict[str, object], words: str, tmp_path: Path
) -> None:
    content = {"surface": "stream", "requirements": {"STREAM-001": {**GOOD, **keys}}}
    (tmp_path / "stream.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(catalogue.CatalogueError, match=r"stream\.yaml: STREAM-001: ") as error:
        catalogue.load([tmp_path])
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("keyword", "level"),
    [
        ("MUST", "must"),
        ("MUST NOT", "must"),
        ("SHOULD", "should"),
        ("SHOULD NOT", "should"),
        ("MAY", "may"),
    ],
)
def test_the_keyword_is_the_level(keyword: str, level: str, tmp_path: Path) -> None:
    entry = {**GOOD, "statement": f"Work {keyword} run in order."}
    content = {"surface": "stream", "requirements": {"STREAM-001": entry}}
    (tmp_path / "stream.yaml").write_text(yaml.safe_dump(content))
    assert catalogue.load([tmp_path])["STREAM-001"].level == level


def bad_wordings() -> Iterator[tuple[dict[str, str], str]]:
    """Changes to a good requirement, and words of the problem."""
    yield {"statement": "Work MUST run; it is not lost."}, "one clause"
    yield {"statement": "Work MUST run, and it is not lost."}, "one clause"
    yield {"statement": "Work MUST run in order, which must hold."}, "2 keywords"
    yield {"statement": "Work must run."}, "not in capitals"
    yield {"statement": "Work MUST run. It is not lost."}, "statement is not one sentence"
    yield {"statement": "Work MUST run"}, "statement is not one sentence"
    yield {"reason": ""}, "reason is not one sentence"
    yield {"reason": "It is so. It was so."}, "reason is not one sentence"
    yield {"kind": "cuda-practice"}, "documented or code"
    yield {"url": "https://docs.pytorch.org/docs/stable/a.html"}, "no anchor"
    yield {"kind": "code"}, "names no lines"
    yield {"kind": "issue"}, "is not an issue"
    yield {"url": "https://docs.pytorch.org/docs/stable/notes/cuda.html#b"}, "is about CUDA"
    yield {"url": "https://example.org/a.html#b"}, "not PyTorch's own documentation"


@pytest.mark.parametrize(("change", "words"), list(bad_wordings()))
def test_a_badly_worded_requirement_is_found(change: dict[str, str], words: str) -> None:
    said = {**GOOD, **GOOD["source"], **change}
    bad = Requirement(
        id="STREAM-001",
        surface="stream",
        level="must",
        tier="core",
        statement=said["statement"],
        reason=said["reason"],
        source=Source(said["kind"], said["url"]),
    )
    found = list(catalogue_rules.problems([bad]))
    assert any(words in problem for problem in found)


def bad_registrations() -> Iterator[tuple[str, dict[str, object], str]]:
    """Arguments that @check refuses, and words of the message."""
    yield "copy/a", {"requirements": "copy-1"}, "not a requirement id"
    yield "copy/a", {"requirements": "COPY-001", "needs": ("wings",)}, "unknown capability"
    yield "Copy/a", {"requirements": "COPY-001"}, "is not surface/topic"
    yield "copy/a", {"requirements": "COPY-001", "cases": ("b-c",)}, "must take (dev, case)"
    yield "copy/a", {"requirements": ()}, "not a requirement id"


@pytest.mark.parametrize(("id", "arguments", "words"), list(bad_registrations()))
def test_the_decorator_refuses_mistakes(id: str, arguments: dict[str, object], words: str) -> None:
    def body(dev: object) -> None:
        """Does nothing."""

    with pytest.raises(ValueError, match=r"test_catalogue\.py") as error:
        check(id, **arguments)(body)  # type: ignore[arg-type]  # mistakes
    assert words in str(error.value)
    assert inspect.getsourcefile(body) in str(error.value)  # type: ignore[operator]  # there is a file


# Not by assert, which pytest rewrites here.
def compares_equal(dev: Any, case: str) -> None:
    if case == "a":
        dev()


def compares_the_other_way_round(dev: Any, case: str) -> None:
    dev(1 if "a" != case else 2)  # noqa: SIM300 - that is what it is about


def compares_with_several(dev: Any, case: str) -> None:
    while dev() and case not in {"a", "b"}:
        dev()


def looks_for_a_part(dev: Any, case: str) -> None:
    dev(pinned="pinned" in case)


def matches_alternatives(dev: Any, case: str) -> None:
    match case:
        case "a" | "b":
            dev()


def compares_in_a_comprehension(dev: Any, case: str) -> None:
    dev([value for value in range(3) if case == "a"])


def compares_in_a_lambda_of_a_function(dev: Any, case: str) -> None:
    def work() -> None:
        dev(lambda: case == "a")

    work()


def compares_in_a_call(dev: Any, case: str) -> None:
    seen = dev.seen
    dev(seen, case in ("a", "b"), case)


@pytest.mark.parametrize(
    "body",
    [
        compares_equal,
        compares_the_other_way_round,
        compares_with_several,
        looks_for_a_part,
        matches_alternatives,
        compares_in_a_comprehension,
        compares_in_a_lambda_of_a_function,
        compares_in_a_call,
    ],
)
def test_a_check_that_compares_its_case_is_refused(body: Body) -> None:
    message = rf"test_catalogue\.py:{body.__code__.co_firstlineno}: copy/a .* use a table or sep"
    with pytest.raises(ValueError, match=message):
        check("copy/a", "COPY-001", cases=("a", "b"))(body)


def takes_from_a_table(dev: Any, case: str) -> None:
    kind = {"a": "x", "b": "y"}[case]
    if kind == "x" or {"a": 1}.get(case, 0) == 1:
        dev()


def compares_with_a_variable(dev: Any, case: str) -> None:
    if case in STANDARD or case == dev:
        dev()


def compares_something_else(dev: Any, case: str) -> None:
    def work(value: str) -> bool:
        return value == "a"

    if work(case) or dev.case == "a" or dev(case, "a") == "case":
        dev(case, work("a"))


@pytest.mark.parametrize(
    "body", [takes_from_a_table, compares_with_a_variable, compares_something_else]
)
def test_a_check_may_do_anything_else_with_its_case(
    body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authoring_check, "REGISTRY", Registry())
    check("copy/a", "COPY-001", cases=("a", "b"))(body)
    assert [entry.id for entry in authoring_check.REGISTRY] == [
        "copy/a:a",
        "copy/a:b",
    ]
