# SPDX-License-Identifier: BSD-3-Clause
"""A replay of a model, and of its training step, equals ordinary calls to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from program import run
from suites import SIM, STANDIN, needs_standin

PROGRAM = Path(__file__).with_name("graph_models.py")
# Twenty schedules: python test/endurance/graph_models.py --seeds 20
SEEDS = 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    "driver",
    [pytest.param(SIM, id="sim"), pytest.param(STANDIN, id="standin", marks=needs_standin)],
)
def test_replays_of_all_models_equal_ordinary_calls_to_the_bit(driver: Path) -> None:
    done = run(PROGRAM, "--seeds", str(SEEDS), driver=driver, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
