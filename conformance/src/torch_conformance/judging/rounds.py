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
from dataclasses import replace
from typing import Any

from torch_conformance.authoring.check import Check
from torch_conformance.judging.judge import Emit, Judge, Verification
from torch_conformance.judging.reruns import attempt
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import Outcome, is_bad

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
    return replace(descriptor, env={**descriptor.env, **env})


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
        note: Callable[[Any], None],
    ) -> None:
        """`make_pool` takes the seed, `repro` a check (or None for all) and the seed.

        `begin` gets the number and the seed of every round, `note` the records that may change.
        """
        self._verification = verification
        self._make_pool = make_pool
        self._judge = judge
        self._repro = repro
        self._begin = begin
        self._note = note
        self._results: dict[str, Result] = {}
        self._attempts: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def run(self, checks: Iterable[Check], emit: Emit) -> None:
        """Run all rounds. Emit a check as soon as it is flaky, all others after the last round."""
        by_id = {check.id: check for check in checks}
        waiting = set(by_id)
        for number, seed in enumerate(self._verification.seeds, 1):
            self._begin(number, seed)

            def receive(result: Result, number: int = number, seed: int = seed) -> None:
                merged = self._merge(by_id[result.id], result, number, seed)
                if result.id in waiting and (merged.flaky or number == self._verification.rounds):
                    waiting.discard(result.id)
                    emit(merged)
                elif result.id in waiting and merged.attempts:
                    self._note(self._judge.record(by_id[result.id], merged))

            pool = self._make_pool(seed)
            try:
                pool.run(shuffled(by_id.values(), seed), receive)
            finally:
                pool.close()

    def _merge(self, check: Check, result: Result, number: int, seed: int) -> Result:
        """The result of all rounds until now."""
        record = self._judge.record(check, result)
        attempts = self._attempts[check.id]
        attempts.append({**attempt(record), "round": number, "seed": seed})
        merged = self._results.setdefault(check.id, result)
        if result.outcome is Outcome.DEVICE_LOST or merged.outcome is Outcome.PASS:
            merged = self._results[check.id] = result
        if is_bad(record):
            merged.attempts = list(attempts)
            merged.repro = merged.repro or self._repro(check.id, seed)
        self._tell_flaky(merged, attempts)
        return merged

    def _tell_flaky(self, merged: Result, attempts: list[dict[str, Any]]) -> None:
        ran = [a for a in attempts if a["outcome"] != Outcome.NOT_RUN]
        others = [a for a in ran if a["outcome"] != ran[0]["outcome"]]
        if not others or merged.outcome is Outcome.DEVICE_LOST:
            return
        odd = others[0] if is_bad(others[0]) else ran[0]
        merged.attempts = list(attempts)
        merged.flaky = f"{_when(ran[0])}, {_when(others[0])}: {odd.get('message', '')}"
        merged.repro = "\n".join(self._repro(id, odd["seed"]) for id in (merged.id, None))


def _when(attempt: dict[str, Any]) -> str:
    return f"{attempt['outcome']} in round {attempt['round']} (--verify-seed {attempt['seed']})"
