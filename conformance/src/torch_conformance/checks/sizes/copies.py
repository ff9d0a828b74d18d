# SPDX-License-Identifier: BSD-3-Clause
"""Copies, casts and transfers write each element of their result."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._copies import COPIED
from torch_conformance.checks.sizes._sizes import TYPES, Unary


@check("sizes/copy", "SIZE-007", cases=COPIED, breadth=STANDARD)
def copies_are_complete(dev: Device, case: str) -> None:
    """Copies, joins, fills and sequences write each element of their result."""
    agree_with_double(dev, COPIED[case], rtol=1e-5)


@check("sizes/cast", "SIZE-007", dtypes=TYPES, breadth=STANDARD)
def casts_are_complete(dev: Device, dtype: torch.dtype) -> None:
    """A cast of each pair of data types converts each element, contiguous or transposed."""
    others = [other for other in dev.dtypes() if other.is_complex or not dtype.is_complex]

    def program(m: Inputs) -> list[Tensor]:
        x = m.index(257, 257, below=100).to(dtype)
        return [y for other in others for y in (x.to(other), x.t().to(other).contiguous())]

    agree_with_double(dev, program, dtype)


_TRANSFERRED: dict[str, Unary] = {
    "contiguous": lambda x: x,
    "offset": lambda x: x.view(-1)[1:],
    "transposed": lambda x: x.t(),
    "every_second": lambda x: x[:, ::2],
    "part": lambda x: x[3:, 5:-7],
    "cast": lambda x: x.to(torch.int32).t(),
}


@check("sizes/transfer", "SIZE-007", cases=_TRANSFERRED)
def transfers_are_complete(dev: Device, case: str) -> None:
    """A copy from the host and back, and into a view, moves each of a million elements."""
    host = Inputs(torch.device("cpu"), torch.float32).steps(1031, 970)
    there = host.to(dev.device())
    view = _TRANSFERRED[case]
    dev.assert_equal(view(there), view(host))
    dev.assert_equal(view(host).to(dev.device()), view(host))
    view(there).copy_(view(host).flip(0))
    view(host).copy_(view(host).flip(0).clone())
    dev.assert_equal(there, host)
