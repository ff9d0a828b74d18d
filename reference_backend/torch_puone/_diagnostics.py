# SPDX-License-Identifier: BSD-3-Clause
"""Looking inside, for tests and benchmarks: the driver, the CPU fallback."""

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
