# SPDX-License-Identifier: BSD-3-Clause
"""Leaving: what has to happen between the program's last line and static destruction."""

from __future__ import annotations

import contextlib
import sys
from datetime import timedelta
from pathlib import Path

from . import _C
from ._lazy import is_initialized

#: How long calls of process groups that were not destroyed may still take.
GRACE = timedelta(seconds=2)


def shutdown() -> None:
    """Finish queued work and stop the driver. Runs once, as an exit handler."""
    # Work that waits for another process would keep what follows.
    groups = sys.modules.get(f"{__package__}._distributed")
    memory_is_free = groups is None or groups.abort_all(GRACE)
    if is_initialized() and _autograd_has_device_threads():
        # A thread of autograd's that asks for the GIL when the interpreter is gone ends the process
        # with SIGABRT: one that was started but has not run yet does, and so does one that still
        # drops the Python objects of its last task. After one more task, without Python objects,
        # it only waits. An error that nobody asked for is not worth a word now.
        with contextlib.suppress(Exception):
            _C.settle_autograd()
    # The memory that a transport sends from or receives into is left to the operating system.
    if memory_is_free:
        _C.shutdown()


def _autograd_has_device_threads() -> bool:
    names = Path("/proc/self/task").glob("*/comm")
    return any(name.read_text().startswith("pt_autograd_") for name in names)
