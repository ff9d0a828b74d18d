# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise operators reach each element, of each type and in each layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import FULL, STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import LENGTHS, MILLION, TYPES

Binary = Callable[[Tensor, Tensor], Any]
Ternary = Callable[[Tensor, Tensor, Tensor], Any]

#: Of tensors a, b, c of one size.
_POINTWISE: dict[str, Ternary] = {
    "neg": lambda a, b, c: -a,
    "abs": lambda a, b, c: a.abs(),
    "exp": lambda a, b, c: a.exp(),
    "log": lambda a, b, c: (a.abs() + 1).log(),
    "sqrt": lambda a, b, c: a.abs().sqrt(),
    "tanh": lambda a, b, c: a.tanh(),
    "sigmoid": lambda a, b, c: a.sigmoid(),
    "relu": lambda a, b, c: a.relu(),
    "gelu": lambda a, b, c: functional.gelu(a),
    "silu": lambda a, b, c: functional.silu(a),
    "floor": lambda a, b, c: [a.floor(), a.round(), a.sign()],
    "test": lambda a, b, c: [a.isnan(), a.logical_not(), a.signbit()],
    "add": lambda a, b, c: torch.add(a, b, alpha=2),
    "mul": lambda a, b, c: a * b,
    "div": lambda a, b, c: a / (b.abs() + 1),
    "scalar": lambda a, b, c: [2 - a, a * 3, (a.abs() + 1).reciprocal()],
    "maximum": lambda a, b, c: [torch.maximum(a, b), torch.fmin(a, b)],
    "compare": lambda a, b, c: [a < b, a == b, a.ne(0)],
    "atan2": lambda a, b, c: torch.atan2(a, b.abs() + 1),
    "power": lambda a, b, c: [a.pow(2), (a.abs() + 1).pow(b / 8)],
    "where": lambda a, b, c: torch.where(a > b, c, a),
    "clamp": lambda a, b, c: [a.clamp(-2, 3), a.clamp(b, b + c.abs())],
    "lerp": lambda a, b, c: torch.lerp(a, b, c / 8),
    "addcmul": lambda a, b, c: torch.addcmul(a, b, c, value=2),
    "addcdiv": lambda a, b, c: torch.addcdiv(a, b, c.abs() + 1),
    "masked_fill": lambda a, b, c: a.masked_fill(b > c, 7),
    "in_place": lambda a, b, c: a.add_(b).mul_(c).sub_(1),
    "out": lambda a, b, c: torch.mul(a, b, out=c),
    "two_results": lambda a, b, c: list(torch.frexp(a)),
    "complex": lambda a, b, c: [torch.complex(a, b), torch.view_as_real(torch.polar(a.abs(), b))],
    "threshold": lambda a, b, c: [functional.threshold(a, 1, 9), functional.leaky_relu(a, 0.25)],
}


def _three(m: Inputs, *shape: int) -> list[Tensor]:
    return [m.steps(*shape, seed=seed) for seed in range(3)]


_NEEDED_FOR_POINTWISE = {"complex": "complex64"}


@check(
    "sizes/pointwise",
    "SIZE-001",
    cases=_POINTWISE,
    case_needs=_NEEDED_FOR_POINTWISE,
    breadth=STANDARD,
)
def elementwise_operators_reach_the_end(dev: Device, case: str) -> None:
    """An elementwise operator computes each element of a tensor of more than 2^16."""
    agree_with_double(
        dev, lambda m: [_POINTWISE[case](*_three(m, size)) for size in LENGTHS], rtol=2e-6
    )


#: What is applied to a million elements by default: one operator of each kind.
_POINTWISE_KINDS = ("exp", "add", "compare", "where", "in_place", "scalar")


@check("sizes/pointwise_million", "SIZE-001", cases=_POINTWISE_KINDS, breadth=STANDARD)
def elementwise_operators_reach_the_end_of_a_million(dev: Device, case: str) -> None:
    """One elementwise operator of each kind computes each of a million elements."""
    agree_with_double(dev, lambda m: _POINTWISE[case](*_three(m, MILLION)), rtol=2e-6)


@check(
    "sizes/pointwise_million",
    "SIZE-001",
    cases=[name for name in _POINTWISE if name not in _POINTWISE_KINDS],
    case_needs=_NEEDED_FOR_POINTWISE,
    breadth=FULL,
)
def other_elementwise_operators_reach_the_end_of_a_million(dev: Device, case: str) -> None:
    """The other elementwise operators compute each of a million elements."""
    agree_with_double(dev, lambda m: _POINTWISE[case](*_three(m, MILLION)), rtol=2e-6)


#: Of integers or floating numbers of any type.
_OF_ANY_TYPE: dict[str, Binary] = {
    "arithmetic": lambda a, b: [a + b, a * b, a + 1] if a.dtype != torch.bool else [a & b],
    "compare": lambda a, b: [a == b, a != 1, a.bool()],
    "choose": lambda a, b: [torch.where(a == b, a, b), a.masked_fill(b == 1, 0)],
    "copy": lambda a, b: [a.clone(), a.flip(0), torch.cat([a, b]), a.clone().copy_(b)],
    "cast": lambda a, b: [
        a.to(torch.complex64 if a.is_complex() else torch.float32),
        a.to(torch.bool),
    ],
    "unaligned": lambda a, b: [a[1:].clone(), a[:-1] == b[1:], a[3:].clone().copy_(b[:-3])],
    "strided": lambda a, b: [a[::2].clone(), a[::3] == b[::3], a.view(-1, 1).expand(-1, 2).clone()],
    "fill": lambda a, b: [a.clone().fill_(3), a.clone()[1:].zero_(), torch.full_like(b, 2)],
}


@check("sizes/pointwise_type", "SIZE-001", cases=_OF_ANY_TYPE, dtypes=TYPES, breadth=STANDARD)
def elements_of_each_size_are_reached(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Elements of 1 to 8 bytes are computed to the end, from unaligned addresses, too."""
    low = 0 if dtype in (torch.uint8, torch.bool) else -5

    def program(m: Inputs) -> list[Tensor]:
        a, b = (m.index(131_075, below=9, seed=seed) + low for seed in (0, 1))
        return _OF_ANY_TYPE[case](a.to(m.dtype), b.to(m.dtype))

    agree_with_double(dev, program, dtype)


#: Pairs of operands, of which the second is broadcast or strided in another way.
_LAYOUTS: dict[str, Callable[[Inputs], tuple[Tensor, Tensor]]] = {
    "row": lambda m: (m.steps(1031, 257), m.steps(257, seed=1)),
    "column": lambda m: (m.steps(1031, 257), m.steps(1031, 1, seed=1)),
    "outer": lambda m: (m.steps(1031, 1), m.steps(1, 257, seed=1)),
    "middle": lambda m: (m.steps(65, 1, 37), m.steps(1, 129, 37, seed=1)),
    "blocks": lambda m: (m.steps(65, 1, 1, 37), m.steps(1, 129, 3, 1, seed=1)),
    "long_row": lambda m: (m.steps(3, 131_075), m.steps(131_075, seed=1)),
    "long_column": lambda m: (m.steps(131_075, 3), m.steps(131_075, 1, seed=1)),
    "scalar": lambda m: (m.steps(131_075), m.steps(1, seed=1)[0]),
    "offset": lambda m: (m.steps(131_075)[1:], m.steps(131_077, seed=1)[3:]),
    "every_second": lambda m: (m.steps(262_149)[::2], m.steps(131_075, seed=1)),
    "transposed": lambda m: (m.steps(257, 1031).t(), m.steps(1031, 257, seed=1)),
    "permuted": lambda m: (m.steps(65, 37, 129).permute(2, 0, 1), m.steps(129, 65, 37, seed=1)),
    "part": lambda m: (m.steps(1031, 301)[1:, 7:264], m.steps(1030, 257, seed=1)),
    "channels_last": lambda m: (
        m.steps(3, 65, 33, 37).to(memory_format=torch.channels_last),
        m.steps(65, 1, 1, seed=1),
    ),
    "both_channels_last": lambda m: (
        m.steps(3, 129, 17, 19).to(memory_format=torch.channels_last),
        m.steps(3, 129, 17, 19, seed=1).to(memory_format=torch.channels_last),
    ),
    "expanded": lambda m: (m.steps(1031, 1).expand(1031, 257), m.steps(1031, 257, seed=1)),
    "many_dimensions": lambda m: (
        m.steps(3, 5, 7, 9, 11, 13).permute(5, 3, 1, 0, 2, 4),
        m.steps(9, 5, 1, 7, 1, seed=1),
    ),
}


@check("sizes/layout", "SIZE-002", cases=_LAYOUTS)
def operands_of_each_layout_are_reached(dev: Device, case: str) -> None:
    """Broadcast, transposed, unaligned and strided operands give each element its partners."""

    def program(m: Inputs) -> list[Tensor]:
        a, b = _LAYOUTS[case](m)
        changed = (a + 0 * b).contiguous()
        return [a + b, b * a, torch.where(a < b, a, b), a >= b, changed.sub_(b), (a + b).sum()]

    agree_with_double(dev, program)


@check("sizes/layout_gradient", "SIZE-002", cases=_LAYOUTS, breadth=STANDARD)
def gradients_of_each_layout_are_summed(dev: Device, case: str) -> None:
    """The gradient of a broadcast operand is the sum over its copies."""

    def program(m: Inputs) -> list[Tensor]:
        a, b = (x.detach().requires_grad_() for x in _LAYOUTS[case](m))
        return list(torch.autograd.grad((a + b).sum() + (a * b.detach()).sum(), (a, b)))

    agree_with_double(dev, program)
