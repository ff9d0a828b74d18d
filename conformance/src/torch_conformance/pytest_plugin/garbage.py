# SPDX-License-Identifier: BSD-3-Clause
"""When Python looks for garbage."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def not_collected() -> Iterator[None]:
    """Nothing is looked at in the block, and what there is at its end is never looked at again.

    For the collection of tests: modules and tests stay until the end, and looking for garbage among
    them, again and again, takes a quarter of the time of a short run.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
