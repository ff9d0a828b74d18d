# SPDX-License-Identifier: BSD-3-Clause
"""The HAL suite faces drivers that lie; each lie must be caught under the right requirements."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import hal_suite
import liar
import pytest

LIARS = {name: found for name, found in liar.load().items() if found.vehicle == liar.HAL}
TRUTH = "none"

Trials = dict[str, Future[hal_suite.Verdict]]


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    """Every lying driver, and the honest wrapper, as many at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        honest = next(iter(LIARS.values())).honest
        started = {TRUTH: pool.submit(hal_suite.judge, [], honest.env)}
        for name, found in LIARS.items():
            started[name] = pool.submit(hal_suite.judge, found.hal, found.env)
        yield started
        pool.shutdown(cancel_futures=True)


def test_the_wrapper_itself_changes_nothing(trials: Trials) -> None:
    """Otherwise a kill would prove nothing."""
    truth = trials[TRUTH].result()
    assert truth.failed == {}
    assert {id for found in LIARS.values() for id in found.hal} <= set(truth.ran)


@pytest.mark.parametrize("name", LIARS)
def test_the_hal_suite_catches(name: str, trials: Trials) -> None:
    failed = trials[name].result().failed
    assert set(LIARS[name].hal) - set(failed) == set(), f"not caught: {LIARS[name].lie}"


def test_every_lie_of_the_library_is_on_trial() -> None:
    source = (Path(__file__).parent / "hal" / "lies.cpp").read_text()
    told = [line.split('"')[1] for line in source.splitlines() if line.strip().startswith('{"')]
    assert told == [TRUTH, *LIARS]
