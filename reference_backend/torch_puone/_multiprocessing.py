# SPDX-License-Identifier: BSD-3-Clause
"""Storages of this device in `torch.multiprocessing`: queues, pipes, arguments of processes.

torch pickles a tensor for another process as its storage and what lies over it, and knows how to
share storages of the CPU and of CUDA. This adds ours, until torch has hooks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from . import _C
from ._lazy import _lazy_init
from ._registration import NAME

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def register() -> None:
    """Make the pickler of torch.multiprocessing share storages of this device."""
    ForkingPickler.register(torch.UntypedStorage, _reduce)


def _reduce(storage: torch.UntypedStorage) -> Reduced:
    if storage.device.type != NAME:
        reduced: Reduced = reductions.reduce_storage(storage)
        return reduced
    _lazy_init()
    if storage.nbytes() == 0:
        return _rebuild_empty, (storage.device.index,)
    place, ticket = _C.send_storage(storage)
    # This process may receive it itself, or get it back.
    reductions.shared_cache[place] = reductions.StorageWeakRef(storage)
    return _rebuild, (place, ticket)


def _rebuild_empty(device: int) -> torch.UntypedStorage:
    _lazy_init()
    return torch.UntypedStorage(0, device=torch.device(NAME, device))


def _rebuild(place: bytes, ticket: bytes) -> torch.UntypedStorage:
    """The storage at `place`: the one that this process has, or a new one on the shared memory."""
    _lazy_init()
    known: torch.UntypedStorage | None = reductions.storage_from_cache(torch.UntypedStorage, place)
    if known is not None:
        _C.acknowledge_storage(place, ticket)
        return known
    storage = _C.receive_storage(place, ticket)
    reductions.shared_cache[place] = reductions.StorageWeakRef(storage)
    return storage
