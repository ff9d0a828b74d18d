# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel of the contract is in every driver that has kernels, also where no device is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from suites import CUDA, NO_GPU, ROOT, SIM, STANDIN, needs_cuda_driver, needs_standin

from hal_conformance import contract

FIND = """
import sys
from ctypes import byref, c_void_p
from hal_conformance.driver import Driver
driver = Driver(sys.argv[1])
driver.ok(driver.api.init())
for name in sys.argv[2:]:
    if driver.api.kernel_find(name.encode(), None, byref(c_void_p())) != 0:
        print(name)
"""


@pytest.mark.parametrize(
    "driver",
    [
        pytest.param(SIM, id="sim"),
        pytest.param(CUDA, id="cuda", marks=needs_cuda_driver),
        pytest.param(STANDIN, id="standin", marks=needs_standin),
    ],
)
def test_a_driver_has_every_kernel(driver: Path) -> None:
    command = [sys.executable, "-c", FIND, str(driver), *contract.kernels()]
    done = subprocess.run(
        command, cwd=ROOT, env=NO_GPU, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
