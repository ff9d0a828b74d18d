# SPDX-License-Identifier: BSD-3-Clause
"""How operations are timed: device and CPU in turns, in short rounds, and what is kept of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

# One round of an operation is repeated until it lasts this long, in seconds.
ROUND = 0.004
# Before each round, in seconds. Threads that helped the other device poll for more work for a while
# (GNU OpenMP's for some milliseconds), and would take cores from this round.
PAUSE = 0.01
MAX_REPEATS = 2000
# Operations issued without waiting for them: fewer than any queue holds.
ISSUED = 64

Operation = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """Medians and 95th percentiles in microseconds; none where the CPU has no such operation."""

    name: str
    device_us: float
    cpu_us: float | None
    device_p95_us: float
    cpu_p95_us: float | None

    @property
    def ratio(self) -> float | None:
        """Time on the device by time on the CPU."""
        return None if self.cpu_us is None else self.device_us / self.cpu_us

    @property
    def ratio_p95(self) -> float | None:
        """The same of the 95th percentiles."""
        return None if self.cpu_p95_us is None else self.device_p95_us / self.cpu_p95_us

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "ratio": self.ratio, "ratio_p95": self.ratio_p95}

    def line(self) -> str:
        """One line of the table."""
        cells = [f"{self.device_us:.2f} us", "-", "-", f"{self.device_p95_us:.2f} us", "-"]
        if self.cpu_us is not None:
            cells[1] = f"{self.cpu_us:.2f} us"
            cells[2] = f"{self.ratio:.2f}x"
            cells[4] = f"{self.ratio_p95:.2f}x"
        return f"{self.name:<40}" + "".join(f"{cell:>13}" for cell in cells)


@dataclass(frozen=True)
class Summary:
    """A group of operations: the medians of their ratios, so that each counts the same."""

    name: str
    ratio: float
    ratio_p95: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def line(self) -> str:
        """One line of the table."""
        cells = ("", "", f"{self.ratio:.2f}x", "", f"{self.ratio_p95:.2f}x")
        return f"{self.name:<40}" + "".join(f"{cell:>13}" for cell in cells)


HEADER = f"{'operation':<40}" + "".join(
    f"{title:>13}" for title in ("device", "cpu", "ratio", "device p95", "ratio p95")
)


def alternate(
    name: str, on_device: Operation, on_cpu: Operation, wait: Operation, rounds: int
) -> Row:
    """An operation with the wait for it, against the CPU's, which take turns."""
    pairs = ((on_device, wait), (on_cpu, _nothing_to_wait_for))
    counts = [_calibrate(*pair) for pair in pairs]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for pair, count, found in zip(pairs, counts, times, strict=True):
            found.append(_round(*pair, count))
    return _row(name, *times)


def alternate_issue(
    name: str, on_device: Operation, on_cpu: Operation, wait: Operation, rounds: int
) -> Row:
    """The time until an operation returns, whether or not the device has done it by then."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for operation, found in zip((on_device, on_cpu), times, strict=True):
            time.sleep(PAUSE)
            operation()
            wait()
            found.append(_timed(operation, _nothing_to_wait_for, ISSUED))
            wait()
    return _row(name, *times)


def alone(name: str, operation: Operation, rounds: int, peer: float | None = None) -> Row:
    """An operation by itself; `peer` is what to compare it with, if not the CPU."""
    count = _calibrate(operation, _nothing_to_wait_for)
    times = [_round(operation, _nothing_to_wait_for, count) for _ in range(rounds)]
    return Row(name, median(times), peer, _p95(times), peer)


def _row(name: str, device: list[float], cpu: list[float]) -> Row:
    return Row(name, median(device), median(cpu), _p95(device), _p95(cpu))


def _p95(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(0.95 * len(times)))]


def _nothing_to_wait_for() -> None:
    pass


def _calibrate(operation: Operation, wait: Operation) -> int:
    """How often to repeat an operation in one round; warms it up on the way."""
    for _ in range(3):
        operation()
    wait()
    return max(1, min(MAX_REPEATS, int(ROUND * 1e6 / _timed(operation, wait, 2))))


def _round(operation: Operation, wait: Operation, count: int) -> float:
    """As _timed(), when no threads of another round poll any more."""
    time.sleep(PAUSE)
    return _timed(operation, wait, count)


def _timed(operation: Operation, wait: Operation, count: int) -> float:
    """Microseconds of one operation in a row of `count`, with the wait for the last."""
    begin = time.perf_counter()
    for _ in range(count):
        operation()
    wait()
    return (time.perf_counter() - begin) / count * 1e6
