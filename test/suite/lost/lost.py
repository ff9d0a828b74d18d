# SPDX-License-Identifier: BSD-3-Clause
"""A check that takes the device down (see falling_device.py), and checks behind it."""

from __future__ import annotations

import os
from pathlib import Path

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


@check("lost/a_good", "LOST-001")
def passes(dev: Device) -> None:
    """Passes."""


@check("lost/b_killer", "LOST-001")
def takes_the_device_down(dev: Device) -> None:
    """Makes every later start of the backend fail, and dies."""
    Path(os.environ["PLANTED_MARKER"]).touch()
    os.abort()


@check("lost/c_behind", "LOST-001", cases=tuple(f"n{i}" for i in range(8)))
def comes_too_late(dev: Device, case: str) -> None:
    """Would pass."""
