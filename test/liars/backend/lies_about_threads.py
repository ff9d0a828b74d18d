# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in what several threads or processes do with one device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from lies import BACKEND, lie, plant


def _module() -> Any:
    return torch.get_device_module(BACKEND)


@lie("THREAD-001", "thread/concurrent:copy", planted=True)
def copies_go_through_one_buffer() -> None:
    """clone() goes through a buffer that all threads share."""
    clone: Callable[..., torch.Tensor] = torch.Tensor.clone
    buffers: dict[Any, torch.Tensor] = {}

    def through_buffer(self: torch.Tensor, **options: Any) -> torch.Tensor:
        if self.device.type != BACKEND or self.requires_grad:
            return clone(self, **options)
        key = self.shape, self.dtype
        buffer = buffers.setdefault(key, torch.empty_like(self))
        buffer.copy_(self)
        time.sleep(0.001)  # the interpreter's lock is released in the middle, as in any long copy
        return clone(buffer, **options)

    plant(torch.Tensor, "clone", through_buffer)


@lie("THREAD-006", "thread/leak_memory", planted=True)
def every_thread_keeps_a_workspace() -> None:
    """Matrix products use a workspace per thread, which outlives the thread."""
    mm: Callable[..., torch.Tensor] = torch.Tensor.mm
    workspaces: dict[int, torch.Tensor] = {}

    def with_workspace(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        thread = threading.get_native_id()
        if thread not in workspaces:
            workspaces[thread] = torch.empty(4096, device=self.device)
        return mm(self, other)

    plant(torch.Tensor, "mm", with_workspace)


@lie("THREAD-018", "thread/beside_a_wait:device_synchronize", planted=True)
def waits_hold_the_lock_of_launches() -> None:
    """Waiting for the device holds the lock that a fill takes."""
    wait: Callable[..., None] = torch.accelerator.synchronize
    fill: Callable[..., torch.Tensor] = torch.Tensor.fill_
    lock = threading.RLock()

    def wait_locked(*device: Any) -> None:
        with lock:
            wait(*device)

    def fill_locked(self: torch.Tensor, value: Any) -> torch.Tensor:
        with lock:
            return fill(self, value)

    plant(torch.accelerator, "synchronize", wait_locked)
    plant(torch.Tensor, "fill_", fill_locked)


@lie("THREAD-008", "thread/backward:in_thread thread/backward:forward_here", planted=True)
def backward_needs_state_of_the_main_thread() -> None:
    """backward() is wrapped with per-thread state that only the importing thread has."""
    backward: Callable[..., None] = torch.Tensor.backward
    state = threading.local()
    state.depth = 0

    def counted(self: torch.Tensor, *args: Any, **options: Any) -> None:
        state.depth += 1
        backward(self, *args, **options)
        state.depth -= 1

    plant(torch.Tensor, "backward", counted)


@lie("THREAD-008", "thread/backward:shared_graph", planted=True)
def backward_refuses_company() -> None:
    """backward() raises while another thread runs one."""
    backward: Callable[..., None] = torch.Tensor.backward
    lock = threading.Lock()

    def alone(self: torch.Tensor, *args: Any, **options: Any) -> None:
        if not lock.acquire(blocking=False):
            raise RuntimeError("the device runs another backward")
        try:
            time.sleep(0.01)  # a backward that takes a while
            backward(self, *args, **options)
        finally:
            lock.release()

    plant(torch.Tensor, "backward", alone)


@lie("THREAD-012", "thread/fork_state:bad_fork_flag", planted=True)
def no_fork_is_bad() -> None:
    """_is_in_bad_fork() is False everywhere."""
    plant(_module(), "_is_in_bad_fork", lambda: False)


@lie("THREAD-012", "thread/fork_state:parent_flag", planted=True)
def initialised_is_badly_forked() -> None:
    """_is_in_bad_fork() is True as soon as the device is initialised."""
    plant(_module(), "_is_in_bad_fork", lambda: True)


@lie("THREAD-017", "thread/fork_state:manual_seed", planted=True)
def seeding_waits_for_the_device() -> None:
    """torch.manual_seed() asks the device for its state, also where a fork made that impossible."""
    seed: Callable[..., torch.Generator] = torch.manual_seed

    def seed_and_wait(value: int) -> torch.Generator:
        _module()._C.synchronize(0)
        return seed(value)

    plant(torch, "manual_seed", seed_and_wait)


@lie("THREAD-014", "thread/data_loader:pinned", planted=True)
def pin_memory_does_nothing() -> None:
    """Tensor.pin_memory() returns the tensor as it is."""
    plant(torch.Tensor, "pin_memory", lambda self, *device: self)


@lie("THREAD-014", "thread/data_loader:plain", planted=True)
def batches_change_places() -> None:
    """Copies to the device are queued in pairs, the second of which is written first."""
    to: Callable[..., torch.Tensor] = torch.Tensor.to
    waiting: list[torch.Tensor] = []

    def swapped(self: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        moved = to(self, *args, **options)
        if self.device.type == "cpu" and moved.device.type == BACKEND and moved.dim() == 2:
            if waiting:
                other = waiting.pop()
                kept = other.clone()
                other.copy_(moved)
                moved.copy_(kept)
            else:
                waiting.append(moved)
        return moved

    plant(torch.Tensor, "to", swapped)
