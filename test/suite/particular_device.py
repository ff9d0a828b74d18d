# SPDX-License-Identifier: BSD-3-Clause
"""Backends with wishes about the processes they are used from: the CPU in disguise."""

from __future__ import annotations

import fcntl
import os
from typing import TextIO


class Exclusive:
    """A device that one process at a time may hold, as long as this object lives."""

    device = "cpu"

    def __init__(self) -> None:
        self._lock: TextIO = open(os.environ["PLANTED_MARKER"], "a", encoding="ascii")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Leave a trace of the orderly end."""
        with open(os.environ["PLANTED_PID_FILE"], "a", encoding="ascii") as file:
            file.write("closed\n")


def launched() -> str:
    """A device for processes that came through the launcher."""
    if os.environ.get("PLANTED_LAUNCHER") != "used":
        raise RuntimeError("use the launcher")
    return "cpu"
