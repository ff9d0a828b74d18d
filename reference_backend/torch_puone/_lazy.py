# SPDX-License-Identifier: BSD-3-Clause
"""Initialisation on first use, and calls that wait for it.

PyTorch calls `_lazy_init()` before the first tensor of the device type is made. Until then nothing
has touched a device, so that a program may still fork, and what it asked for (a seed) is kept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

import torch

from . import _C


@dataclass(frozen=True)
class _QueuedCall:
    callback: Callable[[], None]
    seed: bool  # sets the random state of the current device
    seed_all: bool  # sets the random state of every device


# Reentrant: a queued call may itself need an initialised device.
_lock = threading.RLock()
_initialized = False
_initializing = False
_forked = False
_queued: list[_QueuedCall] = []


def is_initialized() -> bool:
    """Whether this process uses the device; False in a child forked after its parent did."""
    return _initialized and not _C.in_bad_fork()


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had used the device."""
    return _C.in_bad_fork()


def init() -> None:
    """Initialise the device now rather than at its first use. Does nothing the second time.

    Raises RuntimeError without a usable device and in a bad fork.
    """
    _lazy_init()


def _lazy_init() -> None:
    """Initialise on first use; PyTorch calls this before it makes the first tensor."""
    if is_initialized():
        return
    with _lock:
        if is_initialized() or _initializing:
            return
        _require_device()
        if _forked:
            _renew_thread_pool()
        _run_queued_calls()


def _lazy_call(callback: Callable[[], None], *, seed: bool = False, seed_all: bool = False) -> None:
    """Run `callback` now if initialised, else on initialisation.

    A queued call that seeds replaces those it makes pointless, so that a program which seeds in a
    loop and never uses the device does not collect calls.
    """
    with _lock:
        if not is_initialized():
            _queued[:] = [
                call
                for call in _queued
                if not (call.seed and (seed or seed_all)) and not (call.seed_all and seed_all)
            ]
            _queued.append(_QueuedCall(callback, seed, seed_all))
            return
    callback()


def _require_device() -> None:
    if _C.in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize puone in forked subprocess. To use puone with multiprocessing, "
            "you must use the 'spawn' start method"
        )
    info = _C.driver_info()
    if not info["available"]:
        raise RuntimeError(f"puone is not available: {info['error']}")


def _run_queued_calls() -> None:
    global _initialized, _initializing
    _initializing = True
    try:
        while _queued:
            _queued.pop(0).callback()
    finally:
        _initializing = False
    _initialized = True


def _renew_thread_pool() -> None:
    # A child inherits torch's thread pool without its threads, and torch replaces it the next time
    # the number of threads is set. Two threads that do so at once abort the process with "Invalid
    # thread pool!", and autograd's threads, one per device, set it when they start. So it is done
    # here, before there are any.
    torch.set_num_threads(torch.get_num_threads())


def _after_fork_in_child() -> None:
    # Another thread of the parent may have held the lock; it does not exist here.
    global _lock, _initializing, _forked
    _lock = threading.RLock()
    _initializing = False
    _forked = True


os.register_at_fork(after_in_child=_after_fork_in_child)
