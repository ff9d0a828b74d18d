# SPDX-License-Identifier: BSD-3-Clause
"""Work in several processes ends when its parent is told to end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from torch_backend_ci.dashboard.workers import Workers

_after_fork: list[Callable[[], None]] = []
os.register_at_fork(after_in_parent=lambda: [do() for do in _after_fork])


@pytest.fixture
def interrupted_by_a_fork() -> Iterator[None]:
    """Ctrl-C comes while the parent does what has to be done after a fork."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    _after_fork.append(lambda: os.kill(os.getpid(), signal.SIGINT))
    yield
    _after_fork.clear()
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupted_by_a_fork")
def test_an_interruption_while_a_process_is_forked_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt):
        Workers(2).map(lambda seconds: time.sleep(seconds), [5.0, 5.0], "naps")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
