# SPDX-License-Identifier: BSD-3-Clause
"""mutants.h for Python: which mutant is active, and a mark for each that is reached."""

from __future__ import annotations

import builtins
import functools
import mmap
import os
import sys

COUNT = 65536


def install() -> None:
    """Let the backend's modules find this one: by a builtin, because they import nothing for it."""
    vars(builtins)["__mutants__"] = sys.modules[__name__]


def on(number: int) -> bool:
    """Whether this is the active mutant; asked by the backend's Python modules."""
    active, reached = _state()
    if reached is not None:
        reached[number] = 1
    return number == active


@functools.cache
def _state() -> tuple[int, mmap.mmap | None]:
    active = int(os.environ.get("PUONE_MUTANT", "-1"))
    return active, shared(os.environ.get("PUONE_MUTANTS_REACHED"))


def shared(file: str | None) -> mmap.mmap | None:
    """The marks in a file, as every process sees them."""
    if not file:
        return None
    with open(file, "r+b") as opened:
        return mmap.mmap(opened.fileno(), COUNT)
