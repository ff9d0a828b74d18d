# SPDX-License-Identifier: BSD-3-Clause
"""Threads and processes that a program starts in a scope are in it, too.

A forked process is anyway: it is a copy.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def thread_start(real: Any, enter: Callable[[], AbstractContextManager[Any]]) -> Any:
    """`threading.Thread.start`: the thread's `run` is inside of `enter()`."""

    @functools.wraps(real)
    def start(self: threading.Thread) -> None:
        run = self.run

        def inside() -> None:
            with enter():
                run()

        self.run = inside  # type: ignore[method-assign]  # of this thread only
        real(self)

    return start


class _Call:
    """Calls a function with its arguments in the process that unpickles it, and is the result."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


def preparation_data(real: Any, first: Callable[[], tuple[Any, ...]]) -> Any:
    """`multiprocessing.spawn.get_preparation_data`: a spawned process makes the call `first()`,
    (function, argument...), before anything else.

    The data is the first thing that such a process reads. It imports the main module of the program
    when it has read it; what that module imports by name must be substituted by then.
    """

    @functools.wraps(real)
    def data(name: str) -> dict[str, Any]:
        return {**real(name), "cuda_as": _Call(*first())}

    return data
