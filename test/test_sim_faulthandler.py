# SPDX-License-Identifier: BSD-3-Clause
"""A bad access to simulated device memory is named, with Python's faulthandler before or after."""

from __future__ import annotations

import pytest
from interpreter import Python
from suites import SIM

START = f"""
from hal_conformance import kernels
from hal_conformance.driver import Driver
driver = Driver({str(SIM)!r})
driver.ok(driver.api.init())
block = driver.malloc(4096)
"""
FAULTHANDLER = "import faulthandler; faulthandler.enable()\n"
ORDERS = {
    "none": START,
    "before": FAULTHANDLER + START,
    "after": START + FAULTHANDLER,
}
HOST = "import ctypes; ctypes.string_at(block, 1)\n"
KERNEL = """
stream = driver.stream()
driver.launch("fill", kernels.fill([8192], (block, [1]), b"x"), stream)
driver.synchronize(stream)
"""
HOST_LINE = "puone sim: host dereferenced device memory (puone:0 + 0x"
KERNEL_LINE = "puone sim: kernel fill ran out of its memory: it touched puone:0 + 0x"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("access", "line"), [(HOST, HOST_LINE), (KERNEL, KERNEL_LINE)])
def test_the_culprit_is_named(python: Python, order: str, access: str, line: str) -> None:
    done = python(ORDERS[order] + access)
    assert done.returncode == -11, done.stderr
    assert line in done.stderr
    if order != "none":
        assert "Fatal Python error: Segmentation fault" in done.stderr


def test_a_signal_that_was_sent_still_kills(python: Python) -> None:
    done = python(START + "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert done.returncode == -11
    assert "puone sim:" not in done.stderr
