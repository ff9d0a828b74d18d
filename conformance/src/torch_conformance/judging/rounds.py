# SPDX-License-Identifier: BSD-3-Clause
"""``--verify N``: the checks N times, each time in another order and under another schedule.

A round is determined by its seed: the order is shuffled by it, and a backend that can be made to
schedule its work in unusual but valid ways does so by the environment that its descriptor
names. A check whose rounds differ is flaky: it races, or it depends on what ran before it.
"""

from __future__ import annotations

import random
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from torch_conformance.authoring.check import Check
from torch_conformance.judging.judge import Emit, Judge, Judged, Verification
from torch_conformance.judging.reruns import attempt
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import Attempt, CheckResult

OPTIONS = ("--verify", "--verify-seed")


def without_rounds(arguments: Iterable[str]) -> str:
    """The command line of a run without its rounds."""
    kept, skip = ["pytest"], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if not skip and name not in OPTIONS:
            kept.append(argument)
        skip = name in OPTIONS and not equals
    return shlex.join(kept)


def adversarial(descriptor: Descriptor, seed: int) -> Descriptor:
    """The backend with the schedule of a seed."""
    env = {k: v.replace("{seed}", str(seed)) for k, v in descriptor.adversarial_env.items()}
    return msgspec.structs.replace(descriptor, env={**descriptor.env, **env})


def shuffled(checks: Iterable[Check], seed: int) -> list[Check]:
    """The checks in the order of a seed, whatever their order was."""
    ordered = sorted(checks, key=lambda check: check.id)
    random.Random(seed).shuffle(ordered)
    return ordered


class Rounds:
    """Runs every check once in each round, and tells one result for each."""

    def __init__(
        self,
        verification: Verification,
        make_pool: Callable[[int], Pool],
        judge: Judge,
        repro: Callable[[str | None, int], str],
        begin: Callable[[int, int], None],
        note: Callable[[CheckResult], None],
    ) -> None:
        """`make_pool` takes the seed, `repro` a check (or None for all) and the seed.

        `begin` gets the number and the seed of every round, `note` the results that may change.
        """
        self._verification = verification
        self._make_pool = make_pool
        self._judge = judge
        self._repro = repro
        self._begin = begin
        self._note = note
        self._results: dict[str, Judged] = {}
        self._attempts: dict[str, list[Attempt]] = defaultdict(list)

    def run(self, checks: Iterable[Check], emit: Emit) -> None:
        """Run all rounds. Emit a check as soon as it is flaky, all others after the last round."""
        by_id = {check.id: check for check in checks}
        waiting = set(by_id)
        for number, seed in enumerate(self._verification.seeds, 1):
            self._begin(number, seed)

            def receive(raw: Result, number: int = number, seed: int = seed) -> None:
                judged = self._judge.judge(by_id[raw.id], raw)
                merged = self._merge(judged, number, seed)
                is_settled = _is_flaky(merged) or number == self._verification.rounds
                if raw.id in waiting and is_settled:
                    waiting.discard(raw.id)
                    emit(merged)
                elif raw.id in waiting and merged.result.attempts:
                    self._note(merged.result)

            pool = self._make_pool(seed)
            try:
                pool.run(shuffled(by_id.values(), seed), receive)
            finally:
                pool.close()

    def _merge(self, judged: Judged, number: int, seed: int) -> Judged:
        """The result of all rounds until now."""
        id = judged.result.id
        attempts = self._attempts[id]
        attempts.append(msgspec.structs.replace(attempt(judged.result), round=number, seed=seed))
        merged = self._results.setdefault(id, judged)
        if judged.raw.outcome is Outcome.DEVICE_LOST or merged.raw.outcome is Outcome.PASS:
            merged = judged
        if judged.result.unexpected:
            if merged.result.unexpected and not merged.result.attempts:
                repro = merged.raw.repro or self._repro(id, seed)
                merged = merged.changed(repro=repro)
            merged = merged.changed(attempts=tuple(attempts))
        self._results[id] = merged = self._unless_flaky(merged, attempts)
        return merged

    def _unless_flaky(self, merged: Judged, attempts: list[Attempt]) -> Judged:
        """The merged result; flaky where the rounds differ."""
        ran = [a for a in attempts if a.outcome is not Outcome.NOT_RUN]
        others = [a for a in ran if a.outcome is not ran[0].outcome]
        if not others or merged.raw.outcome is Outcome.DEVICE_LOST:
            return merged
        odd = others[0] if others[0].unexpected else ran[0]
        return merged.changed(
            outcome=Outcome.FLAKY,
            message=f"{_when(ran[0])}, {_when(others[0])}: {odd.message or ''}",
            mismatch=merged.raw.mismatch if odd.message == merged.raw.message else None,
            reason=None,
            attempts=tuple(attempts),
            repro="\n".join(self._repro(one, odd.seed or 0) for one in (merged.result.id, None)),
        )


def _is_flaky(judged: Judged) -> bool:
    """Whether the rounds differ already."""
    return judged.result.outcome is Outcome.FLAKY and judged.result.unexpected


def _when(attempt: Attempt) -> str:
    return f"{attempt.outcome} in round {attempt.round} (--verify-seed {attempt.seed})"
