# SPDX-License-Identifier: BSD-3-Clause
"""Whatever a report or a bundle holds, every verb ends in its own words, never in a wrong green."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import msgspec
import pytest
import synthetic
from fuzzing import VALUES, damaged, fuzzed
from hypothesis import assume, given
from hypothesis import strategies as st
from synthetic import needs, record

from torch_conformance.cli import main
from torch_conformance.judging import verification
from torch_conformance.results import bundle, levels, reader, report, writing
from torch_conformance.results.junit import junit
from torch_conformance.selecting import selection
from torch_conformance.spec.outcome import Outcome

pytestmark = pytest.mark.fuzz

BAD = {"fail", "error", "crash", "timeout", "device_lost", "xpass"}
EXECUTED = BAD | {"pass", "xfail", "flaky"}
DESCRIPTOR = b"device_type: mychip\ncapabilities: {streams: true}\n"
EXPECTATIONS = (
    b"xfail: [{id: 'copy/*', reason: lost, link: 'https://a.b', status: fail, "
    b"expires: 2027-01-31}]\n"
)


def small(*records: dict[str, Any]) -> dict[str, Any]:
    """A report with little but what the records need, so that damage meets what matters."""
    made = synthetic.content(list(records))
    named = {id for entry in records for id in entry["requirements"]}
    made["requirements"] = {id: made["requirements"][id] for id in sorted(named)}
    made["run"] |= {
        "capabilities": {"streams": {"value": True, "source": "declared"}},
        "descriptor": {"file": "c.yaml", "sha256": hashlib.sha256(DESCRIPTOR).hexdigest()},
        "expectations": {"file": "e.yaml", "sha256": hashlib.sha256(EXPECTATIONS).hexdigest()},
    }
    return made


WAIVED = record(
    "COPY-001",
    "xfail",
    reason={"kind": "excused", "list": "xfail", "entry": "copy/*", "text": "lost"}
    | {"link": "https://a.b"},
)
EXCUSED = record("EVENT-001", "unsupported", reason=needs("events"))
GREEN = small(record("STREAM-001"), record("STREAM-002", samples=3), WAIVED, EXCUSED)
RED = small(record("STREAM-001"), record("STREAM-002", "fail"), WAIVED, EXCUSED)
OTHERS = {
    bundle.DESCRIPTOR: DESCRIPTOR,
    bundle.EXPECTATIONS: EXPECTATIONS,
    bundle.LOG: b"done\n",
}


def packed(content: dict[str, Any]) -> bytes:
    return bundle.pack(synthetic.document(content), synthetic.encode(content), OTHERS)


def ended(*arguments: str | Path) -> int:
    """The exit code of a verb, which has to be one of its own."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        code = main([str(argument) for argument in arguments])
    assert code in (0, 1, 4)
    assert (out if code == 0 else err if code == 4 else out).getvalue().strip()
    return code


def honestly_green(data: bytes) -> bool:
    """What a report has to say to be green, found out without the code under test."""
    content = json.loads(data)
    checks = content["checks"]
    ids = [check["id"] for check in checks]
    outcomes = [check["outcome"] for check in checks]
    return (
        content["complete"] is True
        and len(set(ids)) == len(ids) == content["run"]["selection"]["checks"]
        and not BAD & set(outcomes)
        and "not_run" not in outcomes
        and bool(EXECUTED & set(outcomes))
        and all(is_excused(c) for c in checks if c["outcome"] in ("flaky", "xfail"))
        and {o: n for o, n in content["totals"].items() if n}
        == {o: outcomes.count(o) for o in set(outcomes)}
    )


def is_excused(check: dict[str, Any]) -> bool:
    """Whether an entry of the expectations decided."""
    return bool(check.get("reason", {}).get("kind") == "excused")


def examine(folder: Path, data: bytes) -> None:
    """Every verb that takes a report."""
    file, good = folder / "a.json", synthetic.write(folder / "good.json", GREEN)
    log = folder / "run.log"
    file.write_bytes(data)
    log.write_bytes(b"done")
    codes = [
        ended("report", file),
        ended("level", file),
        ended("badge", file),
        ended("compare", good, file, *ANYTHING),
        ended("compare", file, good, *ANYTHING),
        ended("merge", file, "-o", folder / "m.json"),
        ended("submit", file, "--log", log, "--without-list", "-o", folder / "b.zip"),
    ]
    accepted = codes[0] != 4
    assert accepted or all(code == 4 for code in codes)
    if codes[0] == 0 or codes[3] == 0 or codes[5] == 0:
        assert honestly_green(data)
    assert codes[1] != 0, "two checks are no level"


ANYTHING = [
    w for n in ("backend", "suite", "options", "selection", "seed") for w in ("--across", n)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@st.composite
def edited(draw: st.DrawFn, content: Any) -> Any:
    """A document with a few of its values gone, doubled, exchanged or replaced by anything."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        places = [*_places(content)]
        if not places:
            break
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        kind = draw(st.sampled_from(["replace", "replace", "delete", "copy", "word"]))
        if kind == "delete":
            del holder[key]
        elif kind == "copy":
            other, its = places[draw(st.integers(0, len(places) - 1))]
            holder[key] = copy.deepcopy(other[its])
        elif kind == "word":
            holder[key] = draw(st.sampled_from(WORDS))
        else:
            holder[key] = draw(VALUES)
    if draw(st.booleans()):
        _mend(content)
    return content


def _mend(content: Any) -> None:
    """Make sums and digests fit, so that what was edited has to be found out by itself."""
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
        content["totals"] = synthetic.totals(content["checks"])
        if content["run"]["options"]["shard"] is None:
            content["run"]["selection"] = synthetic.select(content["checks"])


WORDS = ["pass", "fail", "xfail", "not_run", "1/2", "2/2", "must", "copy/*", True, False, None, 0]


def _places(value: Any) -> Any:
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, item in pairs:
        yield value, key
        yield from _places(item)


@fuzzed
@given(data=damaged(synthetic.encode(RED).decode()) | damaged(synthetic.encode(GREEN).decode()))
def test_a_damaged_report_is_refused_or_judged_as_it_stands(folder: Path, data: bytes) -> None:
    examine(folder, data)


@fuzzed
@given(content=edited(RED) | edited(GREEN))
def test_an_edited_report_is_refused_or_judged_as_it_stands(folder: Path, content: Any) -> None:
    examine(folder, json.dumps(content, default=str).encode())


@fuzzed
@given(data=VALUES.map(lambda value: json.dumps(value, default=str).encode()) | st.binary())
def test_what_is_no_report_is_refused(folder: Path, data: bytes) -> None:
    (folder / "a.json").write_bytes(data)
    assert ended("report", folder / "a.json") == 4


@fuzzed
@given(content=edited(RED))
def test_a_red_report_whose_outcomes_stay_is_never_green(content: Any) -> None:
    assume(isinstance(content, dict))
    content["checks"], content["complete"] = RED["checks"], True
    try:
        document = reader.parse(json.dumps(content, default=str).encode(), "a.json")
    except reader.ReportError:
        return
    assert document.state == "red"


SHARDS = synthetic.shards(small(*(record("COPY-001", number=n) for n in range(5)), EXCUSED), 2)


@fuzzed
@given(
    contents=st.lists(st.sampled_from(SHARDS) | edited(SHARDS[0]) | edited(SHARDS[1]), max_size=4)
)
def test_what_is_merged_has_every_check_once(folder: Path, contents: list[Any]) -> None:
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"{number}.json")
        files[-1].write_text(json.dumps(content, default=str))
    output = folder / "merged.json"
    output.unlink(missing_ok=True)
    try:
        code = ended("merge", *files, "-o", output)
    except SystemExit as wrong_usage:
        assert not files and wrong_usage.code == 4
        return
    assert output.exists() == (code != 4)
    if code == 0:
        made = json.loads(output.read_text())
        ids = [check["id"] for check in made["checks"]]
        assert selection.digest(ids) == made["run"]["selection"]["digest"]
        assert len(ids) == len(set(ids))
        assert honestly_green(output.read_bytes())


@fuzzed
@given(data=st.data())
def test_a_damaged_bundle_is_refused_or_means_the_same(folder: Path, data: st.DataObject) -> None:
    honest = packed(GREEN)
    changed = bytearray(honest)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        cut = data.draw(st.integers(0, 9))
        changed[place : place + cut] = data.draw(st.binary(max_size=6))
    (folder / "a.zip").write_bytes(changed)
    if ended("verify", folder / "a.zip", "--without-list") == 0:
        assert bundle.unpack(bytes(changed)) == bundle.unpack(honest)


@fuzzed
@given(data=st.data())
def test_a_bundle_with_a_damaged_member_is_refused(folder: Path, data: st.DataObject) -> None:
    members = bundle.unpack(packed(GREEN))
    name = data.draw(st.sampled_from(sorted(members)))
    members[name] = data.draw(damaged(members[name].decode()))
    assume(members != bundle.unpack(packed(GREEN)))
    (folder / "a.zip").write_bytes(bundle.archive(members))
    code = ended("verify", folder / "a.zip", "--without-list")
    # A manifest may be laid out in another way; every fact in it is compared.
    assert code == 1 or name == bundle.MANIFEST


@fuzzed
@given(content=edited(GREEN), log=st.binary(max_size=9))
def test_a_bundle_made_anew_of_an_edited_report_needs_its_excuses(content: Any, log: bytes) -> None:
    data = json.dumps(content, default=str).encode()
    try:
        document = reader.parse(data, "a.json")
    except reader.ReportError:
        return
    members = bundle.unpack(bundle.pack(document, data, OTHERS | {bundle.LOG: log}))
    if verification.findings(members, None)[1]:
        return
    assert document.shard is None and document.complete
    for check in document.checks:
        waived = check.id.startswith("copy/")
        assert waived == (check.excused is not None) or check.outcome not in ("pass", "xfail")


REQUIREMENTS = synthetic.requirements()
CHANGES = st.tuples(
    st.sampled_from(sorted(REQUIREMENTS)),
    st.sampled_from([outcome.value for outcome in Outcome]),
    st.sampled_from(["because", needs("sparse"), needs("streams")]),
    st.booleans(),
)


@fuzzed
@given(
    changes=st.lists(CHANGES, max_size=4),
    absent=st.sets(st.sampled_from(["sparse", "streams", "peer_copy", "accelerator"]), max_size=2),
)
def test_no_level_is_claimed_that_its_requirements_do_not_bear(
    changes: list[tuple[str, str, Any, bool]], absent: set[str]
) -> None:
    records = []
    for number, (id, outcome, reason, waived) in enumerate(changes):
        more: dict[str, Any] = {}
        if outcome == "unsupported":
            listed = {"list": "unsupported", "entry": "*"}
            more = {"excused": listed} if waived else {"reason": reason}
        records.append(record(id, outcome, number, **more))
    content = synthetic.replaced(*records)
    for name in absent:
        content["run"]["capabilities"][name]["value"] = False
    verdict = levels.assess(synthetic.document(content).report)
    order = [level.name for level in levels.every()]
    reached = levels.every()[: order.index(verdict.name) + 1] if verdict.name else ()
    assert not reached or content["complete"]
    for level in reached:
        assert not absent & set(level.capabilities)
        mine = [id for id, r in REQUIREMENTS.items() if r.tier in level.tiers and r.level == "must"]
        for id in mine:
            outcomes = [c["outcome"] for c in content["checks"] if c["requirements"] == [id]]
            excuses = [c for c in content["checks"] if c["requirements"] == [id] and "reason" in c]
            assert not {*BAD, "xfail", "flaky", "not_run"} & set(outcomes)
            assert not any(map(is_excused, excuses))
            assert "pass" in outcomes or all(
                excuse["outcome"] == "blocked_upstream"
                or absent & set(excuse["reason"].get("names", ()))
                for excuse in excuses
            )


TEXTS = st.text(st.characters(), max_size=40)  # Halves of characters and control characters, too.


@fuzzed
@given(texts=st.lists(TEXTS, min_size=6, max_size=6), outcome=st.sampled_from(sorted(BAD)))
def test_whatever_a_backend_says_is_written_read_and_shown(
    folder: Path, texts: list[str], outcome: str
) -> None:
    message, repro, reason, name, driver, fallback = texts
    records = [
        record("COPY-001", outcome, message=message, repro=repro, fallbacks=[fallback]),
        record("EVENT-001", "unsupported", reason=reason),
    ]
    run = small(*records)["run"] | {"backend": name, "driver": {driver: driver}, "devices": [name]}
    requirements = small(*records)["requirements"]
    written = writing.Recording(
        folder / "said.json",
        msgspec.convert(run, report.Run),
        msgspec.convert(requirements, dict[str, report.Demand]),
    )
    for entry in records:
        written.add(synthetic.typed(entry))
    written.write(complete=True)
    suites = ElementTree.parse(written.write_junit()).getroot()
    assert {suite.get("timestamp") for suite in suites} == {written.run.started}
    cases = list(suites.iter("testcase"))
    assert len(cases) == 2
    assert sum(len(case) for case in cases) == 2
    assert ended("report", written.file) == 1
    assert ended("compare", written.file, written.file) == 0


@fuzzed
@given(content=edited(RED))
def test_the_junit_of_any_valid_report_counts_what_the_report_counts(content: Any) -> None:
    try:
        document = reader.parse(json.dumps(content, default=str).encode(), "a.json")
    except reader.ReportError:
        return
    root = ElementTree.fromstring(
        junit(document.run.backend, document.run.started, document.checks)
    )
    assert len(list(root.iter("testcase"))) == len(document.checks)
    wrong = [*root.iter("failure"), *root.iter("error")]
    assert len(wrong) == sum(check.outcome in BAD for check in document.checks) + sum(
        check.outcome == "flaky" and check.excused is None for check in document.checks
    )
