# SPDX-License-Identifier: BSD-3-Clause
"""How a check changed between two runs. The suite's lattice says which outcome is better."""

from __future__ import annotations

from ci.gate.verdict import Class
from torch_conformance.results.comparison import ranks
from torch_conformance.results.reader import Record
from torch_conformance.spec.outcome import Outcome, is_bad

PASSES = frozenset({Outcome.PASS, Outcome.XPASS, Outcome.FLAKY})


def classify(before: Record | None, after: Record | None) -> Class:
    """The class of a check by its records in the run before and in the one that is judged."""
    if after is None or after["outcome"] == Outcome.NOT_RUN:
        return Class.MISSING
    if before is None:
        return _of_new(after)
    if is_bad(after):
        return _of_bad(before, after)
    return _of_good(before, after)


def _of_new(after: Record) -> Class:
    if after["outcome"] == Outcome.FLAKY:
        return Class.FLAKY
    return Class.NEW_FAILURE if is_bad(after) else Class.NEW


def _of_bad(before: Record, after: Record) -> Class:
    old, new = before["outcome"], after["outcome"]
    if new == Outcome.XPASS != old:
        return Class.UNEXPECTED_PASS
    if is_bad(before) and ranks()[new] >= ranks()[old]:
        return Class.BROKEN_TRUNK
    return Class.FLAKY if new == Outcome.FLAKY else Class.NEW_FAILURE


def _of_good(before: Record, after: Record) -> Class:
    old, new = before["outcome"], after["outcome"]
    if old == new and not is_bad(before):
        return Class.UNCHANGED
    if new == Outcome.PASS:
        return Class.FIXED
    if new == Outcome.FLAKY:
        return Class.FLAKY
    if new == Outcome.BLOCKED_UPSTREAM:
        return Class.BLOCKED_UPSTREAM
    taken_back = new == Outcome.UNSUPPORTED and old in PASSES and "waiver" not in after
    return Class.WITHDRAWN if taken_back else Class.EXCUSED
