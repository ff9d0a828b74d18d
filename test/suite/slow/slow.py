# SPDX-License-Identifier: BSD-3-Clause
"""Checks that take half a second each and name their process."""

from __future__ import annotations

import os
import time

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


@check("slow/nap", "SLOW-001", cases=tuple(f"n{i}" for i in range(60)))
def naps(dev: Device, case: str) -> None:
    """Names its process and sleeps."""
    with open(os.environ["PLANTED_PID_FILE"], "a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(0.5)
