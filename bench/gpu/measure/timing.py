# SPDX-License-Identifier: BSD-3-Clause
"""How time is taken: warm, in short rounds in which the sides take turns, kept as medians."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Protocol

# The step of an operation: it is told its turn, so that it can rotate among buffers.
Step = Callable[[int], object]
# Microseconds of one step, from a row of them.
Timer = Callable[[int], float]

LEAST_ROUNDS = 3
# Repeats may be this many times what suits the slower side.
UNEQUAL = 5


class Event(Protocol):
    """A mark in a stream's work that knows when it was reached."""

    def record(self) -> None: ...
    def elapsed_time(self, end: Any, /) -> float: ...


class Clocks(Protocol):
    """What timing needs of a side."""

    def event(self) -> Event: ...
    def synchronize(self) -> None: ...


@dataclass(frozen=True)
class Spread:
    """Median and 10th and 90th percentile of rounds, in microseconds."""

    median_us: float
    low_us: float
    high_us: float
    rounds: int

    @classmethod
    def of(cls, times: Sequence[float]) -> Spread:
        """Of at least one round."""
        ordered = sorted(times)
        last = len(ordered) - 1
        low, high = ordered[round(0.1 * last)], ordered[round(0.9 * last)]
        middle = median(ordered)
        return cls(round(middle, 4), round(low, 4), round(high, 4), len(ordered))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def on_device(side: Clocks, step: Step) -> Timer:
    """From the first step's start on the device to the last one's end; the host does not count."""

    def timer(repeats: int) -> float:
        start, end = side.event(), side.event()
        side.synchronize()
        start.record()
        for turn in range(repeats):
            step(turn)
        end.record()
        side.synchronize()
        return start.elapsed_time(end) * 1000 / repeats

    return timer


def on_host(side: Clocks, step: Step) -> Timer:
    """Until the calls have returned, whether or not the device has done anything by then."""

    def timer(repeats: int) -> float:
        side.synchronize()
        begin = time.perf_counter()
        for turn in range(repeats):
            step(turn)
        passed = time.perf_counter() - begin
        side.synchronize()
        return passed * 1e6 / repeats

    return timer


def on_wall(side: Clocks, step: Step) -> Timer:
    """Until the device has done it and the host knows."""

    def timer(repeats: int) -> float:
        side.synchronize()
        begin = time.perf_counter()
        for turn in range(repeats):
            step(turn)
        side.synchronize()
        return (time.perf_counter() - begin) * 1e6 / repeats

    return timer


CLOCKS: dict[str, Callable[[Clocks, Step], Timer]] = {
    "device": on_device,
    "host": on_host,
    "wall": on_wall,
}


@dataclass(frozen=True)
class Pace:
    """How long to measure."""

    rounds: int
    round_us: float  # a round is repeated until it lasts about this long
    most: int  # repeats of a round at most: fewer than a device's queue holds
    seconds: float  # after that there are no more rounds than LEAST_ROUNDS

    def repeats(self, timer: Timer) -> int:
        """How many steps make a round; warms up on the way."""
        timer(2)
        return max(1, min(self.most, int(self.round_us / max(timer(2), 1e-3))))

    def shared_repeats(self, timers: Iterable[Timer]) -> int:
        """What suits the faster side, unless the other is so slow that it would take too long."""
        counts = [self.repeats(timer) for timer in timers]
        return min(max(counts), UNEQUAL * min(counts))


def alternate(timers: Mapping[str, Timer], pace: Pace) -> dict[str, Spread]:
    """All timers in every round, each as often in front, with the same number of repeats."""
    repeats = pace.shared_repeats(timers.values())
    times: dict[str, list[float]] = {name: [] for name in timers}
    begin = time.monotonic()
    for turn in range(pace.rounds):
        if turn >= LEAST_ROUNDS and time.monotonic() - begin > pace.seconds:
            break
        order = list(timers) if turn % 2 == 0 else list(timers)[::-1]
        for name in order:
            times[name].append(timers[name](repeats))
    return {name: Spread.of(found) for name, found in times.items()}
