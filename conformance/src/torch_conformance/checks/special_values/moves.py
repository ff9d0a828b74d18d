# SPDX-License-Identifier: BSD-3-Clause
"""What only moves numbers keeps all their bits."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.special_values._values import Unary

#: What only moves numbers keeps their bits.
_MOVES: dict[str, Unary] = {
    "clone": lambda x: x.clone(),
    "cat": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack([x, x], -1),
    "flip": lambda x: x.flip(0),
    "transposed": lambda x: x.t().contiguous(),
    "strided": lambda x: x[:, ::2].clone(),
    "where": lambda x: torch.where(x != 7, x, x.flip(0)),
    "index": lambda x: x[torch.tensor([1, 0, 1], device=x.device)],
    "index_select": lambda x: x.index_select(1, torch.tensor([1, 0], device=x.device)),
    "gather": lambda x: x.gather(0, torch.zeros(2, 4, dtype=torch.int64, device=x.device)),
    "scatter": lambda x: torch.zeros_like(x).scatter(
        0, torch.tensor([[0] * 4, [1] * 4], device=x.device), x
    ),
    "index_put": lambda x: torch.zeros_like(x).index_put_(
        (torch.tensor([0, 1], device=x.device),), x
    ),
    "masked_select": lambda x: x.masked_select(x != 7),
    "roll": lambda x: x.roll(1, 0),
    "pad": lambda x: functional.pad(x, (1, 1)),
    "repeat": lambda x: x.repeat(3, 2),
    "tril": lambda x: x.tril(1),
    "embedding": lambda x: functional.embedding(torch.tensor([1, 0], device=x.device), x),
    "take": lambda x: x.take(torch.arange(8, device=x.device)),
    "foreach_copy": lambda x: _copied_list(x),
    "unfold": lambda x: x.unfold(1, 3, 1).clone(),
}


def _copied_list(x: Tensor) -> Tensor:
    target = torch.zeros_like(x)
    torch._foreach_copy_([target], [x])
    return target


@check("special_values/bits", "SPECIAL-002", cases=_MOVES)
def moves_keep_all_bits(dev: Device, case: str) -> None:
    """What only moves numbers keeps signed zeros, subnormal numbers and the bits of a NaN."""
    bits = torch.tensor(
        [[-(2**31), 0, 1, -(2**31) + 1], [0x7FC12345, -0x3EDCBB, 0x7F800000, 0x00400000]],
        dtype=torch.int32,
    )
    numbers = bits.view(torch.float32)  # on the CPU, as below: the device need not have such views
    actual = dev.cpu(_MOVES[case](numbers.to(dev.device())))
    dev.assert_equal(actual.view(torch.int32), _MOVES[case](numbers).view(torch.int32))
