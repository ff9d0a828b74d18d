# SPDX-License-Identifier: BSD-3-Clause
"""Threads and processes that a program starts in a scope are in it, too.

A forked process is anyway. A process that is spawned enters a scope of its own before it runs its
target, but after it has imported the main module.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Scope = Callable[[], AbstractContextManager[Any]]


def thread_start(real: Any, enter: Scope) -> Any:
    """`threading.Thread.start`: the thread's `run` is inside of `enter()`."""

    @functools.wraps(real)
    def start(self: threading.Thread) -> None:
        run = self.run

        def inside() -> None:
            with enter():
                run()

        self.run = inside  # type: ignore[method-assign]
        real(self)

    return start


class SpawnedTarget:
    """The target of a process, in a scope. Pickled into the process that runs it."""

    def __init__(self, target: Callable[..., Any], scope: Callable[..., Any], device: str) -> None:
        self._target, self._scope, self._device = target, scope, device

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._scope(self._device):
            return self._target(*args, **kwargs)


def process_start(real: Any, scope: Callable[..., Any], device: str) -> Any:
    """`multiprocessing.Process.start`: the target of the process is in `scope(device)`."""

    @functools.wraps(real)
    def start(self: Any) -> None:
        target = getattr(self, "_target", None)
        if target is not None and not isinstance(target, SpawnedTarget):
            self._target = SpawnedTarget(target, scope, device)
        real(self)

    return start
