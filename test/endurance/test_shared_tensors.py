# SPDX-License-Identifier: BSD-3-Clause
"""Processes that share tensors and are killed: an error or the right values, and no leak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from suites import SIM

PROGRAM = Path(__file__).with_name("shared_tensors.py")
ROOT = PROGRAM.parents[2]
# More: python test/endurance/shared_tensors.py --seeds 100 --tensors 10000
SEEDS, TENSORS = 10, 300


def test_killed_processes_and_many_tensors_leave_nothing_behind() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PUONE_")}
    environment |= {
        "PYTHONPATH": f"{ROOT / 'reference_backend'}",
        "PUONE_DRIVER": str(SIM),
        "OMP_NUM_THREADS": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--seeds", str(SEEDS), "--tensors", str(TENSORS)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
