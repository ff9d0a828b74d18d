# SPDX-License-Identifier: BSD-3-Clause
"""Faults that a simulated driver injects: tests of what a program does when the device fails.

    with torch.puone.faults.inject(kernel_error_at=3):
        train_step()  # its third kernel fails, and the next wait raises torch.AcceleratorError

Every function initialises the device. It raises NotImplementedError if the driver cannot inject
faults (the HAL's extension "fault" in csrc/hal/hal.h), as drivers of real hardware cannot. A fault
concerns all threads of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _C
from ._lazy import _lazy_init

__all__ = ["device_lost", "inject", "kernel_error_at", "latency_ns", "out_of_memory_at", "reset"]


@contextmanager
def inject(
    *,
    out_of_memory_at: int = 0,
    kernel_error_at: int = 0,
    device_lost: int | None = None,
    latency_ns: int = 0,
) -> Iterator[None]:
    """Inject faults for a block of code; its end clears all faults, as `reset()` does.

    The arguments are those of the functions of the same names. The faults count from the beginning
    of the block. An error that arrives late, behind the end of the block, is still raised.
    """
    _lazy_init()
    try:
        _C.fault_out_of_memory_at(out_of_memory_at)
        _C.fault_kernel_error_at(kernel_error_at)
        _C.fault_latency_ns(latency_ns)
        if device_lost is not None:
            _C.fault_device_lost(device_lost)
        yield
    finally:
        _C.fault_reset()


def out_of_memory_at(nth: int) -> None:
    """Fail the nth allocation of device memory from now (1: the next), once; 0 clears it.

    It counts the allocations of the driver: what the caching allocator serves from its cache is not
    one. The allocator answers a failure by emptying its cache and asking again, which succeeds. So
    this tests that a program survives a shortage. A device with little memory
    (`PUONE_SIM_MEMORY=64M`) or `set_per_process_memory_fraction()` makes torch.OutOfMemoryError.
    """
    _lazy_init()
    _C.fault_out_of_memory_at(nth)


def kernel_error_at(nth: int) -> None:
    """Let the nth kernel from now (1: the next) fail while it runs, once; 0 clears it.

    Its launch succeeds. The next call that waits for its stream raises torch.AcceleratorError; the
    device stays usable.
    """
    _lazy_init()
    _C.fault_kernel_error_at(nth)


def device_lost(device: int) -> None:
    """Lose the device of this index until `reset()`.

    Its pending work is dropped, and every call for it raises torch.AcceleratorError. RuntimeError
    if there is no such device.
    """
    _lazy_init()
    _C.fault_device_lost(device)


def latency_ns(ns: int) -> None:
    """Make every copy, fill and kernel take at least this many nanoseconds; 0 clears it."""
    _lazy_init()
    _C.fault_latency_ns(ns)


def reset() -> None:
    """Clear all faults; lost devices are back, with the memory that they had."""
    _lazy_init()
    _C.fault_reset()
