# SPDX-License-Identifier: BSD-3-Clause
"""How a run against one backend ends: the words in the terminal and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch_conformance.bringup.loading import explained
from torch_conformance.judging.judge import WARN
from torch_conformance.pytest_plugin.suite import Session
from torch_conformance.results import levels, summary
from torch_conformance.spec import operator_families
from torch_conformance.spec.outcome import EXECUTED
from torch_conformance.spec.result import CheckResult

# Above 63, because pytest and its plugins use the lower ones.
INCOMPLETE, NOTHING_EXECUTED, CANNOT_LOAD = 64, 65, 66
MAX_UNLISTED = 10


def exit_code(backend: Session) -> int:
    """0 if every check is as it should be; the others are explained in `plugin`."""
    assert backend.report is not None
    results = backend.report.results.values()
    if backend.cannot_load:
        return CANNOT_LOAD
    if not any(result.outcome in EXECUTED for result in results):
        return NOTHING_EXECUTED
    if not backend.complete:
        return INCOMPLETE
    return 1 if any(result.unexpected for result in results) else 0


def lines(session: Session, fallback: str, show_reasons: bool = False) -> Iterator[str]:
    """What there is to say, from the outcomes to the path of the report.

    Reasons for which checks neither passed nor failed are counted by kind, or each is shown.
    """
    report = session.report
    assert report is not None
    name = session.descriptor.name
    results = list(report.results.values())
    yield ""
    if session.cannot_load:
        why = explained(session.cannot_load, session.load_problem)
        yield f"backend {name} cannot be loaded: {why}"
        return
    yield f"backend {name}: {len(results)} checks"
    yield from summary.table(results)
    excuses = list((summary.reasons if show_reasons else summary.excuses)(results))
    if excuses:
        more = "" if show_reasons else " (--show-reasons: each, with its checks)"
        yield f"neither passed nor failed on {name}, by reason{more}"
        yield from excuses
    if fallback == WARN:
        yield f"operators that {name} ran by CPU fallback, by the number of checks that used them"
        yield from summary.fallbacks(results) or ["       none"]
    causes = list(summary.causes(results))
    if causes:
        yield f"causes of failure on {name}, most frequent first"
        yield from causes
        yield from summary.ran_once(results)
    if not session.complete:
        missing = len(session.selected - set(report.results))
        yield f"INCOMPLETE: {missing} checks have no result"
    if session.verified:
        first, last = session.verified.seeds[0], session.verified.seeds[-1]
        yield f"verified in {session.verified.rounds} rounds, --verify-seed {first} to {last}"
    if not any(result.outcome in EXECUTED for result in results):
        yield "NOTHING EXECUTED: no check ran, which is a failure"
    if session.changes:
        yield f"changes of {session.expectations_file}"
        yield from (f"       {line}" for line in session.changes)
    yield from _unlisted(results)
    yield from summary.over_budget(results)
    yield from _level(session)
    yield f"report: {session.report_file}"


def _unlisted(results: Iterable[CheckResult]) -> Iterator[str]:
    """The operators of a newer torch that the suite's families do not have yet."""
    found = operator_families.unlisted(result.id for result in results)
    if found:
        count = f"{len(found)} operators are" if len(found) > 1 else "1 operator is"
        shown = ", ".join(found[:MAX_UNLISTED]) + (" ..." if len(found) > MAX_UNLISTED else "")
        yield f"{count} in no family of {operator_families.FILE.name} and count as OTHER: {shown}"


def _level(session: Session) -> Iterator[str]:
    assert session.report is not None
    verdict = levels.assess(session.report.report(session.complete))
    yield f"level: {verdict}"
    for step in verdict.steps:
        if step.excused:
            excused = f"{len(step.excused)} of {step.must} musts"
            yield f"       {step.level.title}: {excused} are excused by absent capabilities"
    if verdict.next:
        blockers = verdict.next.blockers
        more = f" and {len(blockers) - 1} more" if len(blockers) > 1 else ""
        yield f"       {verdict.next.level.title} needs more: {blockers[0]}{more}"
