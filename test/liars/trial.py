# SPDX-License-Identifier: BSD-3-Clause
"""One liar before the suite: its own runner and judge, until each requirement caught the lie."""

from __future__ import annotations

import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import hal_suite
import torch
from liar import Liar

from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.expectations import Expectations
from torch_conformance.judging.judge import Judge, Options
from torch_conformance.results.comparison import FALLBACK
from torch_conformance.running import probes
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec import catalogue
from torch_conformance.spec.capabilities import Capabilities
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.ids import matches
from torch_conformance.spec.outcome import BAD, CannotLoad
from torch_conformance.spec.result import CheckResult

CATALOGUE = catalogue.load()
OPINFO = "opinfo"
#: Of each check, the operators that run on the CPU.
Usual = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Kill:
    """A check that noticed the lie, and what it said."""

    check: str
    outcome: str
    message: str


@dataclass
class Verdict:
    """What the suite found out about one liar."""

    liar: str
    outcomes: dict[str, str] = field(default_factory=dict)
    """Of every check that was run."""
    kills: list[Kill] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """The requirements none of whose checks noticed."""
    cannot_load: str | None = None
    seconds: float = 0.0

    broken: str | None = None
    """Why there was no trial."""
    loads: bool = True
    """Whether it is meant to come up."""

    @property
    def killed(self) -> bool:
        """Whether anything noticed the lie."""
        return bool(self.kills) or self.cannot_load is not None

    @property
    def intended(self) -> bool:
        """Whether each of its requirements did."""
        return self.killed and not self.missed and self.loads == (self.cannot_load is None)


class _Enough(Exception):
    """Nothing more has to be known about this liar."""


def _noticed(result: CheckResult, usual: Usual | None) -> Kill | None:
    if result.outcome in BAD:
        return Kill(result.id, result.outcome.value, result.message or "")
    if usual is not None:
        newly = set(result.fallbacks) - usual.get(result.id, frozenset())
        if newly:
            return Kill(result.id, FALLBACK, f"by CPU fallback: {', '.join(sorted(newly))}")
    return None


def checks_for(liar: Liar) -> list[Check]:
    """The checks that are to notice a lie, those first that look at something else than others."""
    if liar.checks:
        try:
            return selected(liar.checks)
        except ValueError as error:
            raise ValueError(f"{liar.id}: {error}") from None
    ranks: dict[str, int] = defaultdict(int)
    ranked: list[tuple[bool, int, Check]] = []
    for check in REGISTRY:
        if check.surface != OPINFO and set(check.requirements) & set(liar.requirements):
            family = check.id.partition(":")[0]
            ranked.append((check.isolate, ranks[family], check))
            ranks[family] += 1
    return [check for *_, check in sorted(ranked, key=lambda entry: entry[:2])]


def selected(patterns: Iterable[str]) -> list[Check]:
    """The checks that the patterns name, each once; every pattern must name some."""
    found: dict[str, Check] = {}
    for pattern in patterns:
        named = [check for check in REGISTRY if matches(pattern, check.id)]
        if not named:
            raise ValueError(f"{pattern} names no check")
        found |= {check.id: check for check in named}
    return list(found.values())


def all_but_opinfo() -> list[Check]:
    """What a liar faces that none of its own checks noticed."""
    return [check for check in REGISTRY if check.surface != OPINFO]


def judge(liar: Liar, checks: Iterable[Check], *, patient: bool = False) -> Verdict:
    """Run the checks until each requirement has caught the lie; to the end if `patient`."""
    verdict = Verdict(liar.id, missed=list(liar.requirements), loads=liar.cannot_load is None)
    begin = time.perf_counter()
    listed = list(checks)
    if not listed and not liar.cannot_load:
        return verdict
    hear(liar.descriptor(), listed, verdict, patient, package=liar.package)
    reason = liar.cannot_load
    if reason and verdict.cannot_load and not re.search(reason, verdict.cannot_load):
        verdict.missed.append(f"reason {reason!r}")
    verdict.seconds = round(time.perf_counter() - begin, 2)
    return verdict


def judge_driver(liar: Liar, verdict: Verdict) -> None:
    """Let the HAL suite add what it says about a lying driver."""
    if not liar.hal:
        return
    begin = time.perf_counter()
    _, failed = hal_suite.judge(liar.hal, liar.env, liar.kernel)
    verdict.missed += [id for id in liar.hal if id not in failed]
    verdict.kills += [Kill(f"hal/{failed[id][0]}", "fail", id) for id in liar.hal if id in failed]
    verdict.seconds = round(verdict.seconds + time.perf_counter() - begin, 2)


def hear(
    target: Descriptor,
    checks: Iterable[Check],
    verdict: Verdict,
    patient: bool,
    package: Path | None = None,
    usual: Usual | None = None,
) -> None:
    """Run the checks on a backend and add to the verdict what they say, or why it does not load.

    It ends when a check has noticed something and no requirement is missed; `patient`: at the end.
    `package`: where the processes that this one forks import the backend from. `usual`: where it is
    given, a check that passes with other fallbacks has noticed something, as a comparison with the
    report of the correct backend does.
    """
    added = [str(package)] if package else []
    sys.path[:0] = added
    try:
        _hear(target, checks, verdict, patient, usual)
    except _Enough:
        pass
    except CannotLoad as error:
        verdict.cannot_load = str(error)
    finally:
        for entry in added:
            sys.path.remove(entry)


def _hear(
    target: Descriptor,
    checks: Iterable[Check],
    verdict: Verdict,
    patient: bool,
    usual: Usual | None,
) -> None:
    by_id = {check.id: check for check in checks}
    referee = Judge(target, CATALOGUE, Expectations(), torch.__version__, lambda id: id)

    def emit(result: Result) -> None:
        check = by_id[result.id]
        judged = referee.judge(check, result).result
        verdict.outcomes[check.id] = judged.outcome.value
        if kill := _noticed(judged, usual):
            verdict.kills.append(kill)
            verdict.missed = [id for id in verdict.missed if id not in check.requirements]
            if not verdict.missed and not patient:
                raise _Enough

    pool = Pool(target, Options())
    try:
        found: list[Result] = []
        pool.run(probes.to_probe(target), found.append)
        table = probes.capabilities(target, found)
        capabilities = Capabilities.of(table)
        pool.set_capabilities(capabilities)
        plan = referee.plan(by_id.values(), capabilities)
        for result in plan.decided:
            emit(result)
        pool.run(plan.run, emit)
    finally:
        pool.close()
