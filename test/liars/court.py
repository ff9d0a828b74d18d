# SPDX-License-Identifier: BSD-3-Clause
"""Trials of many liars at once, in processes that share what is imported once."""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace

from torch_conformance.authoring.backend import prepare_parent
from torch_conformance.authoring.discovery import all_checks

# It must come before the imports below, which import torch; hence each E402.
prepare_parent()

import editable  # noqa: E402
import trial  # noqa: E402
from liar import BUILD, Liar, make_packages  # noqa: E402
from trial import Verdict  # noqa: E402

Progress = Callable[[Liar, Verdict], None]


def import_checks() -> None:
    """Import, once for all trials, every check and what checks import while they run."""
    importlib.import_module("torch._dynamo")
    all_checks()


class Court:
    """Judges in processes of their own, forked from this one when it has imported everything."""

    def __init__(self, processes: int) -> None:
        import_checks()
        # Not in the checkout: fresh interpreters would find the true backend in it first.
        BUILD.mkdir(parents=True, exist_ok=True)
        os.chdir(BUILD)
        editable.forget()
        # Not multiprocessing.Pool: its processes may have no children, and checks have.
        self._pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"))

    def __enter__(self) -> Court:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def judge(self, liars: Iterable[Liar], progress: Progress) -> list[Verdict]:
        """The verdict on each liar, in their order; the progress is told as they come."""
        listed = list(liars)
        for liar in listed:
            trial.checks_for(liar)  # Said now, not in the middle of the trials.
        make_packages(listed)
        by_id = {liar.id: liar for liar in listed}
        verdicts = {}
        for future in as_completed([self._pool.submit(_judge, liar) for liar in listed]):
            verdict = future.result()
            progress(by_id[verdict.liar], verdict)
            verdicts[verdict.liar] = verdict
        return [verdicts[id] for id in by_id]

    def truths(self, liars: Iterable[Liar], verdicts: Iterable[Verdict]) -> list[Verdict]:
        """What the checks that were run say to the vehicles without a lie."""
        used: dict[str, set[str]] = defaultdict(set)
        hal: dict[str, set[str]] = defaultdict(set)
        honest: dict[str, Liar] = {}
        for liar, verdict in zip(liars, verdicts, strict=True):
            used[liar.vehicle].update(verdict.outcomes)
            hal[liar.vehicle].update(liar.hal)
            honest[liar.vehicle] = liar.honest
        trials = [
            (replace(true, hal=tuple(sorted(hal[vehicle]))), sorted(used[vehicle]))
            for vehicle, true in sorted(honest.items())
        ]
        for true, checks in trials:
            print(f"without a lie: {true.vehicle} faces {len(checks)} checks", flush=True)
        return list(self._pool.map(_tell_the_truth, *zip(*trials, strict=True)))


def _judge(liar: Liar) -> Verdict:
    try:
        return _judged(liar)
    except Exception as error:  # One trial that cannot be held does not end the others.
        return Verdict(liar.id, missed=list(liar.requirements), broken=repr(error))


def _judged(liar: Liar) -> Verdict:
    verdict = trial.judge(liar, trial.checks_for(liar))
    trial.judge_driver(liar, verdict)
    return verdict if verdict.killed else trial.judge(liar, trial.all_but_opinfo())


def _tell_the_truth(honest: Liar, checks: list[str]) -> Verdict:
    verdict = trial.judge(honest, trial.selected(checks), patient=True)
    trial.judge_driver(honest, verdict)
    return verdict
