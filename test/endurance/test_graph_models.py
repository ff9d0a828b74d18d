# SPDX-License-Identifier: BSD-3-Clause
"""A replay of a model, and of its training step, equals ordinary calls to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from suites import SIM, STANDIN, needs_standin

PROGRAM = Path(__file__).with_name("graph_models.py")
ROOT = PROGRAM.parents[2]
# Twenty schedules: python test/endurance/graph_models.py --seeds 20
SEEDS = 2


@pytest.mark.parametrize(
    "driver",
    [pytest.param(SIM, id="sim"), pytest.param(STANDIN, id="standin", marks=needs_standin)],
)
def test_replays_of_all_models_equal_ordinary_calls_to_the_bit(driver: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PUONE_")}
    environment |= {
        "PYTHONPATH": f"{ROOT / 'reference_backend'}",
        "PUONE_DRIVER": str(driver),
        "OMP_NUM_THREADS": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--seeds", str(SEEDS)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
