# SPDX-License-Identifier: BSD-3-Clause
"""Who uses CUDA, and what that person reads: a warning per line, an error where nothing replaces it.

PyTorch's own code, the target's and this package's are not users. The module of the frame decides,
by its name.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable
from types import FrameType

#: Code between a user and what the user calls: this package, and the machinery of imports.
_BETWEEN = (__package__, "importlib", "_frozen_importlib", "contextlib", "functools")


class CudaUse(DeprecationWarning):
    """A line uses CUDA by name; the message says what to write for it."""


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
        """Whether the code that called this package is a user's."""
        frame = _outside(sys._getframe(1))
        return frame is not None and not self._is_own(frame)

    def use(self, what: str, advice: str) -> None:
        """Warn the innermost user on the stack, if this line has not been warned of `what`."""
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
    name = _name(frame)
    return any(name == package or name.startswith(f"{package}.") for package in _BETWEEN)


def _outside(frame: FrameType | None) -> FrameType | None:
    """The first frame outside of this package."""
    while frame is not None and _is_between(frame):
        frame = frame.f_back
    return frame
