# SPDX-License-Identifier: BSD-3-Clause
"""The verdict as JUnit: a suite for each configuration, with a case for each listed check, and one
for whether its result is usable at all."""

from __future__ import annotations

import io
import itertools

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from torch_backend_ci.gate.report.words import about, causes, change
from torch_backend_ci.gate.verdict import Check, Lane, Means, Verdict
from torch_backend_ci.github.markdown import visible


def render(verdict: Verdict) -> str:
    """As XML; a regression is a failure, and an unusable configuration is an error."""
    root = JUnitXml("gate")
    if verdict.problems:
        case = _case("gate", "the input is usable", 0.0, verdict.problems)
        root.add_testsuite(_suite("gate", [case]))
    by_lane = itertools.groupby(sorted(verdict.checks, key=_lane_of), _lane_of)
    checks = {lane: list(group) for lane, group in by_lane}
    for lane in verdict.lanes:
        cases = [_of_lane(lane), *(_of_check(verdict, c) for c in checks.get(lane.name, ()))]
        suite = _suite(lane.name, cases)
        if started := _started(lane):
            suite.timestamp = started
        root.add_testsuite(suite)
    stream = io.BytesIO()
    root.write(stream)
    return stream.getvalue().decode() + "\n"


def _suite(name: str, cases: list[TestCase]) -> TestSuite:
    suite = TestSuite(name)
    suite.add_testcases(cases)
    return suite


def _lane_of(check: Check) -> str:
    return check.lane


def _of_lane(lane: Lane) -> TestCase:
    lasted = sum(shard.duration_s for shard in lane.shards)
    return _case(lane.name, "the result is usable", lasted, lane.problems)


def _started(lane: Lane) -> str | None:
    """When the first of its runs began, as the reports say it."""
    said = [shard.started for shard in lane.shards if shard.started]
    return _printable(min(said)) if said else None


def _of_check(verdict: Verdict, check: Check) -> TestCase:
    case = _case(check.lane, check.id, check.duration_s or 0.0)
    case.system_out = _printable(f"{check.kind.value}: {change(check)}\n{check.message}")
    said = f"{check.kind.value}: {change(check)}"
    since = "".join(f"{w} {c.name} {about(c)}\n" for w, c in causes(verdict, check))
    if check.means is not Means.NOTE:
        kind = Failure if check.means is Means.REGRESSION else Error
        result = kind(said, check.kind.value)
        result.text = _printable(f"{since}{check.message}\n{check.repro}".strip())
        case.result = [result]
    return case


def _case(lane: str, name: str, time: float, error: tuple[str, ...] = ()) -> TestCase:
    case = TestCase(_printable(name), classname=lane, time=round(time, 6))
    if error:
        case.result = [Error(_printable("\n".join(error)), "infrastructure")]
    return case


def _printable(text: str) -> str:
    """What XML cannot carry is among what one cannot see."""
    return visible(text, keep="\t\n")
