# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel of csrc/kernels is in every driver that has kernels, also where no device is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from suites import CUDA, LIBRARIES, NO_GPU, ROOT, STANDIN, needs_cuda_driver, needs_standin

SIM = LIBRARIES / "libpuone_sim.so"

# elementwiseEntry<Add, Numbers>("add"), entry<puone_fill_args, fill>("fill") ...
ENTRY = re.compile(r'[eE]ntry<[^;"]*>\(\s*"([a-z0-9_]+)"')

FIND = """
import sys
from ctypes import byref, c_void_p
from conformance.hal.driver import Driver
driver = Driver(sys.argv[1])
driver.ok(driver.api.init())
for name in sys.argv[2:]:
    if driver.api.kernel_find(name.encode(), None, byref(c_void_p())) != 0:
        print(name)
"""


def names() -> list[str]:
    """Of the kernels in the tables at the end of each family's source."""
    sources = (ROOT / "csrc" / "kernels").glob("*.cpp")
    return sorted({name for file in sources for name in ENTRY.findall(file.read_text())})


def test_the_sources_say_which_kernels_there_are() -> None:
    found = names()
    assert {"add", "fill", "sum", "softmax", "gemm", "sort", "normal"} <= set(found)
    assert len(found) >= 245


@pytest.mark.parametrize(
    "driver",
    [
        pytest.param(SIM, id="sim"),
        pytest.param(CUDA, id="cuda", marks=needs_cuda_driver),
        pytest.param(STANDIN, id="standin", marks=needs_standin),
    ],
)
def test_a_driver_has_every_kernel(driver: Path) -> None:
    command = [sys.executable, "-c", FIND, str(driver), *names()]
    done = subprocess.run(
        command, cwd=ROOT, env=NO_GPU, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
