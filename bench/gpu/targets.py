# SPDX-License-Identifier: BSD-3-Clause
"""What was promised of the measurements, and what physics allows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """A bound on the ratio of a group's rows; `names` narrows it to some of them."""

    group: str
    bound: float
    # Speed: torch.cuda's time by ours, at least the bound. Cost: our time by torch.cuda's, at most.
    speed: bool
    names: frozenset[str] = frozenset()

    def applies(self, row: dict[str, Any]) -> bool:
        """Whether this row is promised anything here."""
        return row["group"] == self.group and (not self.names or row["name"] in self.names)

    def met(self, ratio: float) -> bool:
        """Whether a ratio keeps the promise."""
        return ratio >= self.bound if self.speed else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'at least' if self.speed else 'at most'} {self.bound:g}"


SPEED_GROUPS = frozenset({"pointwise", "reduction", "softmax", "layer norm", "copy", "matmul"})
TARGETS = (
    *(Target(group, 0.95, True) for group in ("pointwise", "reduction", "softmax", "layer norm")),
    Target("copy", 0.98, True),
    Target("matmul", 0.98, True, frozenset({"bfloat16 8192"})),
    Target("issue", 1.1, False),
    Target("allocator", 1.1, False),
    Target("graph", 1.05, False),
)


def judged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with ratio, target and limit beside what was measured."""
    rows = list(rows)
    rates = measured_rates(rows)
    return [{**row, **_ratio(row), **_limit(row, rates)} for row in rows]


def measured_rates(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The best rate seen of every resource, in bytes or operations per microsecond, on any side."""
    rates: dict[str, float] = {}
    for row in rows:
        for side in ("puone", "cuda"):
            if row["gauges"] and row[side]:
                rate = row["work"] / row[side]["median_us"]
                rates[row["resource"]] = max(rate, rates.get(row["resource"], 0.0))
    return rates


def _ratio(row: dict[str, Any]) -> dict[str, Any]:
    target = next((target for target in TARGETS if target.applies(row)), None)
    found: dict[str, Any] = {"ratio": None, "target": str(target) if target else None, "met": None}
    if row["puone"] and row["cuda"]:
        ours, theirs = row["puone"]["median_us"], row["cuda"]["median_us"]
        ratio = theirs / ours if row["group"] in SPEED_GROUPS else ours / theirs
        found["ratio"] = round(ratio, 4)
        found["met"] = target.met(ratio) if target else None
    return found


def _limit(row: dict[str, Any], rates: dict[str, float]) -> dict[str, Any]:
    rate = rates.get(row["resource"] or "")
    if not rate:
        return {"limit_us": None, "of_limit": None}
    limit = row["work"] / rate
    ours = row["puone"]["median_us"] if row["puone"] else None
    return {"limit_us": round(limit, 3), "of_limit": round(limit / ours, 4) if ours else None}
