# SPDX-License-Identifier: BSD-3-Clause
"""Who uses CUDA, and what is reported: a warning per line, an error where nothing replaces it.

PyTorch's own code, the target's and this package's are not users; the module of a frame decides, by
its name. Python's library acts for the code that calls it.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import threading
import warnings
from collections.abc import Iterable
from types import FrameType

import torch

_LIBRARY = sysconfig.get_path("stdlib") + os.sep


class CudaUse(DeprecationWarning):
    """A line uses CUDA by name; the message says what to write for it."""


def show_uses() -> None:
    """Show every `CudaUse`, unless the person who started Python has chosen otherwise (-W).

    Python hides DeprecationWarnings of imported modules.
    """
    if not sys.warnoptions:
        warnings.simplefilter("always", CudaUse)


def uses_are_shown() -> bool:
    """Whether `show_uses` is in effect."""
    return any(category is CudaUse for _, _, category, _, _ in warnings.filters)


class NoEquivalent(AttributeError):
    """Nothing replaces a name of `torch.cuda` on the device of this run.

    An AttributeError, so that `hasattr(torch.cuda, name)` is False.
    """


class Notices:
    """The warnings of one scope: each (file, line, what) once. Any thread may use it."""

    def __init__(self, own: Iterable[str]) -> None:
        """`own`: root packages, besides torch, whose code is no user."""
        self._own = frozenset({"torch", "torchgen", "functorch", *own})
        self._seen: set[tuple[str, int, str]] = set()
        self._lock = threading.Lock()

    def from_user(self) -> bool:
        """Whether the code that called this package is a user's.

        What torch.compile traces is: nothing can be asked there.
        """
        if torch.compiler.is_dynamo_compiling():
            return True
        frame = _outside(sys._getframe(1))
        return frame is not None and not self._is_own(frame)

    def use(self, what: str, advice: str) -> None:
        """Warn the innermost user on the stack, if this line has not been warned of `what`.

        Nothing is reported of code that torch.compile traces.
        """
        if torch.compiler.is_dynamo_compiling():
            return
        frame = _outside(sys._getframe(1))
        while frame is not None and (self._is_own(frame) or _is_between(frame)):
            frame = frame.f_back
        if frame is None:
            return
        key = (frame.f_code.co_filename, frame.f_lineno, what)
        with self._lock:
            if key in self._seen:
                return
            self._seen.add(key)
        warnings.warn_explicit(
            f"{what}: {advice}", CudaUse, key[0], key[1], module=_name(frame), registry={}
        )

    def _is_own(self, frame: FrameType) -> bool:
        return _name(frame).partition(".")[0] in self._own


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_between(frame: FrameType) -> bool:
    """Whether this package or Python's library runs."""
    name = _name(frame)
    ours = name == __package__ or name.startswith(f"{__package__}.")
    return ours or _is_library(frame.f_code.co_filename)


@functools.cache
def _is_library(file: str) -> bool:
    # By the file: programs have modules with names such as "test", too.
    in_library = file.startswith(_LIBRARY) and "site-packages" not in file
    return in_library or file.startswith("<frozen ")


def _outside(frame: FrameType | None) -> FrameType | None:
    """The first frame outside of this package and of Python's library."""
    while frame is not None and _is_between(frame):
        frame = frame.f_back
    return frame
