# SPDX-License-Identifier: BSD-3-Clause
"""Threads that run TorchScript, which holds no interpreter lock, really work at the same time.

Threads of Python take turns: what they have in common is rarely used by two of them at once.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, in_threads

#: Its arguments: a tensor to begin with, how often the loop runs, and the number of the thread.
Script = Callable[[Tensor, int, int], list[Tensor]]

THREADS = 4
#: Seconds that one thread works, and its loops at most.
_LASTS, _MOST = 0.1, 30_000

_SCRIPTS = """
def allocate(x: Tensor, count: int, first: int) -> List[Tensor]:
    kept = [x]
    for i in range(count):
        kept.append(torch.full([1 + ((i + first) * 37) % 600], float(first), device=x.device))
        if len(kept) > 20:
            kept = [x]
    return kept

def compute(x: Tensor, count: int, first: int) -> List[Tensor]:
    for i in range(count):
        x = torch.remainder(x * 3.0 + float(first), 97.0)
    return [x]

def draw(x: Tensor, count: int, first: int) -> List[Tensor]:
    drawn = [x]
    for i in range(count):
        drawn.append(torch.randint(0, 1 << 62, [4], device=x.device))
    return [torch.stack(drawn[1:])]
"""


@functools.cache
def _scripts() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        return torch.jit.CompilationUnit(_SCRIPTS)


def _script(dev: Device, name: str) -> Script:
    try:
        script: Script = getattr(_scripts(), name)
    except RuntimeError as error:
        dev.unsupported(f"this PyTorch has no TorchScript: {error}")
    return script


def _loops(script: Script, x: Tensor) -> int:
    """How often a loop runs in the time that one thread works."""
    script(x, 20, 0)[-1].cpu()
    begin = time.perf_counter()
    script(x, 100, 0)[-1].cpu()
    return min(_MOST, int(100 * _LASTS / (time.perf_counter() - begin)))


def _in_threads(
    dev: Device, name: str, stream: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> tuple[int, list[list[Tensor]]]:
    """The loops of each thread, and what each got, on the CPU."""
    script = _script(dev, name)
    x = torch.arange(64.0, device=dev.device())
    count = _loops(script, x)

    def work(first: int) -> list[Tensor]:
        with stream():
            return [result.cpu() for result in script(x, count, first)]

    return count, in_threads([partial(work, first) for first in range(THREADS)])


@check("thread/scripted:allocations", "THREAD-001", needs=("threads",))
def threads_allocate_at_once(dev: Device) -> None:
    """Tensors that threads allocate and free at once have the values of their own thread."""
    _, found = _in_threads(dev, "allocate")
    for first, tensors in enumerate(found):
        for tensor in tensors[1:]:
            assert bool((tensor == first).all()), f"thread {first} has {tensor.unique().tolist()}"


@check("thread/scripted:memory", "THREAD-006", needs=("threads", "memory_stats"))
def threads_that_allocated_at_once_leave_no_memory(dev: Device) -> None:
    """After threads have allocated and freed at once, what is allocated is what was before."""
    _in_threads(dev, "allocate")
    dev.synchronize()
    before = torch.accelerator.memory_allocated(0)
    for _ in range(3):
        _in_threads(dev, "allocate")
    dev.synchronize()
    after = torch.accelerator.memory_allocated(0)
    assert after <= before, f"{after - before} bytes are left"


def _computes(dev: Device, stream: Callable[[], AbstractContextManager[Any]]) -> None:
    dev.synchronize()
    count, found = _in_threads(dev, "compute", stream)
    for first, [result] in enumerate(found):
        [expected] = _script(dev, "compute")(torch.arange(64.0), count, first)
        dev.assert_equal(result, expected)


@check("thread/scripted:operators", "THREAD-001", needs=("threads",))
def threads_compute_at_once(dev: Device) -> None:
    """Threads that queue work at once on one stream get what one alone gets."""
    _computes(dev, nullcontext)


@check("thread/scripted:own_streams", "THREAD-003", needs=("threads", "streams"))
def threads_queue_at_once_on_their_streams(dev: Device) -> None:
    """Threads that queue work at once on streams of their own get what one alone gets."""
    _computes(dev, dev.stream)


@check("thread/scripted:random", "THREAD-001", needs=("threads", "generator"))
def threads_draw_different_numbers_at_once(dev: Device) -> None:
    """Of the numbers that threads draw at once from one generator no two are the same."""
    _, found = _in_threads(dev, "draw")
    drawn = torch.cat([result.flatten() for [result] in found])
    assert len(drawn.unique()) == len(drawn), "threads were given the same numbers"
