# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of collectives agree with a model, and none hangs when a rank dies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from collective_programs import CALLS, DEATHS, Program, model, must_fail, plan
from collective_ranks import Result
from collective_verdicts import Ended, judge
from program import run
from suites import OVER_FAKE_NCCL, STANDIN, needs_standin

PROGRAM = Path(__file__).with_name("random_collectives.py")
# A thousand: python test/endurance/random_collectives.py --runs 500
RUNS = 8


@pytest.mark.nightly
def test_random_programs_of_two_and_four_ranks_agree_with_a_model() -> None:
    done = run(PROGRAM, "--runs", str(RUNS))
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert f"{2 * RUNS} programs" in done.stdout


@pytest.mark.nightly
@needs_standin
def test_they_do_with_the_native_transport_too() -> None:
    """Over the stand-ins for CUDA and NCCL, with a device for each rank."""
    devices = {"PUONE_STANDIN_DEVICES": "4", "PUONE_STANDIN_MEMORY": "512", "PUONE_PCCL": "native"}
    done = run(
        PROGRAM,
        *("--runs", str(RUNS), "--bound"),
        driver=STANDIN,
        environment={**devices, **OVER_FAKE_NCCL},
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert f"{2 * RUNS} programs" in done.stdout


def test_the_programs_have_every_call_and_every_death() -> None:
    programs = [plan(seed, ranks) for seed in range(300) for ranks in (2, 4)]
    assert {step.call for program in programs for step in program.steps} == set(CALLS)
    assert {program.death.how for program in programs if program.death} == set(DEATHS)
    assert any(program.orders[0] != program.orders[1] for program in programs)
    assert any(must_fail(program, 0) for program in programs)


def test_a_seed_is_one_program() -> None:
    assert plan(7, 4) == plan(7, 4) != plan(8, 4)
    one, other = model(plan(7, 4)), model(plan(7, 4))
    for ours, theirs in zip(one.end, other.end, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(ours, theirs, strict=True))


def _judged(program: Program, *results: Result | None, status: int | None = 0) -> list[str]:
    return judge(program, [Ended(status, result, 0.0, "") for result in results])


def test_wrong_values_errors_without_a_death_crashes_and_hangs_are_noticed() -> None:
    program = plan(0, 2)
    assert program.death is None
    right = Result("right")
    assert _judged(program, right, right) == []
    assert _judged(program, right, Result("wrong", "slot 1")) == ["rank 1: wrong: slot 1"]
    assert _judged(program, Result("error", "DistBackendError: pccl, rank 0: x"), right)
    assert _judged(program, right, right, status=-11)
    assert _judged(program, right, right, status=None)
    assert _judged(program, right, None)


def test_a_rank_that_needs_a_dead_one_must_not_end_without_an_error() -> None:
    program = next(
        program
        for program in (plan(seed, 2) for seed in range(2, 300, 3))
        if program.death and program.death.rank == 1 and must_fail(program, 0)
        if program.death.how == "exit"
    )
    error = Result("error", "DistBackendError: pccl, rank 0: x")
    assert _judged(program, error, None) == []
    assert _judged(program, Result("right"), None)
    assert _judged(program, Result("error", "RuntimeError: x"), None)
    late = Result("error", error.text, at=1000.0)
    assert _judged(program, late, None)
