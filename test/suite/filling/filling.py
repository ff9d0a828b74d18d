# SPDX-License-Identifier: BSD-3-Clause
"""Checks that say when they ran; some would fill a device."""

from __future__ import annotations

import os
import time

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


def _run(name: str) -> None:
    begin = time.monotonic()
    time.sleep(0.2)
    with open(os.environ["PLANTED_MARKER"], "a") as log:
        log.write(f"{name} {begin} {time.monotonic()}\n")


@check("filling/whole", "FILL-001", cases=tuple("abc"), needs=("memory_limit",))
def fills(dev: Device, case: str) -> None:
    """Would use up the memory of a device."""
    _run("whole")


@check("filling/part", "FILL-001", cases=tuple("abcdef"))
def shares(dev: Device, case: str) -> None:
    """Would use some of it."""
    _run("part")


@check("filling/isolated", "FILL-001", isolate=True)
def shares_in_its_own_process(dev: Device) -> None:
    """Would use some of it, too."""
    _run("part")


@check("filling/whole:isolated", "FILL-001", needs=("memory_limit",), isolate=True)
def fills_in_its_own_process(dev: Device) -> None:
    """Would use up the memory, in a process of its own."""
    _run("whole")
