# SPDX-License-Identifier: BSD-3-Clause
"""How a number went from run to run, laid out for the macro `trend`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_backend_ci.dashboard.model import Run

WIDTH, HEIGHT = 480, 130
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 10, 24
#: Points with a text of their own; where there are more, the line alone is shown.
MAX_POINTS = 120


@dataclass(frozen=True)
class Chart:
    """Lengths are in the units of the picture, whose upper left corner is (0, 0)."""

    title: str
    tone: str
    """Class of its colour: good, bad, ..."""
    summary: str
    ticks: tuple[tuple[float, str], ...]
    """Heights, and what they stand for."""
    days: tuple[tuple[float, str], ...]
    """Of the first run and of the last."""
    curve: str
    area: str
    points: tuple[tuple[float, float, str], ...]
    WIDTH: int = WIDTH
    HEIGHT: int = HEIGHT
    LEFT: int = LEFT


def trend(title: str, tone: str, runs: Sequence[Run], values: Sequence[int]) -> Chart:
    """A chart of one number of each run, oldest left; needs at least one run."""
    top = _round_up(max(values))
    xs = [LEFT + _share(i, len(values) - 1) * (WIDTH - LEFT - RIGHT) for i in range(len(values))]
    ys = [_height(value, top) for value in values]
    curve = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    floor = _height(0, top)
    return Chart(
        title=title,
        tone=tone,
        summary=_summary(title, runs, values),
        ticks=tuple((_height(tick, top), f"{tick:,}") for tick in sorted({0, top // 2, top})),
        days=tuple((xs[i], str(runs[i].started.date())) for i in sorted({0, len(xs) - 1})),
        curve=curve,
        area=f"{curve}V{floor:.1f}H{xs[0]:.1f}z",
        points=_points(runs, values, xs, ys) if len(values) <= MAX_POINTS else (),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _height(value: int, top: int) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP)


def _round_up(value: int) -> int:
    """A round number above, half of which is whole: it is a tick too."""
    unit = 10 ** max(len(str(value)) - 1, 0)
    step = 2 * max(unit // 10, 1)
    return max(-(-value // step) * step, 2)


def _points(
    runs: Sequence[Run], values: Sequence[int], xs: Sequence[float], ys: Sequence[float]
) -> tuple[tuple[float, float, str], ...]:
    return tuple(
        (round(x, 1), round(y, 1), f"{value:,} on {run.started.date()}, torch {run.torch}")
        for run, value, x, y in zip(runs, values, xs, ys, strict=True)
    )


def _summary(title: str, runs: Sequence[Run], values: Sequence[int]) -> str:
    first, last = runs[0].started.date(), runs[-1].started.date()
    if len(runs) == 1:
        return f"{title}: {values[0]:,} in the only run, {first}"
    return (
        f"{title} in {len(runs)} runs: {values[0]:,} on {first}, {values[-1]:,} on {last}; "
        f"lowest {min(values):,}, highest {max(values):,}"
    )
