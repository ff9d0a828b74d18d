# SPDX-License-Identifier: BSD-3-Clause
"""Reruns: an unexpected result is believed when a fresh process, alone, gives it again.

The same outcome stands. Another one makes the check flaky, which is red unless the expectations
list it. A broken backend has thousands of unexpected results, so only so many are run again, spread
over their causes; the others say that they ran once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from torch_conformance.authoring.check import Check
from torch_conformance.judging.judge import Emit, Judge, Options
from torch_conformance.results import summary
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec.outcome import Outcome, is_bad

LIMIT = 40
# Of those, what cost a deadline, and is going to cost another one.
TIMEOUTS = 4


class Reruns:
    """Between a pool and those who hear its results: holds back what is to be run again."""

    def __init__(
        self, pool: Pool, judge: Judge, options: Options, note: Callable[[Any], None]
    ) -> None:
        """`note` gets the records that may still change."""
        self._pool = pool
        self._judge = judge
        self._left, self._timeouts_left = options.reruns, TIMEOUTS
        # A run that stops at its first failures cannot wait with them for its end.
        self._promptly = options.stops_early
        self._note = note
        self._checks: dict[str, Check] = {}
        self._held: dict[str, Result] = {}
        # The ids of those held that wait for the end, by cause.
        self._waiting: dict[str, list[str]] = defaultdict(list)

    def run(self, checks: Iterable[Check], emit: Emit) -> None:
        """Run the checks; every one has one result, whether it ran once or twice."""
        self._checks = {check.id: check for check in checks}

        def receive(result: Result) -> None:
            if result.id in self._held:
                emit(self._settled(self._held.pop(result.id), result))
                return
            if not self._hold(result):
                emit(result)
            if len(self._held) > self._left and not self._promptly:
                emit(self._give_way())

        self._pool.run(self._checks.values(), receive)
        again = [_alone(check) for check in self._checks.values() if check.id in self._held]
        self._left -= len(again)
        self._waiting.clear()
        self._pool.run(again, receive)

    def _hold(self, result: Result) -> bool:
        """Whether the result is kept until the check has run again."""
        check = self._checks[result.id]
        record = self._judge.record(check, result)
        if not is_bad(record) or result.outcome is Outcome.DEVICE_LOST:
            return False
        result.attempts = [attempt(record)]
        if not self._left:
            return False
        if result.outcome is Outcome.TIMEOUT:
            if not self._timeouts_left:
                return False
            self._timeouts_left -= 1
        self._held[check.id] = result
        self._note(record)
        if self._promptly:
            self._left -= 1
            self._pool.run_next(_alone(check))
        else:
            self._waiting[summary.cause(record)].append(check.id)
        return True

    def _give_way(self) -> Result:
        """The last result of the cause that has the most; it is not going to be run again."""
        most = max(self._waiting.values(), key=len)
        return self._held.pop(most.pop())

    def _settled(self, first: Result, second: Result) -> Result:
        """What two attempts come to."""
        again = attempt(self._judge.record(self._checks[second.id], second))
        attempts = [*first.attempts, again]
        if second.outcome is Outcome.DEVICE_LOST:
            second.attempts = attempts
            return second
        first.attempts = attempts
        if second.outcome is not Outcome.NOT_RUN and len({a["outcome"] for a in attempts}) > 1:
            then = f"{attempts[0]['outcome']}, then {again['outcome']} when run again alone"
            first.flaky = f"{then}: {attempts[0].get('message', '')}"
        return first


def attempt(record: dict[str, Any]) -> dict[str, Any]:
    """What the report says of one of several runs of a check."""
    text = record.get("message") or record.get("reason")
    return {"outcome": record["outcome"], **({"message": text} if text else {})}


def _alone(check: Check) -> Check:
    return replace(check, isolate=True)
