# SPDX-License-Identifier: BSD-3-Clause
"""How a check changed between two runs. The suite's ranks say which outcome is better."""

from __future__ import annotations

from torch_backend_ci.gate.verdict import Class
from torch_conformance.results.comparison import Move, by_outcome
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

PASSES = frozenset({Outcome.PASS, Outcome.XPASS, Outcome.FLAKY})


def classify(before: CheckResult | None, after: CheckResult | None) -> Class:
    """The class of a check by its results in the run before and in the one that is judged."""
    if after is None or after.outcome is Outcome.NOT_RUN:
        return Class.MISSING
    if before is None:
        return _of_new(after)
    if after.unexpected:
        return _of_bad(before, after)
    return _of_good(before, after)


def _of_new(after: CheckResult) -> Class:
    if after.outcome is Outcome.FLAKY:
        return Class.FLAKY
    return Class.NEW_FAILURE if after.unexpected else Class.NEW


def _of_bad(before: CheckResult, after: CheckResult) -> Class:
    if after.outcome is Outcome.XPASS is not before.outcome:
        return Class.UNEXPECTED_PASS
    if before.unexpected and by_outcome(before, after) is not Move.REGRESSION:
        return Class.BROKEN_TRUNK
    return Class.FLAKY if after.outcome is Outcome.FLAKY else Class.NEW_FAILURE


def _of_good(before: CheckResult, after: CheckResult) -> Class:
    old, new = before.outcome, after.outcome
    if old is new and not before.unexpected:
        return Class.UNCHANGED
    if new is Outcome.PASS:
        return Class.FIXED
    if new is Outcome.FLAKY:
        return Class.FLAKY
    if new is Outcome.BLOCKED_UPSTREAM:
        return Class.BLOCKED_UPSTREAM
    taken_back = new is Outcome.UNSUPPORTED and old in PASSES and not after.excused
    return Class.WITHDRAWN if taken_back else Class.EXCUSED
