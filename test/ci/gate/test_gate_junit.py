# SPDX-License-Identifier: BSD-3-Clause
"""JUnit of a foreign runner is judged like a report, and believed no more than its totals allow."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from gating import LANE, Gate, content, records
from synthetic import record, typed

from torch_backend_ci.errors import Exit
from torch_backend_ci.gate import foreign
from torch_backend_ci.gate.verdict import Class
from torch_conformance.results.junit import junit
from torch_conformance.spec.outcome import Outcome


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def case(name: str, inside: str = "", time: str = "0.1", group: str = "test.a") -> str:
    return f'<testcase classname="{group}" name="{name}" time="{time}">{inside}</testcase>'


def suite(*cases: str, **counts: object) -> str:
    said = "".join(f' {key}="{value}"' for key, value in counts.items())
    return f'<testsuites><testsuite name="s"{said}>{"".join(cases)}</testsuite></testsuites>'


def hand_in(gate: Gate, after: str | bytes, before: str | None = None) -> None:
    for folder, written in ((gate.candidate, after), (gate.baseline, before)):
        if written is not None:
            data = written if isinstance(written, bytes) else written.encode()
            (folder / f"{LANE}.xml").write_bytes(data)


STARTED = "2027-01-31T12:00:00+00:00"
FAILURE = '<failure message="3 of 5 differ" type="AssertionError">trace</failure>'
ENDS = {
    "": Outcome.PASS,
    FAILURE: Outcome.FAIL,
    '<error message="no device"/>': Outcome.ERROR,
    '<skipped message="no GPU"/>': Outcome.UNSUPPORTED,
    '<skipped type="pytest.xfail" message="known"/>': Outcome.XFAIL,
    "<flakyFailure>once</flakyFailure>": Outcome.FLAKY,
    FAILURE + '<error message="and at the end, too"/>': Outcome.ERROR,
    "<system-out>said</system-out>": Outcome.PASS,
}


@pytest.mark.parametrize("inside", ENDS)
def test_every_end_of_a_test_case_is_an_outcome(inside: str) -> None:
    (found,) = foreign.parse(suite(case("f", inside)).encode(), "x").checks
    assert (found.id, found.outcome) == ("test.a::f", ENDS[inside])


def test_junit_is_compared_with_junit(gate: Gate) -> None:
    before = suite(case("a"), case("b", FAILURE), case("c"))
    hand_in(gate, suite(case("a", FAILURE), case("b"), case("c"), tests=3, failures=1), before)
    status, made = gate.run()
    assert status == Exit.FINDINGS
    assert [(c.id, c.kind) for c in made.checks] == [
        ("test.a::a", Class.NEW_FAILURE),
        ("test.a::b", Class.FIXED),
    ]
    assert made.checks[0].message == "3 of 5 differ"


def test_several_files_of_a_lane_are_one_run(gate: Gate) -> None:
    folder = gate.candidate / LANE
    folder.mkdir()
    (folder / "1.xml").write_text(suite(case("a")))
    (folder / "2.xml").write_text(suite(case("b")))
    status, made = gate.run()
    assert (status, made.lanes[0].counts) == (Exit.OK, {"pass": 2})
    (folder / "2.xml").write_text(suite(case("a")))
    assert "test.a::a is there 2 times" in gate.refused()


def test_a_test_that_is_gone_is_missing(gate: Gate) -> None:
    hand_in(gate, suite(case("a")), suite(case("a"), case("b")))
    assert (gate.judged().kind, gate.run()[0]) == (Class.MISSING, Exit.UNUSABLE)


def test_the_suites_own_junit_keeps_ids_and_outcomes() -> None:
    made = records(
        record("COPY-001", "crash"),
        record("DEV-001", "xfail"),
        record("MEM-001", "unsupported"),
        record("STREAM-001", "flaky"),
        record("STREAM-002", "blocked_upstream"),
        record("STREAM-003", "xpass"),
    )
    found = foreign.parse(junit("mychip", STARTED, map(typed, made)).encode(), "x").checks
    said = {r.id: (r.outcome, r.surface) for r in found}
    assert said == {r["id"]: (r["outcome"], r["surface"]) for r in made}


def test_junit_beside_the_report_that_it_was_made_from_is_not_read(gate: Gate) -> None:
    gate.before()
    file = gate.after()[0]
    file.with_suffix(".xml").write_text("not even XML")
    assert gate.run()[0] == Exit.OK


def test_junit_is_not_compared_with_a_report(gate: Gate) -> None:
    gate.before()
    hand_in(gate, suite(case("a")))
    assert "the runs cannot be compared" in gate.refused()


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
FAR = '<!ENTITY x SYSTEM "file:///proc/self/environ">'
PARAMETER = '<!ENTITY % x SYSTEM "file:///proc/self/environ"> %x;'
DTD, NOT_XML = "a document type or entities", "not XML"
TWICE = "is there 2 times"
BOMBS: dict[str, tuple[str | bytes, str]] = {
    "billion laughs": (
        f'<!DOCTYPE t [<!ENTITY l0 "ha">{LAUGHS}]><testsuite><testcase name="&l9;"/></testsuite>',
        DTD,
    ),
    "quadratic blow-up": (
        f'<!DOCTYPE t [<!ENTITY a "{"a" * 50_000}">]><testsuite name="{"&a;" * 50_000}"/>',
        DTD,
    ),
    "an external entity": (f"<!DOCTYPE t [{FAR}]><testsuite>&x;</testsuite>", DTD),
    "a parameter entity": (f"<!DOCTYPE t [{PARAMETER}]><testsuite/>", DTD),
    "an external document type": (
        '<!DOCTYPE t SYSTEM "http://169.254.169.254/latest/meta-data"><testsuite/>',
        DTD,
    ),
    "an unknown entity": ("<testsuite>&x;</testsuite>", NOT_XML),
    "nested deep": (
        "<testsuite>" * 100_000 + "</testsuite>" * 100_000,
        "nested deeper",
    ),
    "nested test cases": (
        "<testsuite>" + '<testcase name="a">' * 500 + "</testcase>" * 500 + "</testsuite>",
        "nested deeper",
    ),
    "truncated": (suite(case("a"), case("b"))[:-30], NOT_XML),
    "empty": ("", NOT_XML),
    "two documents": (suite(case("a")) * 2, NOT_XML),
    "not UTF-8": (suite(case("a")).encode().replace(b"test.a", b"\xff\xfe"), NOT_XML),
    "an unknown encoding": ('<?xml version="1.0" encoding="utf-7"?><testsuite/>', NOT_XML),
    "NUL": (bytes(64), NOT_XML),
    "a character that XML has not": (suite(case("&#0;")), NOT_XML),
    "not JUnit": ("<html><body>502</body></html>", "not JUnit"),
    "no test at all": (suite(), "nothing was executed"),
    "all skipped": (suite(case("a", "<skipped/>")), "nothing was executed"),
    "fewer tests than it says": (suite(case("a"), tests=2), "tests says 2, the cases have 1"),
    "more failures than it says": (
        suite(case("a", FAILURE), failures=0),
        "failures says 0, the cases have 1",
    ),
    "totals that are no number": (suite(case("a"), tests="many"), "tests says many"),
    "a test twice": (suite(case("a"), case("a")), TWICE),
    "a test twice, once good": (suite(case("a"), case("a", FAILURE)), TWICE),
    "a test without a name": (suite("<testcase/>"), "without a name"),
    "NaN seconds": (suite(case("a", time="nan")), "not a duration"),
    "infinite seconds": (suite(case("a", time="inf")), "not a duration"),
    "negative seconds": (suite(case("a", time="-1")), "not a duration"),
    "seconds that are no number": (suite(case("a", time="soon")), "soon"),
    "a run that did not end": (
        junit("mychip", STARTED, map(typed, records(record("COPY-001", "not_run")))),
        "did not end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_junit_is_no_result(gate: Gate, name: str) -> None:
    data, words = BOMBS[name]
    hand_in(gate, data)
    assert words in gate.refused()


def test_a_name_of_any_length_stays_one_of_its_own(gate: Gate) -> None:
    long = "n" * 100_000
    hand_in(gate, suite(case(long + "1", FAILURE), case(long + "2", FAILURE)))
    status, made = gate.run()
    assert (status, len({check.id for check in made.checks})) == (Exit.FINDINGS, 2)


def test_a_packed_report_of_the_suite_is_no_junit(gate: Gate) -> None:
    (gate.candidate / f"{LANE}.xml").write_bytes(synthetic.encode(content(records())))
    assert NOT_XML in gate.refused()
