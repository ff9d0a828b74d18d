# SPDX-License-Identifier: BSD-3-Clause
"""The legs of a job, as GitHub makes them of `strategy.matrix`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from workflow_runner.mistakes import Mistake

Leg = dict[str, Any]


def legs(matrix: Mapping[str, Any]) -> list[Leg]:
    """Every combination but the excluded ones; an `include` extends those it does not contradict
    in an original value, or else is a leg of its own."""
    axes = {name: values for name, values in matrix.items() if name not in ("include", "exclude")}
    if empty := [name for name, values in axes.items() if not values]:
        raise Mistake(f"matrix: {', '.join(empty)} has no values")
    excluded = matrix.get("exclude") or []
    originals = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    originals = [leg for leg in originals if axes and not any(_agree(leg, e) for e in excluded)]
    result = [dict(leg) for leg in originals]
    for extra in matrix.get("include") or []:
        shared = {name: value for name, value in extra.items() if name in axes}
        extended = [i for i, leg in enumerate(originals) if _agree(leg, shared)]
        for i in extended:
            result[i].update(extra)
        if not extended:
            result.append(dict(extra))
    return result


def _agree(leg: Leg, values: Mapping[str, Any]) -> bool:
    return all(leg.get(name) == value for name, value in values.items())
