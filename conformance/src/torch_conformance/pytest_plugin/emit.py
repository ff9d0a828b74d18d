# SPDX-License-Identifier: BSD-3-Clause
"""Report results to pytest in the form that its terminal, JUnit and xdist plugins expect."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from torch_conformance.pytest_plugin.nodes import CheckItem
from torch_conformance.pytest_plugin.suite import Session, Suite
from torch_conformance.results.report import attempts
from torch_conformance.running.result import Result
from torch_conformance.spec.outcome import Outcome, is_bad

Phase = Literal["setup", "call", "teardown"]


def emit_result(config: pytest.Config, backend: Session, item: CheckItem, result: Result) -> None:
    """Tell pytest about a result, in the three steps its other plugins expect."""
    assert backend.judge is not None
    record = backend.judge.record(item.check, result)
    hook = config.hook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    phases: tuple[Phase, ...] = ("setup", "call", "teardown")
    for when in phases:
        call = when == "call"
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome=_pytest_outcome(record) if call else "passed",
            longrepr=_longrepr(item, record, result) if call else None,
            when=when,
            duration=result.duration if call else 0.0,
        )
        # Attributes of a report travel with it from an xdist worker to the controller.
        report.backend = item.backend  # type: ignore[attr-defined]
        report.conformance = record if call else None  # type: ignore[attr-defined]
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _pytest_outcome(record: dict[str, Any]) -> Literal["passed", "failed", "skipped"]:
    outcome = Outcome(record["outcome"])
    if is_bad(record):
        return "failed"
    return "passed" if outcome in (Outcome.PASS, Outcome.FLAKY) else "skipped"


def _longrepr(item: CheckItem, record: dict[str, Any], result: Result) -> Any:
    outcome = Outcome(record["outcome"])
    if is_bad(record):
        parts = [f"{item.check.id}: {item.check.title}", f"{outcome}: {record['message']}"]
        parts += [result.detail.rstrip()] if result.detail else []
        parts += attempts(record) if outcome is Outcome.FLAKY else []
        return "\n".join([*parts, "repeat with:", record["repro"]])
    if _pytest_outcome(record) == "skipped":
        return (item.check.file, item.check.line, f"{outcome}: {record.get('reason', '')}")
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
