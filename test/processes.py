# SPDX-License-Identifier: BSD-3-Clause
"""What tests ask about processes that are not their children."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path


def is_running(pid: int) -> bool:
    """Whether a process runs; one that waits for its parent to notice its end does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_until_gone(pids: Iterable[int]) -> set[int]:
    """Those of the processes that still run after ten seconds: ending takes a process a while."""
    end = time.monotonic() + 10.0
    left = set(pids)
    while (left := {pid for pid in left if is_running(pid)}) and time.monotonic() < end:
        time.sleep(0.05)
    return left
