# SPDX-License-Identifier: BSD-3-Clause
"""Both suites face drivers that lie; each lie must be caught under the right requirement.

The table is printed, and written to build/liars/kill_table.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from kill_table import Liar, Verdict, conformance, hal, liars
from suites import ROOT

TABLE = ROOT / "build" / "liars" / "kill_table.md"
LIARS = liars()
TRUTH = "none"


@dataclass(frozen=True)
class Trial:
    """One liar before both suites; the runs may still be going on."""

    conformance: Future[Verdict]
    hal: Future[Verdict]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Trial]]:
    """Every liar, and the truth, before both suites, as many at a time as there are cores."""
    folder = tmp_path_factory.mktemp("liars")
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def start(id: str, checks: list[str], requirements: list[str]) -> Trial:
            return Trial(
                pool.submit(conformance, id, checks, folder),
                pool.submit(hal, id, requirements, folder),
            )

        everything = sorted({check for liar in LIARS.values() for check in liar.checks})
        started = {TRUTH: start(TRUTH, everything, [])}
        for liar in LIARS.values():
            started[liar.id] = start(liar.id, list(liar.checks), list(liar.hal))
        yield started
        pool.shutdown(cancel_futures=True)


def test_the_truth_passes_both_suites(trials: dict[str, Trial]) -> None:
    """The wrapper itself changes nothing: otherwise a kill would prove nothing."""
    truth = trials[TRUTH]
    assert truth.conformance.result().failed == {}
    assert truth.hal.result().failed == {}
    named = {name for liar in LIARS.values() for name in liar.conformance}
    assert named <= set(truth.conformance.result().ran)
    assert {name for liar in LIARS.values() for name in liar.hal} <= set(truth.hal.result().ran)


@pytest.mark.parametrize("liar", LIARS.values(), ids=list(LIARS))
def test_the_conformance_suite_catches(liar: Liar, trials: dict[str, Trial]) -> None:
    verdict = trials[liar.id].conformance.result()
    assert verdict.missed(liar.conformance) == [], f"not caught: {liar.lie}"


@pytest.mark.parametrize("liar", LIARS.values(), ids=list(LIARS))
def test_the_hal_suite_catches(liar: Liar, trials: dict[str, Trial]) -> None:
    verdict = trials[liar.id].hal.result()
    assert verdict.missed(liar.hal) == [], f"not caught: {liar.lie}"


def test_the_kill_table_is_complete(
    trials: dict[str, Trial], capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [_row(liar, trials[liar.id]) for liar in LIARS.values()]
    killed = sum(row.startswith("| killed") for row in rows)
    summary = f"{killed} of {len(LIARS)} lying drivers are caught by both suites"
    head = "| | driver | conformance (failed/run) | HAL suite (failed/run) |\n|---|---|---|---|"
    text = "\n".join([f"# {summary}", "", head, *rows, ""])
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(text)
    with capfd.disabled():
        print(f"\n{text}")
    assert killed == len(LIARS)


def _row(liar: Liar, trial: Trial) -> str:
    by_conformance, by_hal = trial.conformance.result(), trial.hal.result()
    missed = by_conformance.missed(liar.conformance) or by_hal.missed(liar.hal)
    cells = [
        "ALIVE" if missed else "killed",
        liar.id,
        by_conformance.text(liar.conformance),
        by_hal.text(liar.hal),
    ]
    return f"| {' | '.join(cells)} |"


def test_every_lie_of_the_library_is_on_trial() -> None:
    source = (Path(__file__).parent / "hal" / "lies.cpp").read_text()
    told = [line.split('"')[1] for line in source.splitlines() if line.strip().startswith('{"')]
    assert told == [TRUTH, *LIARS]
