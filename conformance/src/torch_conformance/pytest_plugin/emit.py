# SPDX-License-Identifier: BSD-3-Clause
"""Report results to pytest in the form that its terminal, JUnit and xdist plugins expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from _pytest._code.code import (
    ReprEntryNative,
    ReprExceptionInfo,
    ReprFileLocation,
    ReprTraceback,
)

from torch_conformance.pytest_plugin.nodes import CheckItem, Ended
from torch_conformance.pytest_plugin.suite import Session, Suite
from torch_conformance.results.report import attempts
from torch_conformance.running.result import Result
from torch_conformance.spec.outcome import Outcome, is_bad

Phase = Literal["setup", "call", "teardown"]
PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")
# The outcomes that the expectations ask for.
EXPECTED = (Outcome.XFAIL, Outcome.FLAKY)


def emit_result(config: pytest.Config, backend: Session, item: CheckItem, result: Result) -> None:
    """Report a result to pytest, in the three phases that its other plugins expect."""
    end(backend, item, result)
    hook = config.hook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for when in PHASES:
        hook.pytest_runtest_logreport(report=phase_report(item, when))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def end(backend: Session, item: CheckItem, result: Result) -> Ended:
    """Judge a result; the item keeps what its reports say."""
    assert backend.judge is not None
    item.ended = ended = Ended(backend.judge.record(item.check, result), result)
    item.user_properties += _properties(ended.record)
    return ended


def phase_report(item: CheckItem, when: Phase) -> pytest.TestReport:
    """The report of one phase of a check that has ended."""
    assert item.ended is not None
    record, result = item.ended.record, item.ended.result
    call = when == "call"
    made = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys((*item.keywords, *item.extra_keyword_matches), 1),
        outcome=_pytest_outcome(record) if call else "passed",
        longrepr=_longrepr(item, record, result) if call else None,
        when=when,
        sections=[] if when == "setup" else _sections(item, result),
        duration=result.duration if call else 0.0,
        user_properties=list(item.user_properties),
    )
    if call and made.skipped and record["outcome"] in EXPECTED:
        made.wasxfail = record.get("reason", "")
    return marked(item, made)


def marked(item: CheckItem, made: pytest.TestReport) -> pytest.TestReport:
    """With what the suite needs. These attributes travel from an xdist worker to the controller."""
    call = made.when == "call" and item.ended is not None
    made.backend = item.backend  # type: ignore[attr-defined]
    made.conformance = item.ended.record if call and item.ended else None  # type: ignore[attr-defined]
    return made


def category(record: dict[str, Any]) -> str:
    """What pytest calls an outcome."""
    if is_bad(record):
        return "failed"
    if record["outcome"] in EXPECTED:
        return "xfailed"
    return "passed" if record["outcome"] == Outcome.PASS else "skipped"


def _pytest_outcome(record: dict[str, Any]) -> Literal["passed", "failed", "skipped"]:
    name = category(record)
    if name == "failed":
        return "failed"
    return "passed" if name == "passed" else "skipped"


def _properties(record: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "outcome", record["outcome"]
    if record["evidence"]:
        yield "execution_path", record["evidence"]
    reason = record.get("message") or record.get("reason")
    if reason:
        yield "reason", reason


def _sections(item: CheckItem, result: Result) -> list[tuple[str, str]]:
    """What was captured: by pytest in this process; a worker's two streams go to one file."""
    sections = [(f"Captured {name} {when}", text) for when, name, text in item._report_sections]
    return [*sections, ("Captured stdout call", result.output)] if result.output else sections


def _longrepr(item: CheckItem, record: dict[str, Any], result: Result) -> Any:
    check = item.check
    if is_bad(record):
        parts = [f"{check.id}: {check.title}", f"{record['outcome']}: {record['message']}"]
        parts += [result.detail.rstrip()] if result.detail else []
        parts += attempts(record) if record["outcome"] == Outcome.FLAKY else []
        lines = "\n".join([*parts, "repeat with:", record["repro"]]).splitlines(keepends=True)
        # pytest serialises this form, and finds in it what its summary and JUnit say in a line.
        return ReprExceptionInfo(
            ReprTraceback([ReprEntryNative([*lines, "\n"])], None, "native"),
            ReprFileLocation(check.file, check.line, record["message"]),
        )
    if _pytest_outcome(record) == "skipped":
        return check.file, check.line, f"{record['outcome']}: {record.get('reason', '')}"
    return None


class Recorder:
    """Puts records into the report of their backend, also those that an xdist worker sent."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record = getattr(report, "conformance", None)
        if record is not None:
            session = self._suite.sessions[report.backend]
            if session.report is not None:
                session.report.add(record)
