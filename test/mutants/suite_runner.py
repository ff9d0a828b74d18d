# SPDX-License-Identifier: BSD-3-Clause
"""The suite's own runner on the backend with mutants: in processes forked from this one."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import court  # before all that imports torch, about which it decides
import editable
import msgspec
import mutant_switch
import reach_log
import trial
from mutants import reach
from mutants.reach import Coverage
from mutants.tree import environment, modules
from mutants.verdicts import LOADING, Verdict

from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.spec import descriptor
from torch_conformance.spec.descriptor import Deadlines, Descriptor
from torch_conformance.spec.ids import FULL

#: A mutant that hangs is noticed after so many seconds.
DEADLINES = Deadlines(startup=60, check=30)
#: Parts of the suite that one process records at a time.
SHARE = 1200


class SuiteRunner:
    """Runs checks on mutants, several at a time."""

    def __init__(self, package: Path, folder: Path, processes: int) -> None:
        court.import_checks()
        editable.forget()
        mutant_switch.install()
        self._package, self._folder = package, folder
        # Fresh interpreters would find the backend of the checkout in the working directory first.
        os.chdir(folder)
        self._processes = processes

    def coverage(self) -> tuple[Coverage, dict[str, str]]:
        """What every check reaches, and the outcomes that are not as they should be.

        A check that fails once and passes when it is repeated is left out: it would accuse mutants
        by chance.
        """
        logs = self._folder / "coverage"
        logs.mkdir(exist_ok=True)
        checks = [check.id for check in REGISTRY if check.breadth != FULL]
        shares = [checks[at : at + SHARE] for at in range(0, len(checks), SHARE)]
        wrong: dict[str, str] = {}
        with modules(cold=True) as cache, self._pool() as pool:
            tasks = [(self._package, logs / f"{n}", share, cache) for n, share in enumerate(shares)]
            for done, found in enumerate(pool.map(_recorded, *zip(*tasks, strict=True)), 1):
                wrong |= found
                print(f"  coverage: {done} of {len(tasks)} parts of the suite", flush=True)
        again: dict[str, str] = {}
        if wrong:
            with self._pool() as pool:  # a fresh one, with no marks of the first time
                again = pool.submit(_wrong, self._package, sorted(wrong)).result()
        for check in sorted(wrong.keys() - again.keys()):
            print(f"  left out, because it fails now and then: {check}: {wrong[check]}", flush=True)
        return reach.load(logs.glob("*.log"), set(checks), without=wrong.keys()), again

    def judge(
        self, mutants: dict[int, list[str]], usual: trial.Usual, cold: Container[int]
    ) -> Iterator[Verdict]:
        """Each mutant before the checks that are named for it, until one of them notices.

        `usual`: what runs on the CPU during each check without any mutant. `cold`: those that find
        no compiled module in the cache.
        """
        with self._pool() as pool:
            tasks = [
                pool.submit(_judged, self._package, n, checks, _of(checks, usual), n in cold)
                for n, checks in mutants.items()
            ]
            for task in as_completed(tasks):
                yield task.result()

    def _pool(self) -> ProcessPoolExecutor:
        # Not multiprocessing.Pool: its processes may have no children, and checks have.
        return ProcessPoolExecutor(self._processes, multiprocessing.get_context("fork"))


def _of(checks: Iterable[str], usual: trial.Usual) -> trial.Usual:
    return {check: usual[check] for check in checks if check in usual}


def _backend(package: Path, env: Mapping[str, str]) -> Descriptor:
    true = descriptor.find("puone")
    env = {**env, **environment(package)}
    return msgspec.structs.replace(true, file=None, deadlines=DEADLINES, env=env)


def _recorded(
    package: Path, log: Path, checks: list[str], cache: Mapping[str, str]
) -> dict[str, str]:
    marks, lines = log.with_suffix(".marks"), log.with_suffix(".log")
    marks.write_bytes(bytes(mutant_switch.COUNT))
    lines.unlink(missing_ok=True)
    reach.record()
    env = {reach_log.MARKS: str(marks), reach_log.LOG: str(lines), **cache}
    wrong = _wrong(package, checks, **env)
    marks.unlink()
    return wrong


def _wrong(package: Path, checks: list[str], **env: str) -> dict[str, str]:
    """What is wrong with checks without any mutant."""
    verdict = _run(package, checks, env, patient=True)
    if verdict.cannot_load:
        raise RuntimeError(f"the backend does not load without any mutant: {verdict.cannot_load}")
    return {kill.check: f"{kill.outcome}: {kill.message}" for kill in verdict.kills}


def _judged(
    package: Path, number: int, checks: list[str], usual: trial.Usual, cold: bool
) -> Verdict:
    begin = time.perf_counter()
    if not checks:
        return Verdict(number)
    try:
        with modules(cold) as cache:
            active = {"PUONE_MUTANT": str(number), **cache}
            found = _run(package, checks, active, patient=False, usual=usual)
    except Exception as error:  # One trial that cannot be held does not end the others.
        return Verdict(number, broken=repr(error))
    kill = found.kills[0] if found.kills else None
    return Verdict(
        number,
        killed=found.killed,
        by=kill.check if kill else LOADING if found.cannot_load else "",
        outcome=kill.outcome if kill else "",
        message=(kill.message if kill else found.cannot_load or "")[:500],
        ran=len(found.outcomes),
        seconds=round(time.perf_counter() - begin, 2),
    )


def _run(
    package: Path,
    checks: Iterable[str],
    env: Mapping[str, str],
    *,
    patient: bool,
    usual: trial.Usual | None = None,
) -> trial.Verdict:
    verdict = trial.Verdict("")
    by_id: dict[str, Any] = {check.id: check for check in REGISTRY}
    listed: list[Check] = [by_id[id] for id in checks]
    trial.hear(_backend(package, env), listed, verdict, patient, package, usual)
    return verdict
