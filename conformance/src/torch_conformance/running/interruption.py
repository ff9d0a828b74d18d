# SPDX-License-Identifier: BSD-3-Clause
"""Interruptions that come while a process is forked."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def held_back(*signals: signal.Signals) -> Iterator[None]:
    """What the handlers of these signals raise, they raise when the block ends.

    A fork calls what was given to os.register_at_fork, and drops what is raised there: a
    KeyboardInterrupt that came just then would be lost. To block the signals is not enough, as
    threads of libraries would get them. In a child that does not leave the block they do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only
        return
    came: dict[int, None] = {}
    before: dict[signal.Signals, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        came[number] = None

    try:
        for one in signals:
            if callable(signal.getsignal(one)):
                before[one] = signal.signal(one, note)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for number in came:
            signal.raise_signal(number)
