# SPDX-License-Identifier: BSD-3-Clause
"""Parallel programs have the values of one process, under any schedule of the device."""

from __future__ import annotations

from pathlib import Path

import pytest
from program import run

PROGRAM = Path(__file__).with_name("parallel_training.py")
# All of it: python test/endurance/parallel_training.py --seeds 10
SEEDS, RANKS = 1, 2


@pytest.mark.nightly
def test_parallel_programs_equal_one_process_and_no_schedule_changes_a_bit() -> None:
    done = run(PROGRAM, "--seeds", str(SEEDS), "--ranks", str(RANKS), autoload=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "12 cases, 1 adversarial schedules: 0 differ" in done.stdout
