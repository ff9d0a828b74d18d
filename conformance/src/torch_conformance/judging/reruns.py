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

from torch_conformance.authoring.check import Check
from torch_conformance.judging.judge import Emit, Judge, Judged, Options
from torch_conformance.results.causes import cause
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import Attempt, CheckResult

LIMIT = 40
# Of those, what cost a deadline, and is going to cost another one.
TIMEOUTS = 4


class Reruns:
    """Between a pool and those who hear its results: holds back what is to be run again."""

    def __init__(
        self, pool: Pool, judge: Judge, options: Options, note: Callable[[CheckResult], None]
    ) -> None:
        """`note` gets the results that may still change."""
        self._pool = pool
        self._judge = judge
        self._left, self._timeouts_left = options.reruns, TIMEOUTS
        # A run that stops at its first failures cannot wait with them for its end.
        self._promptly = options.stops_early
        self._note = note
        self._checks: dict[str, Check] = {}
        self._held: dict[str, Judged] = {}
        # The ids of those held that wait for the end, by cause.
        self._waiting: dict[str, list[str]] = defaultdict(list)

    def run(self, checks: Iterable[Check], emit: Emit) -> None:
        """Run the checks; every one has one result, whether it ran once or twice."""
        self._checks = {check.id: check for check in checks}

        def receive(raw: Result) -> None:
            judged = self._judge.judge(self._checks[raw.id], raw)
            if raw.id in self._held:
                emit(_settled(self._held.pop(raw.id), judged))
            elif not judged.result.unexpected or raw.outcome is Outcome.DEVICE_LOST:
                emit(judged)
            else:
                judged = judged.changed(attempts=(attempt(judged.result),))
                if not self._is_worth_it(raw):
                    emit(judged)
                    return
                self._hold(judged)
                if len(self._held) > self._left and not self._promptly:
                    emit(self._give_way())

        self._pool.run(self._checks.values(), receive)
        again = [_alone(check) for check in self._checks.values() if check.id in self._held]
        self._left -= len(again)
        self._waiting.clear()
        self._pool.run(again, receive)

    def _is_worth_it(self, raw: Result) -> bool:
        """Whether a check with an unexpected result is to run again."""
        if not self._left:
            return False
        if raw.outcome is Outcome.TIMEOUT:
            if not self._timeouts_left:
                return False
            self._timeouts_left -= 1
        return True

    def _hold(self, judged: Judged) -> None:
        """Keep the result until the check has run again."""
        result = judged.result
        self._held[result.id] = judged
        self._note(result)
        if self._promptly:
            self._left -= 1
            self._pool.run_next(_alone(self._checks[result.id]))
        else:
            self._waiting[cause(result)].append(result.id)

    def _give_way(self) -> Judged:
        """The last result of the cause that has the most; it is not going to be run again."""
        most = max(self._waiting.values(), key=len)
        return self._held.pop(most.pop())


def _settled(first: Judged, second: Judged) -> Judged:
    """What two attempts come to."""
    once, again = first.result.attempts[0], attempt(second.result)
    if second.result.outcome is Outcome.DEVICE_LOST:
        return second.changed(attempts=(once, again))
    settled = first.changed(attempts=(once, again))
    if again.outcome in (Outcome.NOT_RUN, once.outcome):
        return settled
    then = f"{once.outcome}, then {again.outcome} when run again alone"
    return settled.changed(outcome=Outcome.FLAKY, message=f"{then}: {once.message or ''}")


def attempt(result: CheckResult) -> Attempt:
    """What the report says of one of several runs of a check."""
    return Attempt(outcome=result.outcome, message=result.text or None)


def _alone(check: Check) -> Check:
    return replace(check, isolate=True)
