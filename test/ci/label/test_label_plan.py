# SPDX-License-Identifier: BSD-3-Clause
"""`label plan`: which labels a PR gets and why, from honest and from hostile input."""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from schemas_of import valid

from torch_backend_ci import changed_files
from torch_backend_ci.changed_files import ChangedFile
from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError
from torch_backend_ci.label import cli, rules
from torch_backend_ci.label.plan import Clean, Found, NotCovered, PlannedLabel, Touched, plan
from torch_backend_ci.surface.model import Domain, Finding, Severity, Torch
from torch_backend_ci.surface.report import json as findings_json
from torch_backend_ci.surface.report.report import Report

RULES = rules.load()
FUZZ_CASES = int(os.environ.get("PUONE_FUZZ_CASES", "60"))  # `make fuzz` takes more
NUMBERS = itertools.count()


def a_finding(severity: str, surface: str = "allocator", name: str = "") -> Finding:
    return Finding(
        rule="some_rule",
        severity=Severity(severity),
        surface=surface,
        domain=Domain.CPP,
        name=name or f"c10::x{next(NUMBERS)}",
        message=f"something on {surface} has changed",
        before=None,
        after=None,
        concerns=("callers",),
    )


def planned(
    names: Iterable[str | ChangedFile], findings: Sequence[Finding] | None = None
) -> dict[str, PlannedLabel]:
    changed = [ChangedFile(name) if isinstance(name, str) else name for name in names]
    return {label.name: label for label in plan(changed, findings, RULES)}


# From files.


def test_a_changed_file_gives_its_surface_and_the_glob_as_reason() -> None:
    label = planned(["README.md", "aten/src/ATen/native/CPUFallback.cpp"])["surface: fallback"]
    path = "aten/src/ATen/native/CPUFallback.cpp"
    assert label.reasons == (Touched(path, path, "aten/src/ATen/native/CPUFallback.{h,cpp}"),)


def test_one_file_may_touch_several_surfaces() -> None:
    labels = planned(["torch/csrc/Generator.cpp"])
    assert set(labels) == {"surface: generator", "surface: python-binding"}


def test_no_file_of_a_surface_gives_no_label() -> None:
    assert planned(["README.md", "torch/nn/functional.py"]) == {}
    assert planned([]) == {}


def test_a_renamed_file_touches_the_surfaces_of_both_names() -> None:
    moved = ChangedFile("c10/core/impl/COW.h", previous="c10/core/Allocator.h")
    labels = planned([moved])
    assert set(labels) == {"surface: allocator", "surface: storage"}
    (reason,) = labels["surface: allocator"].reasons
    assert isinstance(reason, Touched)
    assert (reason.file, reason.path) == ("c10/core/impl/COW.h", "c10/core/Allocator.h")


def test_every_file_is_one_reason_however_many_globs_match() -> None:
    moved = ChangedFile("c10/core/Allocator.h", previous="c10/core/CPUAllocator.h")
    labels = planned([moved, "c10/core/Allocator.h", "c10/core/Allocator.cpp"])
    reasons = labels["surface: allocator"].reasons
    assert [r.file for r in reasons if isinstance(r, Touched)] == [
        "c10/core/Allocator.cpp",
        "c10/core/Allocator.h",
        "c10/core/Allocator.h",
    ]


def test_the_reference_backend_is_recognised_here_and_in_pytorch() -> None:
    for path in ("csrc/hal/hal.h", "test/cpp_extensions/open_registration_extension/README.md"):
        assert set(planned([path])) == {"reference-backend: touched"}


# From findings.


def test_without_findings_no_impact_is_claimed() -> None:
    assert set(planned(["c10/core/Allocator.h"])) == {"surface: allocator"}
    assert planned([], None) == {}


@pytest.mark.parametrize(
    ("severities", "impact"),
    [
        (["compile_break"], "compile-break"),
        (["silent_break"], "silent-break"),
        (["semantic"], "silent-break"),
        (["rebuild"], "rebuild"),
        (["new_capability"], "new-capability"),
        (["deprecated"], "none"),
        (["cosmetic"], "none"),
        ([], "none"),
        (["cosmetic", "new_capability", "compile_break", "rebuild"], "compile-break"),
        (["rebuild", "semantic"], "silent-break"),
        (["deprecated", "new_capability"], "new-capability"),
    ],
)
def test_there_is_one_impact_and_it_is_the_worst(severities: list[str], impact: str) -> None:
    labels = planned([], [a_finding(severity) for severity in severities])
    assert [name for name in labels if name.startswith("impact")] == [f"impact: {impact}"]


def test_the_reasons_of_an_impact_are_all_findings_of_it_and_no_other() -> None:
    findings = [a_finding("rebuild"), a_finding("semantic"), a_finding("silent_break")]
    reasons = planned([], findings)["impact: silent-break"].reasons
    assert [r.severity.value for r in reasons if isinstance(r, Found)] == [
        "silent_break",
        "semantic",
    ]


def test_no_impact_says_how_many_findings_were_looked_at() -> None:
    findings = [a_finding("cosmetic"), a_finding("deprecated")]
    assert planned([], findings)["impact: none"].reasons == (Clean(2),)


def test_a_file_that_is_not_covered_takes_the_place_of_no_impact_only() -> None:
    def impact(*severities: str) -> list[str]:
        findings = [a_finding(severity) for severity in severities]
        labels = plan([ChangedFile("x.h")], findings, RULES, ["x.h"])
        return [label.name for label in labels if label.name.startswith("impact")]

    assert impact() == impact("cosmetic") == impact("deprecated") == ["impact: not covered"]
    assert impact("rebuild") == ["impact: rebuild"]
    (label,) = plan([], [], RULES, ["b.h", "a.h"])
    assert label.reasons == (NotCovered("a.h"), NotCovered("b.h"))
    assert "a.h is not covered" in cli.as_text([label])


def test_a_finding_gives_its_surface_too_unless_it_is_cosmetic() -> None:
    findings = [a_finding("deprecated", "guard"), a_finding("cosmetic", "hooks")]
    labels = planned(["c10/core/DeviceGuard.h"], findings)
    assert set(labels) == {"surface: guard", "impact: none"}
    assert [type(r) for r in labels["surface: guard"].reasons] == [Touched, Found]


def test_a_finding_of_a_surface_without_label_is_refused() -> None:
    with pytest.raises(CiError, match="surface nowhere"):
        planned([], [a_finding("rebuild", "nowhere")])


def test_the_same_finding_twice_is_one_reason() -> None:
    twice = [a_finding("rebuild", name="c10::x"), a_finding("rebuild", name="c10::x")]
    assert len(planned([], twice)["impact: rebuild"].reasons) == 1


def test_the_order_of_the_input_does_not_matter_and_that_of_labels_is_the_file_s() -> None:
    random_ = random.Random(1)
    names = ["torch/library.h", "c10/core/Allocator.h", "csrc/a", "c10/core/StorageImpl.h"]
    findings = [a_finding(s, "storage") for s in ("rebuild", "compile_break", "compile_break")]
    plans = set()
    for _ in range(20):
        random_.shuffle(names)
        random_.shuffle(findings)
        plans.add(cli.as_json(plan(map(ChangedFile, names), findings, RULES)))
    (only,) = plans
    found = [label["name"] for label in json.loads(only)["labels"]]
    assert found == [label.name for label in RULES.labels if label.name in found]
    assert len(found) == 5


def test_3500_files_are_planned_in_seconds() -> None:
    names = [f"torch/nn/modules/{'x' * (i % 200)}/{i}.py" for i in range(3499)]
    started = time.process_time()
    labels = planned([*names, "torch/library.h"], [])
    assert time.process_time() - started < 10
    assert set(labels) == {"surface: dispatcher", "impact: none"}


# Lists of files.


def read(data: bytes | str | list[object]) -> list[ChangedFile]:
    if isinstance(data, list):
        data = json.dumps(data)
    return list(changed_files.parse(data.encode() if isinstance(data, str) else data))


def names_of(data: bytes | str | list[object]) -> list[str]:
    return [file.name for file in read(data)]


@pytest.mark.parametrize(
    "data",
    [
        "a\nb/c\n",
        "a\nb/c",
        "a\r\nb/c\r\n",
        "\n\na\n\nb/c\n\n",
        "./a\n./b/c\n",
        "a\nb/c\na\n./a\n",
        "\ufeffa\nb/c\n",
        "a\0b/c\0",
        '["a", "b/c"]',
        ' \n[["a"],\n["./b/c"]]',
        '[{"filename": "a"}, {"filename": "b/c", "status": "added", "patch": "@@", "more": 1}]',
    ],
)
def test_every_form_of_list_says_the_same(data: str) -> None:
    assert read(data) == [ChangedFile("a"), ChangedFile("b/c")]


@pytest.mark.parametrize("data", ["", "\n\n", "[]", "[[], []]", "\ufeff", "\0"])
def test_no_file_is_a_list_too(data: str) -> None:
    assert read(data) == []


def test_githubs_renamed_file_has_both_names_and_its_copied_one_has_not() -> None:
    entry = {"filename": "new", "previous_filename": "old"}
    assert read([{**entry, "status": "renamed"}]) == [ChangedFile("new", "old")]
    assert read([entry]) == [ChangedFile("new", "old")]
    assert read([{**entry, "status": "copied"}]) == [ChangedFile("new")]
    assert read([{**entry, "previous_filename": None}]) == [ChangedFile("new")]


@pytest.mark.parametrize(
    "name",
    ["a b", " a ", "\t", "a\u202eb", "😀", "a\\b", "*?[]{}", "#x", "!x", "-", "~", "...", ".g"],
)
def test_odd_names_are_names(name: str) -> None:
    assert names_of(f"x\n{name}\n") == ["x", name]
    assert names_of(["x", name]) == ["x", name]


@pytest.mark.parametrize("name", ["a\nb", '"a"', "[a", "\r", "a\rb\r"])
def test_names_that_no_line_can_hold_are_taken_with_nul_and_from_json(name: str) -> None:
    assert names_of(f"x\0{name}\0") == ["x", name]
    assert names_of(["x", name]) == ["x", name]


def test_a_name_that_is_no_utf_8_matches_like_any_other() -> None:
    (file,) = read(b"csrc/\xff\xfe.h\n")
    (label,) = plan([file], None, RULES)
    assert label.name == "reference-backend: touched"
    assert "csrc/\\udcff\\udcfe.h matches" in cli.as_text([label])
    assert json.loads(cli.as_json([label]))["labels"][0]["reasons"][0]["file"] == file.name


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("/etc/passwd", "'/etc/passwd' is not the path"),
        ("a/../b", "is not the path"),
        ("..", "is not the path"),
        (".", "is not the path"),
        ("./", "is not the path"),
        ("a/", "is not the path"),
        ("a//b", "is not the path"),
        ("././a", "is not the path"),
        ('["a\\u0000b"]', "is not the path"),
        ('[""]', "is not the path"),
        ('[{"filename": "/a"}]', "is not the path"),
        ('[{"filename": "a", "previous_filename": "/b"}]', "is not the path"),
        ("x" * 5000, "of 5000 characters"),
        ('"a\\303\\244"', "ask it with -z"),
        ("[a].tsx", "begins like JSON"),
        ('["a"', "begins like JSON"),
        ("[" * 100_000, "begins like JSON"),
        ("[" + "1" * 10_000 + "]", "begins like JSON"),
        ('{"message": "Not Found"}', "must be a list"),
        ("[1]", "neither a name nor an object"),
        ("[null]", "neither a name nor an object"),
        ("[[[]]]", "neither a name nor an object"),
        ("[{}]", "neither a name nor an object"),
        ('[{"filename": 3}]', "neither a name nor an object"),
        ('[{"filename": "a", "previous_filename": 3}]', "previous_filename must be text"),
        (b"\xff\xfea\0\n\0", "is UTF-16"),
        (b'["\xff"]', "begins like JSON"),
    ],
)
def test_what_is_no_list_of_files_is_refused(data: str | bytes, why: str) -> None:
    with pytest.raises(CiError, match=why):
        read(data)


@pytest.mark.fuzz
def test_hostile_lists_are_read_or_refused() -> None:
    random_ = random.Random(2)
    words = [
        b"a",
        b"/",
        b".",
        b"\n",
        b"\0",
        b'"',
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b"\xff",
        b"\r",
    ]
    words += [b'"filename"', b"\xef\xbb\xbf", b"\xff\xfe", b"null", b"1e999", b"\\u0000", b" "]
    outcomes = set()
    for _ in range(50 * FUZZ_CASES):
        data = b"".join(random_.choices(words, k=random_.randint(0, 12)))
        try:
            cli.as_text(plan(changed_files.parse(data), None, RULES))
            outcomes.add("read")
        except CiError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


# The command.


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    status = main(["label", "plan", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def findings(tmp_path: Path) -> Path:
    found = (a_finding("compile_break", name="c10::Allocator::copy_data"), a_finding("rebuild"))
    torch = Torch("2.13.0", None)
    file = tmp_path / "findings.json"
    file.write_text(findings_json.render(Report(torch, torch, found)))
    return file


def test_the_plan_is_printed_for_people(
    tmp_path: Path, findings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tmp_path / "files.json"
    moved = {"filename": "c10/core/impl/COW.h", "previous_filename": "c10/core/impl/alloc_cpu.h"}
    changed.write_text(json.dumps([moved, {"filename": "c10/util/UniqueVoidPtr.h"}]))
    status, out, err = run(capsys, "--files", changed, "--findings", findings)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "impact: compile-break",
        "    compile_break some_rule: something on allocator has changed",
        "surface: allocator",
        "    c10/core/impl/alloc_cpu.h (now c10/core/impl/COW.h) matches "
        "c10/core/impl/alloc_cpu.{h,cpp}",
        "    c10/util/UniqueVoidPtr.h matches c10/util/UniqueVoidPtr.{h,cpp}",
        "    compile_break some_rule: something on allocator has changed",
        "    rebuild some_rule: something on allocator has changed",
        "surface: storage",
        "    c10/core/impl/COW.h matches c10/core/impl/{COW,COWDeleter}.{h,cpp}",
    ]


def test_the_plan_for_programs_is_as_its_schema_says(
    findings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, b"torch/library.h\n")
    status, out, _ = run(capsys, "--files", "-", "--findings", findings, "--format", "json")
    assert status == 0
    document = json.loads(out)
    valid(document, "plan")
    kinds = {reason["kind"] for label in document["labels"] for reason in label["reasons"]}
    assert kinds == {"path", "finding"}
    clean = json.loads(cli.as_json(plan([], [], RULES)))
    valid(clean, "plan")
    assert clean["labels"][0]["reasons"] == [{"kind": "clean", "findings": 0}]


def test_names_from_a_pr_cannot_steer_the_terminal_or_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, b"csrc/\x1b[2J\n::set-output name=x::y\0csrc/\xe2\x80\xae\0")
    status, out, _ = run(capsys, "--files", "-")
    assert status == 0
    assert out.splitlines() == [
        "reference-backend: touched",
        r"    csrc/\x1b[2J\n::set-output name=x::y matches csrc/**",
        r"    csrc/\u202e matches csrc/**",
    ]


def test_of_many_reasons_the_first_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, "".join(f"csrc/{i:02}\n" for i in range(30)).encode())
    status, out, _ = run(capsys, "--files", "-")
    assert status == 0
    assert len(out.splitlines()) == 12
    assert out.splitlines()[-1] == "    ... and 20 more (--format json has all)"


def test_no_label_is_said_in_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, b"README.md\n")
    assert run(capsys, "--files", "-") == (0, "no label\n", "")


def test_a_list_as_long_as_githubs_longest_is_doubted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, json.dumps([{"filename": f"a/{i}"} for i in range(3000)]).encode())
    status, out, err = run(capsys, "--files", "-")
    assert (status, out) == (0, "no label\n")
    assert "there may be more" in err


def test_an_impact_judged_on_less_than_everything_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = Torch("2.13.0", None)
    file = tmp_path / "findings.json"
    file.write_text(findings_json.render(Report(torch, torch, (), (Domain.OPERATOR,))))
    status, out, err = run(capsys, "--files", "/dev/null", "--findings", file)
    assert status == 0
    assert out.startswith("impact: none\n")
    assert "not compared: operator" in err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "expected `object`"),
        ('{"schema_version": 1, "findings": []}', "required key 'before' is missing"),
        ('{"schema_version": 2}', "schema version 2"),
    ],
)
def test_findings_that_are_none_end_the_command_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    file = tmp_path / "findings.json"
    file.write_text(text)
    status, out, err = run(capsys, "--files", "/dev/null", "--findings", file)
    assert (status, out) == (2, "")
    assert why in err


def test_a_missing_file_and_a_folder_end_the_command_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, why in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        status, out, err = run(capsys, "--files", wrong)
        assert (status, out) == (2, "")
        assert f"{wrong}: {why}" in err


def test_more_than_any_list_of_files_is_refused_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "large"
    with file.open("wb") as stream:
        stream.truncate(300 << 20)
    status, out, err = run(capsys, "--files", file)
    assert (status, out) == (2, "")
    assert "more than 256 MiB" in err


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_the_page_shows_what_the_command_prints(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (root / "docs" / "surface" / "labels.md").read_text()
    transcript = page.partition("```console\n$ torch-backend-ci ")[2].partition("```")[0]
    command, _, shown = transcript.partition("\n")
    monkeypatch.chdir(root)
    assert main(command.split()) == 0
    assert capsys.readouterr().out == shown
