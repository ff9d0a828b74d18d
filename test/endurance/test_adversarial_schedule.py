# SPDX-License-Identifier: BSD-3-Clause
"""No schedule that the driver's contract leaves open may change any result by a bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from program import run

PROGRAM = Path(__file__).with_name("schedule_program.py")
SEEDS = 20


@pytest.fixture(scope="module")
def runs() -> Any:
    """What the workload computes under the plain schedule and under adversarial ones."""
    done = run(PROGRAM, str(SEEDS))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_twenty_adversarial_schedules_give_the_same_bits(runs: Any) -> None:
    """A training loop, operators, streams, devices, threads and every random operator."""
    plain = {name: value for name, value in runs["plain"].items() if name != "race"}
    assert len(plain) > 60
    differing = {
        seed: [name for name in plain if found[name] != plain[name]] for seed, found in runs.items()
    }
    assert {seed: names for seed, names in differing.items() if names} == {}
    assert len(runs) == SEEDS + 1


def test_the_schedules_do_differ(runs: Any) -> None:
    """A race, were there one in the workload, would be seen: a planted one is."""
    assert len({found["race"] for found in runs.values()}) > SEEDS // 2
