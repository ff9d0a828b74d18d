# SPDX-License-Identifier: BSD-3-Clause
"""Another process that calls functions for a test, and keeps the values that the test names."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from torch import multiprocessing
from typing_extensions import Self

import torch_puone

KEPT: dict[str, Any] = {}


def serve(channel: Connection) -> None:
    """Answer calls until the channel is closed."""
    while True:
        try:
            function, arguments = channel.recv()
        except EOFError:
            return
        except Exception:
            channel.send((False, traceback.format_exc()))
            continue
        try:
            result = function(*arguments)
            torch_puone.synchronize()  # the caller may read at once
            channel.send((True, result))
        except Exception:
            channel.send((False, traceback.format_exc()))
        function = arguments = result = None


class PeerError(Exception):
    """The other process could not do it; the text is its traceback."""


class Peer:
    """A spawned process. Arguments and results of calls travel as `torch.multiprocessing` does it.

    Functions must be importable there: those of this module, or of the test's.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.channel, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(*arguments)` of the other process."""
        self.channel.send((function, arguments))
        return self.answer()

    def answer(self) -> Any:
        """The result of the last call."""
        if not self.channel.poll(60):
            raise TimeoutError("the other process does not answer")
        done, result = self.channel.recv()
        if not done:
            raise PeerError(result)
        return result

    def kill(self) -> None:
        """End it without notice."""
        self.process.kill()
        self.process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.channel.close()
        self.process.join(30)
        self.process.kill()


def keep(name: str, value: Any) -> None:
    """Keep what was received."""
    KEPT[name] = value


def kept(name: str) -> Any:
    """Send what was kept."""
    return KEPT[name]


def values(name: str) -> Any:
    """The values of a tensor that was kept."""
    return KEPT[name].tolist()


def drop(name: str) -> None:
    """Keep it no longer."""
    del KEPT[name]


def drop_all() -> None:
    """Keep nothing."""
    KEPT.clear()


def allocated() -> int:
    """Bytes of its own that tensors take, of device 0."""
    torch_puone.ipc_collect()
    return int(torch_puone.memory_allocated(0))
