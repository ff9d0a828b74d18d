# SPDX-License-Identifier: BSD-3-Clause
"""The snapshot of the installed torch: taken once per machine, whatever the number of workers."""

from __future__ import annotations

import fcntl
import functools

from trees import installed_tree

from torch_backend_ci.surface import snapshot
from torch_backend_ci.surface.model import Snapshot
from torch_backend_ci.torch_tree.cache import default_folder


@functools.cache
def installed_snapshot() -> Snapshot:
    """Out of the user's cache, or read (10 s) while other workers wait."""
    folder = default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".tests.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return snapshot.take(installed_tree(), folder)
