# SPDX-License-Identifier: BSD-3-Clause
"""The driver's compiler: what generated Python imports, and what its kernels are good at."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch._inductor.async_compile import get_compile_threads
from torch._inductor.codecache import LambdaFuture

import torch_puone
from torch_puone import _C

#: (name, "buffer", "integer" or "real", access flags, bytes of an element)
Parameter = tuple[str, str, int, int]


@functools.cache
def _compilers(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the compiler. A forked child needs its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="puone-compile")


def kernel(
    name: str, source: str, parameters: list[Parameter], errors: list[str], device: int
) -> Any:
    """The kernel `name` of the source, or its future, for which generated Python waits.

    Raises RuntimeError with the compiler's text, NotImplementedError without a compiler.
    """

    def compiled() -> _C.ModuleKernel:
        target, _, _ = _C.module_target(device)
        image = _C.compile_module(source, target, contracts=True)
        return _C.ModuleKernel(image, name, parameters, errors)

    threads = get_compile_threads()
    if threads <= 1:  # then inductor waits for no futures
        return compiled()
    future = _compilers(os.getpid(), threads).submit(compiled)
    return LambdaFuture(future.result, future)


def blocks_use_all_cores(device: torch.device | str) -> bool:
    """Whether one block makes use of the whole device (csrc/kernels/host/module.h).

    A block of a device with many multiprocessors does not (csrc/kernels/simt/module.h).
    """
    index = torch.device(device).index
    _, flavour, _ = _C.module_target(torch_puone.current_device() if index is None else index)
    return flavour == "host"
