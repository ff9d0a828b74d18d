# SPDX-License-Identifier: BSD-3-Clause
"""A check whose hang a signal ends, one behind it that tells how often it was begun, and one that
is slow to tell where it hangs.
"""

from __future__ import annotations

import ctypes
import os
import subprocess

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


@check("woken/a_hang", "WOKEN-001", deadline=1.0)
def hangs_until_a_signal(dev: Device) -> None:
    """Sleeps in C, which returns when a signal has been handled."""
    ctypes.PyDLL(None).sleep(600)


@check("woken/b_behind", "WOKEN-001")
def is_begun_once(dev: Device) -> None:
    """Leaves a mark, and dies."""
    with open(os.environ["PLANTED_MARKER"], "a", encoding="ascii") as file:
        file.write("begun\n")
    os.abort()


@check("woken/c_slow", "WOKEN-001", deadline=1.0)
def hangs_where_nothing_runs(dev: Device) -> None:
    """Is stopped when it is asked, as on a machine that has too much to do."""
    stop, go_on = (f"kill -{signal} {os.getpid()}" for signal in ("STOP", "CONT"))
    subprocess.Popen(["sh", "-c", f"sleep 0.5; {stop}; sleep 1; {go_on}"])
    ctypes.PyDLL(None).sleep(600)


@check("woken/d_last", "WOKEN-001", cases=tuple(f"n{i}" for i in range(8)))
def passes(dev: Device, case: str) -> None:
    """Passes; near the end of the queue a worker would not hold the check behind the hang."""
