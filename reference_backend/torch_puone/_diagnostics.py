# SPDX-License-Identifier: BSD-3-Clause
"""Looking inside, for tests and benchmarks: the driver, the CPU fallback, planted faults."""

from __future__ import annotations

from . import _C
from ._lazy import _lazy_init


def driver_info() -> _C.DriverInfo:
    """Which driver is loaded, from where, what it can do, and, if there is none, why not.

    Where nothing was chosen and the driver for real hardware cannot be used, another one takes its
    place: `passed_over` is the reason.
    """
    return _C.driver_info()


def _sleep_ms(milliseconds: float) -> None:
    """Queue work on the current stream that keeps it busy for this long, and return at once."""
    _lazy_init()
    _C.delay(round(milliseconds * 1e6), _C.current_device())


def _fallback_counts() -> dict[str, int]:
    """How often each operator ran on the CPU instead, since the start or the last reset."""
    return _C.fallback_counts()


def _reset_fallback_counts() -> None:
    """Start counting again at zero."""
    _C.reset_fallback_counts()


class _FaultInjection:
    """Faults that a simulated driver can inject; NotImplementedError on a real one."""

    @staticmethod
    def out_of_memory_at(nth: int) -> None:
        """Fail the nth allocation of device memory from now, once; 0 clears it.

        Counts the driver's allocations: what the caching allocator serves from its cache is none.
        """
        _lazy_init()
        _C.fault_out_of_memory_at(nth)

    @staticmethod
    def kernel_error_at(nth: int) -> None:
        """Fail the nth kernel from now while it runs, once; 0 clears it."""
        _lazy_init()
        _C.fault_kernel_error_at(nth)

    @staticmethod
    def device_lost(device: int) -> None:
        """Lose a device: pending work is dropped and every later call fails until `reset()`."""
        _lazy_init()
        _C.fault_device_lost(device)

    @staticmethod
    def latency_ns(ns: int) -> None:
        """Make every piece of device work take at least this long; 0 clears it."""
        _lazy_init()
        _C.fault_latency_ns(ns)

    @staticmethod
    def reset() -> None:
        """Clear all faults, lost devices included."""
        _lazy_init()
        _C.fault_reset()


_fault = _FaultInjection()
