# SPDX-License-Identifier: BSD-3-Clause
"""Bins, ranges, windows and selections include or exclude their bounds as on the CPU."""

from __future__ import annotations

import torch
from torch.nn import functional

from torch_conformance.authoring.api import Device, agree_with_double, check
from torch_conformance.checks.special_values._values import Work

#: Bins, ranges and choices whose bounds are met exactly.
_BOUNDS: dict[str, Work] = {
    "bucketize": lambda m: [
        torch.bucketize(m.of([0, 1, 1.5, 2, 3]), m.of([1, 2]), right=right)
        for right in (False, True)
    ],
    "searchsorted": lambda m: [
        torch.searchsorted(m.of([1, 1, 2, 2]), m.of([0, 1, 1.5, 2, 3]), right=right)
        for right in (False, True)
    ],
    "histc": lambda m: torch.histc(m.of([0, 0.25, 0.5, 0.75, 1, -0.1, 1.1]), 4, 0, 1),
    "quantile": lambda m: [
        torch.quantile(m.of([1, 2, 4, 8, 16]), m.of([0, 0.25, 0.3, 1]), interpolation=how)
        for how in ("linear", "lower", "higher", "midpoint", "nearest")
    ],
    "linspace": lambda m: [
        torch.linspace(-3, 5, n, dtype=m.dtype, device=m.device) for n in (1, 2, 5, 17)
    ],
    "arange": lambda m: [
        torch.arange(0, 1, 0.25, dtype=m.dtype, device=m.device),
        torch.arange(1, -1, -0.5, dtype=m.dtype, device=m.device),
        torch.arange(0, 0.9, 0.3, dtype=m.dtype, device=m.device),
        torch.arange(2, 2, device=m.device),
        torch.range(0, 2, 0.25, dtype=m.dtype, device=m.device),
    ],
    "isclose": lambda m: torch.isclose(m.of([1, 1.25, 1.5]), m.of([1, 1, 1]), rtol=0, atol=0.25),
    "kthvalue": lambda m: [*m.of([3, 1, 2]).kthvalue(1), *m.of([3, 1, 2]).kthvalue(3)],
    "topk": lambda m: [*m.of([3, 1, 2]).topk(3), *m.of([3, 1, 2]).topk(1)],
    "nearest": lambda m: [
        functional.interpolate(m.of([[[1, 2, 3, 4, 5]]]), n) for n in (1, 2, 4, 5, 7, 10)
    ],
    "linear": lambda m: [
        functional.interpolate(m.of([[[1, 2, 4, 8, 16]]]), n, mode="linear", align_corners=aligned)
        for n in (1, 2, 5, 9)
        for aligned in (False, True)
    ],
    "pool_edges": lambda m: [
        functional.avg_pool1d(m.of([[[1, 2, 4, 8, 16]]]), 2, 2, ceil_mode=True),
        functional.max_pool1d(m.of([[[1, 2, 4, 8, 16]]]), 2, 2, ceil_mode=True),
        functional.avg_pool1d(m.of([[[1, 2, 4]]]), 3, 1, 1, count_include_pad=False),
        functional.adaptive_avg_pool1d(m.of([[[1, 2, 4, 8, 16]]]), 3),
    ],
    "triangle": lambda m: (
        [m.whole(4, 6).tril(k) for k in (-5, -4, -3, 0, 5, 6)]
        + [m.whole(4, 6).triu(k) for k in (-4, -3, 0, 5, 6)]
    ),
    "renorm": lambda m: torch.renorm(m.of([[3, 4], [6, 8], [0, 0]]), 2, 0, 5),
}


@check("special_values/bound", "SPECIAL-012", cases=_BOUNDS)
def bounds_belong_to_the_documented_side(dev: Device, case: str) -> None:
    """Bins, ranges, windows and selections include or exclude their bounds as on the CPU."""
    agree_with_double(dev, _BOUNDS[case])
