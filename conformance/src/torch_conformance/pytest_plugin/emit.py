# SPDX-License-Identifier: BSD-3-Clause
"""Report results to pytest in the form that its terminal, JUnit and xdist plugins expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import pytest
from _pytest._code.code import (
    ReprEntryNative,
    ReprExceptionInfo,
    ReprFileLocation,
    ReprTraceback,
)

from torch_conformance.judging.judge import Judged
from torch_conformance.pytest_plugin.nodes import CheckItem
from torch_conformance.pytest_plugin.suite import Suite
from torch_conformance.results.junit import attempts
from torch_conformance.running.result import Result
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

Phase = Literal["setup", "call", "teardown"]
PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")


def emit_result(config: pytest.Config, item: CheckItem, judged: Judged) -> None:
    """Report a result to pytest, in the three phases that its other plugins expect."""
    end(item, judged)
    hook = config.hook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for when in PHASES:
        hook.pytest_runtest_logreport(report=phase_report(item, when))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def end(item: CheckItem, judged: Judged) -> None:
    """The item keeps what its reports say."""
    item.ended = judged
    item.user_properties += _properties(judged.result)


def phase_report(item: CheckItem, when: Phase) -> pytest.TestReport:
    """The report of one phase of a check that has ended."""
    assert item.ended is not None
    result, raw = item.ended.result, item.ended.raw
    call = when == "call"
    made = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=item.names,
        outcome=_pytest_outcome(result) if call else "passed",
        longrepr=_longrepr(item, item.ended) if call else None,
        when=when,
        sections=[] if when == "setup" else _sections(item, raw),
        duration=raw.duration if call else 0.0,
        user_properties=list(item.user_properties),
    )
    if call and category(result) == "xfailed":
        made.wasxfail = str(result.reason or "")
    return marked(item, made)


def marked(item: CheckItem, made: pytest.TestReport) -> pytest.TestReport:
    """With what the suite needs. These attributes travel from an xdist worker to the controller."""
    call = made.when == "call" and item.ended is not None
    # TestReport declares neither attribute; pytest serialises whatever a report has.
    made.backend = item.backend  # type: ignore[attr-defined]  # see above
    result = msgspec.to_builtins(item.ended.result) if call and item.ended else None
    made.conformance = result  # type: ignore[attr-defined]  # see above
    return made


def result_of(report: object) -> CheckResult | None:
    """The result that a report of pytest tells, also one that an xdist worker sent."""
    values = getattr(report, "conformance", None)
    return None if values is None else msgspec.convert(values, CheckResult)


def category(result: CheckResult) -> str:
    """What pytest calls an outcome."""
    return "failed" if result.unexpected else result.outcome.traits.category


def _pytest_outcome(result: CheckResult) -> Literal["passed", "failed", "skipped"]:
    name = category(result)
    if name == "failed":
        return "failed"
    return "passed" if name == "passed" else "skipped"


def _properties(result: CheckResult) -> Iterator[tuple[str, object]]:
    yield "outcome", result.outcome.value
    if result.evidence:
        yield "execution_path", result.evidence
    if result.text:
        yield "reason", result.text


def _sections(item: CheckItem, result: Result) -> list[tuple[str, str]]:
    """What was captured: by pytest in this process; a worker's two streams go to one file."""
    sections = [(f"Captured {name} {when}", text) for when, name, text in item._report_sections]
    return [*sections, ("Captured stdout call", result.output)] if result.output else sections


def _longrepr(item: CheckItem, judged: Judged) -> Any:
    check, result, detail = item.check, judged.result, judged.raw.detail
    if result.unexpected:
        parts = [f"{check.id}: {check.title}", *_requirements(item)]
        parts += [f"{result.outcome}: {result.message}"]
        parts += [detail.rstrip()] if detail else []
        parts += attempts(result) if result.outcome is Outcome.FLAKY else []
        text = "\n".join([*parts, "repeat with:", result.repro or ""])
        lines = text.splitlines(keepends=True)
        # pytest serialises this form, and finds in it what its summary and JUnit say in a line.
        return ReprExceptionInfo(
            ReprTraceback([ReprEntryNative([*lines, "\n"])], None, "native"),
            ReprFileLocation(check.file, check.line, result.message or ""),
        )
    if _pytest_outcome(result) == "skipped":
        return check.file, check.line, f"{result.outcome}: {result.text}"
    return None


def _requirements(item: CheckItem) -> Iterator[str]:
    """What the check verifies, and where PyTorch says so."""
    for requirement in item.requirements:
        yield f"{requirement.id}: {requirement.statement}  {requirement.source.url}"


class Recorder:
    """Puts results into the report of their backend, also those that an xdist worker sent."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = result_of(report)
        if result is not None:
            session = self._suite.sessions[report.backend]
            if session.report is not None:
                session.report.add(result)
