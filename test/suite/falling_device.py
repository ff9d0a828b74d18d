# SPDX-License-Identifier: BSD-3-Clause
"""A backend that comes up until a marker file exists: the CPU in disguise."""

from __future__ import annotations

import os


def set_up() -> str:
    """The device, unless a check has taken it down."""
    if os.path.exists(os.environ["PLANTED_MARKER"]):
        raise RuntimeError("the device fell off the bus")
    return "cpu"
