# SPDX-License-Identifier: BSD-3-Clause
"""One measurement: an operation made on every side, verified there, then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bench.gpu.measure.side import OURS, PEER, Side
from bench.gpu.measure.timing import CLOCKS, Pace, Spread, Step, alternate
from bench.gpu.outcome import NOT_RUN

NO_PEER = f"{NOT_RUN}: no torch.cuda here"


class NotThere(Exception):
    """A side lacks what the case is about."""


class WrongResult(Exception):
    """What an operation computed is not what it should have; it is not worth timing."""


@dataclass(frozen=True)
class Operation:
    """What is timed on one side; `verify` raises WrongResult."""

    step: Step
    verify: Callable[[], None]


@dataclass(frozen=True)
class Case:
    """An operation that both sides have.

    work is what it must at least do of `resource`: bytes of one kind of memory traffic, or floating
    point operations of one type. A case that gauges a resource shows how fast that can be.
    """

    group: str
    name: str
    clock: str  # device, host or wall: see timing.py
    make: Callable[[Side], Operation]
    work: float = 0.0
    resource: str | None = None
    gauges: bool = False


def measure(case: Case, sides: Iterable[Side], pace: Pace) -> dict[str, Any]:
    """The case's row of the results. What goes wrong on one side is said and spares the other."""
    problems, timers = {}, {}
    sides = list(sides)
    for side in sides:
        try:
            operation = case.make(side)
            operation.step(0)
            operation.verify()
            timers[side.name] = CLOCKS[case.clock](side, operation.step)
            # Once before the rounds: what fails is found out by itself.
            timers[side.name](2)
        except NotThere as error:
            problems[side.name] = f"{NOT_RUN}: {error}"
        except Exception as error:
            timers.pop(side.name, None)
            problems[side.name] = f"{type(error).__name__}: {error}"
    if all(side.name != PEER for side in sides):
        problems[PEER] = NO_PEER
    spreads: dict[str, Spread] = {}
    if OURS in timers:
        spreads = alternate(timers, pace)
    elif timers:
        problems.setdefault(PEER, f"{NOT_RUN}: nothing to compare with")
    timers.clear()
    return _row(case, spreads, problems)


def release(sides: Iterable[Side]) -> None:
    """Between groups: what one side has cached, the other cannot have."""
    for side in sides:
        side.release()


def _row(case: Case, spreads: dict[str, Spread], problems: dict[str, str]) -> dict[str, Any]:
    found = {name: spreads[name].to_json() if name in spreads else None for name in (OURS, PEER)}
    return {
        "group": case.group,
        "name": case.name,
        "clock": case.clock,
        "work": case.work,
        "resource": case.resource,
        "gauges": case.gauges,
        **found,
        "problems": problems,
    }
