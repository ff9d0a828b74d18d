# SPDX-License-Identifier: BSD-3-Clause
"""Integers of 64 bits are computed and compared in all of their bits."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, agree, check
from torch_conformance.checks.special_values._values import Unary

_FAR = 2**53
_WIDE = (_FAR + 1, _FAR, _FAR + 3, -_FAR - 1, 2**62 + 1, 2**62, -(2**62) - 1, 2**63 - 1, -(2**63))
#: Of int64 numbers that double precision would round.
_OF_WIDE: dict[str, Unary] = {
    "compare": lambda x: [x[:, None] < x, x[:, None] == x, x > _FAR, x == _FAR + 1],
    "extremes": lambda x: [x.max(), x.min(), x.argmax(), x.amax(), *x.aminmax(), *x[:3].max(0)],
    "sort": lambda x: [*x.sort(), *x.sort(descending=True), *x.topk(3), *x.kthvalue(2), x.median()],
    "unique": lambda x: list(torch.cat([x, x]).unique(return_counts=True)),
    "search": lambda x: [
        torch.searchsorted(x.sort().values, x),
        torch.isin(x, x[1:4]),
        torch.isin(x, _FAR + 1),
        *(
            torch.isin(number, x, invert=invert)
            for number in (_FAR, _FAR + 1, 5)
            for invert in (False, True)
        ),
    ],
    "sum": lambda x: [x[:4].sum(), x[:4].cumsum(0), x[:2].prod(), x[:3].view(1, 3).sum(0)],
    "scalar": lambda x: [x + 1, x - _FAR, x.clamp(max=_FAR + 1), x.remainder(_FAR - 1), x * 3],
    "fill": lambda x: [
        x.clone().fill_(_FAR + 1),
        torch.full((3,), 2**63 - 1, device=x.device),
        x.masked_fill(x > 0, _FAR + 3),
        torch.where(x > 0, _FAR + 1, x),
        x.index_fill(0, torch.tensor([1], device=x.device), _FAR + 5),
        torch.tensor([_FAR + 1], device=x.device),
    ],
    "range": lambda x: [
        torch.arange(_FAR, _FAR + 5, device=x.device),
        torch.arange(2**63 - 4, 2**63 - 1, device=x.device),
        torch.arange(-(2**63), -(2**63) + 5, 2, device=x.device),
        torch.arange(_FAR + 5, _FAR, -2, device=x.device),
    ],
    "scatter": lambda x: [
        torch.zeros_like(x).scatter_add(0, torch.arange(9, device=x.device), x),
        torch.zeros_like(x).index_add(0, torch.arange(9, device=x.device), x),
        torch.ones_like(x).index_put((torch.arange(9, device=x.device),), x, accumulate=True),
        torch.zeros_like(x).scatter_reduce(0, torch.arange(9, device=x.device), x, "amax"),
    ],
    "unary": lambda x: [x.abs(), -x, x.sign(), ~x, x.square(), x.bitwise_not(), x.pow(3)],
    "product": lambda x: [x[:4].view(2, 2) @ x[:4].view(2, 2), x[:3].dot(x[:3])],
    "scan": lambda x: [*x.cummax(0), *x.cummin(0), x.cumsum(0), x.cumprod(0)],
    "joined": lambda x: [torch.cat([x, x.int()]), torch.stack([x, x]), x.flip(0), x.diff()],
}


@check("special_values/wide_integer", "SPECIAL-010", cases=_OF_WIDE)
def wide_integers_keep_all_bits(dev: Device, case: str) -> None:
    """int64 numbers and scalars beyond 2^53 are computed and compared in 64 bits."""
    numbers = torch.tensor(_WIDE)
    agree(dev, lambda device: _OF_WIDE[case](numbers.to(device)))
