# SPDX-License-Identifier: BSD-3-Clause
"""Which checks reach which mutants: the suite runs once, with every mutant asleep."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import mutant_switch
import reach_log
from mutants.sample import chapter_of

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.device import Device
from torch_conformance.running import execute as running
from torch_conformance.running.result import Result

#: Seconds in which no check starts an interpreter.
QUICK = 1.0
#: What fewer checks reach may run once in a process: it is recorded for the check that came first.
FEW = 50


class Plan(NamedTuple):
    """The checks that a mutant meets."""

    checks: list[str]
    reached: int
    """How many reach it."""
    skipped: int
    """Of these, those for which there is no time."""


@dataclass
class Coverage:
    """The marks of one run."""

    reached: dict[str, frozenset[int]] = field(default_factory=dict)
    """Of each check, the mutants; those that every start of the backend reaches left out."""
    seconds: dict[str, float] = field(default_factory=dict)
    fallbacks: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of each check during which any ran on the CPU, the operators."""
    always: set[int] = field(default_factory=set)
    """What is reached before the first check."""
    by_mutant: dict[int, list[str]] = field(default_factory=dict)

    def checks_for(self, mutant: int, owners: Collection[str] = ()) -> list[str]:
        """Those that reach it: of its owners, the chapters that should notice it, before others;
        those first that reach little else, then the quick ones; one of each name before a second.

        What every start of the backend reaches may change any check. Checks that reach it only
        because they start an interpreter are slow, and few of them would fit the time.
        """
        found = frozenset(self.by_mutant.get(mutant, ()))
        starts = mutant in self.always

        def rank(id: str) -> tuple[object, ...]:
            seconds = self.seconds[id]
            slow = starts and seconds > QUICK
            return (
                chapter_of(id) not in owners,
                slow,
                id not in found,
                0 if slow or id not in found else len(self.reached[id]),
                seconds,
                id,
            )

        ranked = sorted(self.seconds if starts else found, key=rank)
        turns = _turns(ranked)
        return sorted(ranked, key=lambda id: (*rank(id)[:3], turns[id]))

    def plan(self, mutant: int, limit: float, owners: Collection[str] = ()) -> Plan:
        """The checks for it that end within `limit` seconds.

        The owners come first, and leave half of the time to the others at least, beyond the limit
        if they need all of it. A mutant that few checks reach meets those of its owners that were
        not seen to reach it, too.
        """
        checks = self.checks_for(mutant, owners)
        own = self._fitting([id for id in checks if chapter_of(id) in owners], limit)
        others = [id for id in checks if chapter_of(id) not in owners]
        chosen = own + self._fitting(others, max(limit - self._time(own), limit / 2))
        skipped = len(checks) - len(chosen)
        if len(checks) < FEW:
            unseen = self._unseen(checks, owners)
            chosen += self._fitting(unseen, limit - self._time(chosen))
        return Plan(chosen, reached=len(checks), skipped=skipped)

    def _unseen(self, checks: Collection[str], owners: Collection[str]) -> list[str]:
        """The other checks of the owners: the quick ones, and one of each name, first."""
        own = (id for id in self.seconds if chapter_of(id) in owners and id not in checks)
        ranked = sorted(own, key=lambda id: (self.seconds[id], id))
        turns = _turns(ranked)
        return sorted(ranked, key=lambda id: (self.seconds[id] > QUICK, turns[id]))

    def _fitting(self, checks: list[str], limit: float) -> list[str]:
        """The first of them, which end within so many seconds."""
        ends = itertools.accumulate(self.seconds[id] for id in checks)
        return checks[: sum(end <= limit for end in ends)]

    def _time(self, checks: Iterable[str]) -> float:
        return sum(self.seconds[id] for id in checks)


def _turns(checks: Iterable[str]) -> dict[str, int]:
    """Of each check, how many of its name, whose cases differ, come before it."""
    seen: Counter[str] = Counter()
    turns: dict[str, int] = {}
    for id in checks:
        name = id.partition(":")[0]
        turns[id] = seen[name]
        seen[name] += 1
    return turns


def record() -> None:
    """In this process and its forks: write what each check reaches, as reach_log says where."""
    original = running.execute
    last = ""

    def execute(
        check: Check, dev: Device, raised: Callable[[BaseException], object] = id
    ) -> Result:
        nonlocal last
        marks = mutant_switch.shared(os.environ.get(reach_log.MARKS))
        assert marks is not None
        # Starting the backend reached it, or a thread that still worked for a check.
        reach_log.write(last, marks)
        result = original(check, dev, raised)
        last = check.id
        reach_log.write(last, marks, result.duration, result.fallbacks)
        return result

    running.execute = execute


def load(
    logs: Iterable[Path],
    checks: Collection[str] | None = None,
    without: Collection[str] = (),
) -> Coverage:
    """What the processes wrote; what is not one of the checks is a probe, at every start.

    If `checks` is None, everything is a check. Those of `without` are as if they had not run.
    """
    found = Coverage()
    every: defaultdict[str, set[int]] = defaultdict(set)
    for log in logs:
        for line in log.read_text().splitlines():
            check, seconds, reached, fallbacks = json.loads(line)
            if check in without:
                continue
            if checks is None or check in checks:
                every[check].update(reached)
                found.seconds[check] = max(seconds, found.seconds.get(check, 0.0))
                if fallbacks:
                    before = found.fallbacks.get(check, frozenset())
                    found.fallbacks[check] = before.union(fallbacks)
            else:
                found.always.update(reached)
    found.reached = {check: frozenset(numbers) for check, numbers in every.items()}
    by_mutant: defaultdict[int, list[str]] = defaultdict(list)
    for check, numbers in sorted(found.reached.items()):
        for number in numbers:
            by_mutant[number].append(check)
    found.by_mutant = dict(by_mutant)
    return found
