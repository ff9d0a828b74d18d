# SPDX-License-Identifier: BSD-3-Clause
"""The block in which another accelerator takes the place of CUDA."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from multiprocessing import spawn
from typing import Any

import torch

from . import calls
from .modules import PROXIED, Names
from .notices import Notices, show_uses, uses_are_shown
from .target import Target
from .tensors import CudaMode, backward_function
from .workers import preparation_data, thread_start

_MISSING = object()
_lock = threading.RLock()
_open: _Scope | None = None


@contextlib.contextmanager
def cuda_as(device: str | None = None) -> Iterator[None]:
    """A block in which `device` takes the place of CUDA devices.

    In it, "cuda" and "cuda:1" mean `device`, `.cuda()` moves there, and `torch.cuda` is what that
    device has of it. Each line that uses CUDA by name gets one `CudaUse` (a DeprecationWarning)
    that says what to write for it; what has no equivalent raises `NoEquivalent`. PyTorch's own code
    sees the real `torch.cuda`. At the end of the block, also by an exception, all is as before.

    The names in torch are the process's, so all threads see them. Device arguments are translated
    in the thread that enters the block and in those that are started in it; another thread may
    enter the block itself. Blocks may be nested.

    Args:
        device: a device type such as "puone" or "xpu"; None for the current accelerator.

    Raises RuntimeError if there is no such device type, or if a block for another one is open.
    """
    scope = _entered(device)
    try:
        with scope.mode():
            yield
    finally:
        scope.leave()


def enter_for_process(device: str | None = None, show: bool = True, backend: str = "torch") -> None:
    """Enter a block for the rest of this process. RuntimeError as from `cuda_as`.

    It ends behind what the program registers for its end, which may still use the names.

    Args:
        device: as for `cuda_as`.
        show: whether each `CudaUse` is shown (`show_uses`).
        backend: a module to import first, of a backend that `import torch` may not load.
    """
    importlib.import_module(backend)
    if show:
        show_uses()
    block = cuda_as(device)
    block.__enter__()
    atexit.register(block.__exit__, None, None, None)


def _entered(device: str | None) -> _Scope:
    global _open
    with _lock:
        if _open is None:
            _open = _Scope(Target(device))
        elif device is not None and device != _open.target.type:
            raise RuntimeError(
                f"{_open.target.type!r} takes the place of CUDA devices already; {device!r} cannot "
                "at the same time"
            )
        _open.entries += 1
        return _open


class _Scope:
    """What is substituted while at least one block is open. Guarded by `_lock`."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.entries = 0
        self._notices = Notices(target.packages)
        self._names = Names(target, self._notices)
        self._undo = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            self._substitute_modules(undo)
            self._substitute_calls(undo)
            undo.callback(setattr, self._names, "open", False)
            self._undo = undo.pop_all()

    def mode(self) -> CudaMode:
        return CudaMode(self.target, self._notices)

    def leave(self) -> None:
        global _open
        with _lock:
            self.entries -= 1
            if self.entries == 0:
                _open = None
                self._undo.close()

    def _substitute_modules(self, undo: contextlib.ExitStack) -> None:
        for name in PROXIED:
            real = sys.modules.get(name)
            if real is None:
                continue
            proxy = self._names.proxy(real)
            undo.callback(sys.modules.__setitem__, name, real)
            sys.modules[name] = proxy
            parent, _, attribute = name.rpartition(".")
            if parent in ("torch", "torch.backends"):  # others are reached through a proxy
                _substitute(undo, sys.modules[parent], attribute, proxy)

    def _substitute_calls(self, undo: contextlib.ExitStack) -> None:
        for owner, attribute, replace in _substitutions():
            real = getattr(owner, attribute)
            new = replace(real, self.target, self._notices)
            _substitute(undo, owner, attribute, new)
        backward = torch.autograd.function.BackwardCFunction
        _substitute(undo, backward, "apply", backward_function(backward.apply, self.mode()))
        start = thread_start(threading.Thread.start, self._in_thread)
        _substitute(undo, threading.Thread, "start", start)
        data = preparation_data(
            spawn.get_preparation_data,
            lambda: (
                enter_for_process,
                self.target.type,
                uses_are_shown(),
                self.target.import_name,
            ),
        )
        _substitute(undo, spawn, "get_preparation_data", data)

    @contextlib.contextmanager
    def _in_thread(self) -> Iterator[None]:
        """The mode only: a thread does not keep a scope open that its starter closes."""
        with self.mode():
            yield


def _substitute(undo: contextlib.ExitStack, owner: Any, name: str, new: Any) -> None:
    """Set an attribute, and have `undo` restore it."""
    old = vars(owner).get(name, _MISSING)
    if old is _MISSING:
        undo.callback(delattr, owner, name)
    else:
        undo.callback(setattr, owner, name, old)
    setattr(owner, name, new)


def _substitutions() -> Iterator[tuple[Any, str, calls.Replace]]:
    """(owner, attribute, what makes the replacement) of everything that no mode sees."""
    yield torch.nn.Module, "cuda", calls.cuda_method
    yield torch.UntypedStorage, "cuda", calls.cuda_method
    yield torch.nn.utils.rnn.PackedSequence, "is_cuda", calls.is_cuda
    yield torch.amp.autocast_mode.autocast, "__init__", calls.method
    yield torch.amp.GradScaler, "__init__", calls.grad_scaler
    yield torch.utils.data.DataLoader, "__init__", calls.method
    yield torch.profiler.profile, "__init__", calls.profile
    yield torch.autograd.profiler.profile, "__init__", calls.autograd_profile
    for name in ("Generator", "Stream", "Event"):
        yield torch, name, calls.device_class
    for owner in (torch, torch.serialization):
        yield owner, "load", calls.load
    yield torch, "set_default_tensor_type", calls.set_default_tensor_type
    for name in (
        *("is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype"),
        *("set_autocast_dtype", "get_device_module"),
    ):
        yield torch, name, calls.function
    for name in ("custom_fwd", "custom_bwd", "is_autocast_available"):
        yield torch.amp, name, calls.function
    yield torch.random, "fork_rng", calls.function
    if torch.distributed.is_available():
        from torch.distributed import device_mesh, distributed_c10d

        for owner in (torch.distributed, distributed_c10d):
            yield owner, "init_process_group", calls.process_group
            yield owner, "new_group", calls.process_group
            yield owner, "is_nccl_available", calls.is_nccl_available
        for owner in (torch.distributed, device_mesh):
            yield owner, "init_device_mesh", calls.function
