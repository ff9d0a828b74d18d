# SPDX-License-Identifier: BSD-3-Clause
"""Processes that share tensors and are killed: an error or the right values, and no leak."""

from __future__ import annotations

from pathlib import Path

import pytest
from program import run
from sanitizers import REPORTS, SANITIZED, build
from suites import SIM

PROGRAM = Path(__file__).with_name("shared_tensors.py")
# More: python test/endurance/shared_tensors.py --seeds 100 --tensors 10000
SEEDS, TENSORS = 10, 300


@pytest.mark.parametrize(
    "sanitizer", ["", pytest.param("address,undefined", marks=pytest.mark.nightly)]
)
def test_killed_processes_and_many_tensors_leave_nothing_behind(sanitizer: str) -> None:
    driver = Path(build(sanitizer)).parents[1] / "lib" / SIM.name if sanitizer else SIM
    done = run(
        *(PROGRAM, "--seeds", str(SEEDS), "--tensors", str(TENSORS)),
        driver=driver,
        environment=SANITIZED if sanitizer else {},
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert not REPORTS.search(done.stdout + done.stderr), done.stdout + done.stderr
