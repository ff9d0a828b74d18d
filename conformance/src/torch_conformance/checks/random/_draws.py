# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: random operators, and numbers drawn with them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device

FLOATING = ("float16", "bfloat16", "float32", "float64")
#: Draws large enough for a kernel to divide them among threads, blocks or calls.
LARGE: dict[str, Callable[[torch.device], Tensor]] = {
    "rand": lambda d: torch.rand(100_003, device=d),
    "randn": lambda d: torch.randn(100_003, device=d),
    "randn_float64": lambda d: torch.randn(50_001, device=d, dtype=torch.float64),
    "randint": lambda d: torch.randint(0, 2**40, (100_003,), device=d),
    "randperm": lambda d: torch.randperm(50_001, device=d),
    "bernoulli": lambda d: torch.empty(100_003, device=d).bernoulli_(0.3),
    "exponential": lambda d: torch.empty(100_003, device=d).exponential_(),
    "dropout": lambda d: functional.dropout(torch.ones(100_003, device=d), 0.5),
    "multinomial": lambda d: torch.multinomial(torch.ones(100, device=d), 20_001, True),
}

LARGE_NEEDS = {"randn_float64": "float64"}

#: How many numbers `drawn` draws.
N = 200_000


def drawn(dev: Device, dtype: torch.dtype, fill: Callable[[Tensor], Tensor]) -> Tensor:
    """A large tensor of the dtype after `fill`, on the CPU, in float64."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16", "float64"})
    torch.manual_seed(51)
    values = fill(torch.empty(N, dtype=dtype, device=dev.device()))
    assert values.dtype == dtype
    return values.cpu().double()
