# SPDX-License-Identifier: BSD-3-Clause
"""Sizes beyond what one block, tile, launch or dimension of a grid takes, compared with the CPU.

The largest tensors have a million elements. Lengths are odd, so that the last vector, tile and
block are incomplete. The CPU computes the expected results in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import FULL, STANDARD, Device, Inputs, agree_with_double, check

Work = Callable[[Inputs], Any]
Unary = Callable[[Tensor], Any]
Binary = Callable[[Tensor, Tensor], Any]
Ternary = Callable[[Tensor, Tensor, Tensor], Any]

#: Beyond 2^16 and 2^17, and beyond what runs at one time on any device.
LENGTHS = (65_537, 131_075)
MILLION = 1_000_003
#: More rows than a dimension of a grid has blocks.
ROWS = 66_001
_TYPES = ("uint8", "bool", "int16", "int32", "int64", "float16", "bfloat16", "float64", "complex64")


def _supported(dev: Device, dtype: torch.dtype) -> None:
    if dtype not in dev.dtypes():
        dev.unsupported(f"needs {dtype}")


# ---- elements --------------------------------------------------------------------------------

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


@check("sizes/pointwise_type", "SIZE-001", cases=_OF_ANY_TYPE, dtypes=_TYPES, breadth=STANDARD)
def elements_of_each_size_are_reached(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Elements of 1 to 8 bytes are computed to the end, from unaligned addresses, too."""
    _supported(dev, dtype)
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


# ---- reductions and scans ----------------------------------------------------------------------

#: Shape, and the dimension that is reduced.
_REDUCED = (
    ((65_537,), 0),
    ((3, 131_075), 1),
    ((131_075, 3), 0),
    ((ROWS, 5), 1),
    ((5, ROWS), 0),
    ((65, 129, 67), 1),
    ((2, 65_537, 3), 1),
    ((257, 1031), 1),
    ((1031, 257), 0),
)


def _signs(m: Inputs, shape: tuple[int, ...]) -> Tensor:
    return m.whole(*shape, limit=1) * 2 + 1 - 2 * m.whole(*shape, limit=1).abs()


_REDUCTIONS: dict[str, Callable[[Tensor, int], Any]] = {
    "sum": lambda x, d: [x.sum(d), x.mean(d, keepdim=True)],
    "nansum": lambda x, d: x.nansum(d),
    "max": lambda x, d: [*x.max(d), x.amax(d)],
    "min": lambda x, d: [*x.min(d), x.amin(d)],
    "arg": lambda x, d: [x.argmax(d), x.argmin(d)],
    "any": lambda x, d: [(x == 5).any(d), (x != 5).all(d), (x > 9).count_nonzero(d)],
    "norm": lambda x, d: [x.norm(dim=d), x.norm(1, dim=d), x.norm(torch.inf, dim=d)],
    "var": lambda x, d: [x.var(d), x.std(d, correction=0), *torch.var_mean(x, d)],
    "median": lambda x, d: list(x.median(d)),
    "logsumexp": lambda x, d: x.div(2**17).logsumexp(d),
}
_ALL: dict[str, Unary] = {
    "sum": lambda x: [x.sum(), x.mean()],
    "max": lambda x: [x.max(), x.min(), x.argmax(), x.argmin(), *x.aminmax()],
    "any": lambda x: [(x == 5).any(), (x != 5).all(), x.count_nonzero()],
    "norm": lambda x: [x.norm(), x.norm(1)],
    "var": lambda x: [x.var(), x.std(correction=0)],
    "dot": lambda x: x.flatten().div(2**17).dot(x.flatten()),
    "median": lambda x: x.median(),
}


@check("sizes/reduction", "SIZE-003", cases=_REDUCTIONS, breadth=STANDARD)
def reductions_count_each_element_once(dev: Device, case: str) -> None:
    """A reduction over long rows, long columns and many of each counts each element once."""

    def program(m: Inputs) -> list[Any]:
        return [_REDUCTIONS[case](_numbers(m, case, *shape), dim) for shape, dim in _REDUCED]

    agree_with_double(dev, program, rtol=_rtol(case))


_REDUCTION_KINDS = ("sum", "arg", "any")


@check("sizes/reduction_million", "SIZE-003", cases=_REDUCTION_KINDS, breadth=STANDARD)
def reductions_count_each_of_a_million(dev: Device, case: str) -> None:
    """One reduction of each kind counts each of a million elements once."""
    agree_with_double(
        dev, lambda m: _REDUCTIONS[case](_numbers(m, case, MILLION), 0), rtol=_rtol(case)
    )


@check(
    "sizes/reduction_million",
    "SIZE-003",
    cases=[name for name in _REDUCTIONS if name not in _REDUCTION_KINDS],
    breadth=FULL,
)
def other_reductions_count_each_of_a_million(dev: Device, case: str) -> None:
    """The other reductions count each of a million elements once."""
    agree_with_double(
        dev, lambda m: _REDUCTIONS[case](_numbers(m, case, MILLION), 0), rtol=_rtol(case)
    )


#: Sums are of numbers of both signs: each partial sum is exact. Positions need distinct numbers.
_OF_STEPS = ("sum", "nansum", "var")
#: The squares of small integers and their sums are exact, too.
_OF_WHOLE = ("norm", "dot")
_INEXACT = ("var", "logsumexp")


def _numbers(m: Inputs, case: str, *shape: int) -> Tensor:
    if case in _OF_WHOLE:
        return m.whole(*shape)
    return m.steps(*shape) if case in _OF_STEPS else m.distinct(*shape)


def _rtol(case: str) -> float | None:
    return 2e-5 if case in _INEXACT else None


@check("sizes/reduction_all", "SIZE-003", cases=_ALL, breadth=STANDARD)
def reductions_of_all_dimensions_count_each_element_once(dev: Device, case: str) -> None:
    """A reduction to one number counts each element once, also of strided tensors."""

    def program(m: Inputs) -> list[Any]:
        long, wide = _numbers(m, case, 131_075), _numbers(m, case, 257, 1031)
        odd = _numbers(m, case, 65, 129, 37).permute(2, 0, 1)
        return [_ALL[case](x) for x in (long, wide, wide.t(), wide[1:, ::2], odd, long[1:65_538])]

    agree_with_double(dev, program, rtol=_rtol(case))


_SEVERAL: dict[str, Unary] = {
    "outer_and_inner": lambda x: [x.sum((0, 3)), x.amax((0, 3)), x.mean((0, 3), keepdim=True)],
    "channels": lambda x: [x.sum((0, 2, 3)), x.amin((0, 2, 3)), x.var((0, 2, 3))],
    "images": lambda x: [x.sum((1, 2, 3)), x.norm(dim=(2, 3))],
    "middle": lambda x: [x.sum((1, 2)), x.amax((1, 2)), x.logsumexp((1, 2))],
    "permuted": lambda x: [x.permute(3, 1, 0, 2).sum((0, 2)), x.permute(2, 3, 1, 0).amax((1, 3))],
}


@check("sizes/reduction_of_several", "SIZE-003", cases=_SEVERAL)
def reductions_of_several_dimensions_count_each_element_once(dev: Device, case: str) -> None:
    """A reduction over several dimensions, in both memory formats, counts each element once."""

    def program(m: Inputs) -> list[Any]:
        x = m.steps(5, 65, 37, 33)
        return [_SEVERAL[case](x), _SEVERAL[case](x.to(memory_format=torch.channels_last))]

    agree_with_double(dev, program, rtol=2e-5)


@check(
    "sizes/reduction_type",
    "SIZE-003",
    cases=("sum", "max", "arg", "any"),
    dtypes=("uint8", "int32", "int64", "float16", "bfloat16", "float64"),
    breadth=STANDARD,
)
def reductions_of_each_type_count_each_element_once(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """A reduction of each data type counts each element once; of equal ones, none is left out."""
    _supported(dev, dtype)

    def program(m: Inputs) -> list[Any]:
        results = []
        for shape, dim in (((65_537,), 0), ((3, 40_009), 1), ((40_009, 3), 0), ((ROWS, 5), 1)):
            x = m.index(*shape, below=5).to(m.dtype)
            results += [_REDUCTIONS_OF_EQUAL[case](x, dim)]
        return results

    agree_with_double(dev, program, dtype)


_REDUCTIONS_OF_EQUAL: dict[str, Callable[[Tensor, int], Any]] = {
    "sum": lambda x, d: x.sum(d),
    "max": lambda x, d: [x.amax(d), x.amin(d)],
    "arg": lambda x, d: [x.argmax(d), x.argmin(d)],
    "any": lambda x, d: [(x == 4).any(d), (x != 4).all(d), x.count_nonzero(d)],
}

_SCANS: dict[str, Callable[[Inputs, tuple[int, ...], int], Any]] = {
    "cumsum": lambda m, shape, d: m.steps(*shape).cumsum(d),
    "cumsum_of_integers": lambda m, shape, d: m.order(*shape).cumsum(d),
    "cumsum_of_truths": lambda m, shape, d: (m.whole(*shape) > 0).cumsum(d),
    "cumprod": lambda m, shape, d: _signs(m, shape).cumprod(d),
    "cummax": lambda m, shape, d: list(m.distinct(*shape).cummax(d)),
    "cummin": lambda m, shape, d: list(m.distinct(*shape).cummin(d)),
    "logcumsumexp": lambda m, shape, d: m.steps(*shape).logcumsumexp(d),
}


@check("sizes/scan", "SIZE-004", cases=_SCANS, breadth=STANDARD)
def scans_carry_over_each_block(dev: Device, case: str) -> None:
    """A scan of long rows, long columns and many of each carries its state over each block."""
    agree_with_double(
        dev, lambda m: [_SCANS[case](m, shape, dim) for shape, dim in _REDUCED], rtol=2e-5
    )


_SCAN_KINDS = ("cumsum", "cummax")


@check("sizes/scan_million", "SIZE-004", cases=_SCAN_KINDS, breadth=STANDARD)
def scans_carry_over_a_million(dev: Device, case: str) -> None:
    """One scan of each kind carries its state over a million elements."""
    agree_with_double(dev, lambda m: _SCANS[case](m, (MILLION,), 0), rtol=2e-5)


@check(
    "sizes/scan_million",
    "SIZE-004",
    cases=[name for name in _SCANS if name not in _SCAN_KINDS],
    breadth=FULL,
)
def other_scans_carry_over_a_million(dev: Device, case: str) -> None:
    """The other scans carry their state over a million elements."""
    agree_with_double(dev, lambda m: _SCANS[case](m, (MILLION,), 0), rtol=2e-5)


# ---- order -------------------------------------------------------------------------------------

_SORTED = (
    ((65_537,), 0),
    ((2, 131_075), 1),
    ((65_537, 2), 0),
    ((ROWS, 3), 1),
    ((3, ROWS), 0),
    ((257, 1031), 1),
)

_ORDERED: dict[str, Callable[[Tensor, int], Any]] = {
    "sort": lambda x, d: list(x.sort(d)),
    "descending": lambda x, d: list(x.sort(d, descending=True)),
    "argsort": lambda x, d: x.argsort(d),
    "kthvalue": lambda x, d: list(x.kthvalue(x.size(d) // 3 + 1, d)),
    "topk_few": lambda x, d: list(x.topk(2, d)),
    "topk_least": lambda x, d: list(x.topk(2, d, largest=False)),
    "topk_many": lambda x, d: list(x.topk(x.size(d) // 2 + 1, d)),
}


@check("sizes/sort", "SIZE-005", cases=_ORDERED, breadth=STANDARD)
def long_rows_are_ordered(dev: Device, case: str) -> None:
    """Sorts and selections of long rows, long columns and many of each are complete."""
    agree_with_double(
        dev, lambda m: [_ORDERED[case](m.distinct(*shape), dim) for shape, dim in _SORTED]
    )


_ORDER_KINDS = ("sort", "topk_few")


@check("sizes/sort_million", "SIZE-005", cases=_ORDER_KINDS, breadth=STANDARD)
def a_million_elements_are_ordered(dev: Device, case: str) -> None:
    """A sort and a selection of a million elements are complete."""
    agree_with_double(dev, lambda m: _ORDERED[case](m.distinct(MILLION), 0))


@check(
    "sizes/sort_million",
    "SIZE-005",
    cases=[name for name in _ORDERED if name not in _ORDER_KINDS],
    breadth=FULL,
)
def a_million_elements_are_ordered_in_other_ways(dev: Device, case: str) -> None:
    """The other sorts and selections of a million elements are complete."""
    agree_with_double(dev, lambda m: _ORDERED[case](m.distinct(MILLION), 0))


@check(
    "sizes/sort_stable",
    "SIZE-005",
    dtypes=("uint8", "bool", "int16", "int32", "int64", "float16", "float32", "float64"),
    breadth=STANDARD,
)
def equal_elements_of_long_rows_keep_their_order(dev: Device, dtype: torch.dtype) -> None:
    """A stable sort of long rows of few values keeps the order of equal elements."""
    _supported(dev, dtype)

    def program(m: Inputs) -> list[Tensor]:
        x = m.index(2, 65_537, below=5).to(m.dtype)
        return [
            *x.sort(dim=1, stable=True),
            *x.t().sort(dim=0, descending=True, stable=True),
            *x.view(-1).sort(stable=True),
        ]

    agree_with_double(dev, program, dtype)


_SEARCHES: dict[str, Work] = {
    "unique": lambda m: list(
        m.index(131_075, below=70_001).unique(return_inverse=True, return_counts=True)
    ),
    "unique_consecutive": lambda m: list(
        (m.order(131_075).sort().values // 3).unique_consecutive(True, True)
    ),
    "searchsorted": lambda m: [
        torch.searchsorted(m.of(torch.arange(0, 400_003, 3)), m.distinct(400_003)),
        torch.searchsorted(m.of(torch.arange(0, 400_003, 3)), m.distinct(400_003), right=True),
    ],
    "bucketize": lambda m: torch.bucketize(m.steps(400_003), m.of(torch.arange(-8, 8, 0.0625))),
    "isin": lambda m: torch.isin(m.order(66_001), m.order(66_001, seed=1)[:33_001]),
    "bincount": lambda m: [
        torch.bincount(m.index(131_075, below=7)),
        torch.bincount(m.index(131_075, below=70_001), m.steps(131_075)),
    ],
    "histc": lambda m: torch.histc(m.steps(131_075), 1024, -8, 8),
    "mode": lambda m: m.index(129, 1031, below=3000).mode(1).values,
    "quantile": lambda m: torch.quantile(m.distinct(65_537), m.of([0, 0.25, 0.5, 1.0])),
}


@check("sizes/search", "SIZE-005", cases=_SEARCHES, breadth=STANDARD)
def long_tensors_are_searched(dev: Device, case: str) -> None:
    """Searches and counts find all of more than 2^16 different values."""
    agree_with_double(dev, _SEARCHES[case])


# ---- indices -----------------------------------------------------------------------------------

#: Rows that an index names, and as many as that again.
_TABLE = 70_001

_INDEXED: dict[str, Work] = {
    "index": lambda m: m.steps(_TABLE, 3)[m.order(_TABLE)],
    "index_columns": lambda m: m.steps(3, _TABLE)[:, m.order(_TABLE)],
    "index_pairs": lambda m: m.steps(_TABLE, 9)[
        m.index(131_075, below=_TABLE), m.index(131_075, below=9, seed=1)
    ],
    "index_select": lambda m: m.steps(_TABLE, 9).index_select(0, m.order(_TABLE)),
    "index_select_columns": lambda m: m.steps(5, _TABLE).index_select(1, m.order(_TABLE)),
    "gather": lambda m: m.steps(_TABLE, 3).gather(0, m.index(_TABLE, 3, below=_TABLE)),
    "gather_rows": lambda m: m.steps(3, _TABLE).gather(1, m.index(3, 131_075, below=_TABLE)),
    "take": lambda m: m.steps(257, 1031).t().take(m.order(257, 1031)),
    "take_along_dim": lambda m: m.steps(_TABLE, 3).take_along_dim(m.order(_TABLE)[:, None], 0),
    "embedding": lambda m: functional.embedding(m.index(131_075, below=_TABLE), m.steps(_TABLE, 5)),
    "mask": lambda m: m.steps(131_075)[m.whole(131_075) > 0],
    "mask_rows": lambda m: m.steps(ROWS, 3)[m.whole(ROWS) > 0],
    "masked_select": lambda m: m.steps(MILLION).masked_select(m.whole(MILLION) > 0),
    "nonzero": lambda m: [m.whole(MILLION).nonzero(), m.whole(257, 1031).nonzero()],
    "repeat_interleave": lambda m: m.steps(_TABLE).repeat_interleave(m.index(_TABLE, below=4)),
}
_WRITTEN: dict[str, Work] = {
    "index_put": lambda m: m.steps(_TABLE, 3).index_put_((m.order(_TABLE),), m.whole(_TABLE, 3)),
    "index_put_accumulate": lambda m: m.steps(_TABLE, 3).index_put_(
        (m.index(131_075, below=_TABLE),), m.whole(131_075, 3), accumulate=True
    ),
    "index_put_few": lambda m: m.steps(7).index_put_(
        (m.index(131_075, below=7),), m.whole(131_075), accumulate=True
    ),
    "index_add": lambda m: m.steps(_TABLE, 3).index_add_(
        0, m.index(131_075, below=_TABLE), m.whole(131_075, 3)
    ),
    "index_add_columns": lambda m: m.steps(3, _TABLE).index_add_(
        1, m.index(131_075, below=_TABLE), m.whole(3, 131_075)
    ),
    "index_copy": lambda m: m.steps(_TABLE, 3).index_copy_(0, m.order(_TABLE), m.whole(_TABLE, 3)),
    "index_fill": lambda m: m.steps(_TABLE, 3).index_fill_(0, m.order(_TABLE)[:50_001], 9),
    "index_reduce": lambda m: m.steps(_TABLE, 3).index_reduce_(
        0, m.index(131_075, below=_TABLE), m.whole(131_075, 3, limit=9), "amax"
    ),
    "scatter": lambda m: m.steps(_TABLE).scatter_(0, m.order(_TABLE), m.whole(_TABLE)),
    "scatter_add": lambda m: m.steps(_TABLE, 3).scatter_add_(
        0, m.index(131_075, 3, below=_TABLE), m.whole(131_075, 3)
    ),
    "scatter_add_few": lambda m: m.steps(5).scatter_add_(
        0, m.index(131_075, below=5), m.whole(131_075)
    ),
    "scatter_reduce": lambda m: m.steps(3, _TABLE).scatter_reduce_(
        1, m.index(3, 131_075, below=_TABLE), m.whole(3, 131_075, limit=9), "amin"
    ),
    "put": lambda m: m.steps(257, 1031).put_(m.order(257, 1031), m.steps(257, 1031, seed=1)),
    "put_accumulate": lambda m: m.steps(_TABLE).put_(
        m.index(131_075, below=_TABLE), m.whole(131_075), accumulate=True
    ),
    "mask": lambda m: m.steps(131_075).masked_scatter_(m.whole(131_075) > 0, m.steps(131_075)),
    "masked_fill": lambda m: m.steps(MILLION).masked_fill_(m.whole(MILLION) > 0, 9),
    "embedding_gradient": lambda m: m.gradients(
        lambda w: functional.embedding(m.index(131_075, below=_TABLE), w), m.steps(_TABLE, 3)
    ),
    "embedding_gradient_few": lambda m: m.gradients(
        lambda w: functional.embedding(m.index(131_075, below=5), w, 1), m.steps(5, 3)
    ),
    "gather_gradient": lambda m: m.gradients(
        lambda x: x.gather(0, m.index(131_075, below=_TABLE)), m.steps(_TABLE)
    ),
    "embedding_bag": lambda m: m.gradients(
        lambda w: functional.embedding_bag(m.index(2001, 9, below=_TABLE), w, mode="sum"),
        m.steps(_TABLE, 5),
    ),
}


@check("sizes/index_read", "SIZE-006", cases=_INDEXED)
def indices_beyond_16_bits_are_read(dev: Device, case: str) -> None:
    """More than 2^16 indices, with numbers beyond 2^16, each read the element that they name."""
    agree_with_double(dev, _INDEXED[case])


@check("sizes/index_write", "SIZE-006", cases=_WRITTEN)
def indices_beyond_16_bits_are_written(dev: Device, case: str) -> None:
    """More than 2^16 indices, with numbers beyond 2^16, each write or add what they are given."""
    agree_with_double(dev, _WRITTEN[case])


# ---- copies ------------------------------------------------------------------------------------


def _permuted(*order: int) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        x, y = m.steps(65, 37, 129).permute(order), m.steps(65, 37, 129, seed=1).permute(order)
        filled = torch.zeros_like(m.steps(65, 37, 129)).permute(order)
        filled[:, 1:].copy_(y[:, 1:])
        return [x.contiguous(), filled, x.contiguous().copy_(y), x.reshape(-1)]

    return program


_COPIED: dict[str, Work] = {
    "transposed": lambda m: [m.steps(1031, 970).t().contiguous(), m.steps(3, ROWS).t().clone()],
    "permuted_021": _permuted(0, 2, 1),
    "permuted_102": _permuted(1, 0, 2),
    "permuted_120": _permuted(1, 2, 0),
    "permuted_201": _permuted(2, 0, 1),
    "permuted_210": _permuted(2, 1, 0),
    "channels_last": lambda m: [
        m.steps(3, 65, 33, 37).to(memory_format=torch.channels_last),
        m.steps(3, 65, 33, 37).to(memory_format=torch.channels_last).contiguous(),
        m.steps(2, 129, 5, 7, 9).to(memory_format=torch.channels_last_3d),
    ],
    "strided": lambda m: [m.steps(262_151)[::2].clone(), m.steps(1031, 257)[::3, 5:].clone()],
    "into_strided": lambda m: _into(m.steps(1031, 257), m.steps(344, 126, seed=1)),
    "broadcast": lambda m: [m.steps(257).expand(1031, 257).clone(), m.steps(3).repeat(40_001)],
    "cat_many": lambda m: torch.cat([m.steps(i % 7, 5, seed=i % 7) for i in range(1500)]),
    "cat_rows": lambda m: torch.cat([m.steps(1031, n, seed=n) for n in (65, 129, 3, 257)], 1),
    "cat_long": lambda m: torch.cat([m.steps(n) for n in (*LENGTHS, MILLION)]),
    "stack": lambda m: [
        torch.stack([m.steps(65, 37, seed=i % 5) for i in range(300)], 2),
        torch.stack([m.steps(131_075), m.steps(131_075, seed=1)], 1),
    ],
    "split": lambda m: [part.clone() for part in m.steps(1031, 257).split((65, 129, 63), 1)],
    "flip": lambda m: [m.steps(MILLION).flip(0), m.steps(257, 1031).flip(0, 1)],
    "roll": lambda m: [m.steps(131_075).roll(65_537), m.steps(257, 1031).roll((5, 7), (0, 1))],
    "pad": lambda m: [
        functional.pad(m.steps(65, 1031), (3, 5, 2, 1), value=9),
        functional.pad(m.steps(2, 65, 129, 33), (1, 2, 3, 4), mode="reflect"),
        functional.pad(m.steps(1, 2, 65_537), (7, 9), mode="replicate"),
    ],
    "tril": lambda m: [m.steps(1031, 970).tril(-3), m.steps(3, 257, 301).triu(5)],
    "diagonal": lambda m: [m.steps(1031, 970).diagonal(3).clone(), m.steps(1031).diag_embed()],
    "unfold": lambda m: [
        m.steps(65_537).unfold(0, 9, 4).clone(),
        functional.unfold(m.steps(2, 65, 33, 37), (3, 2), padding=1, stride=(2, 1)),
    ],
    "overlapping": lambda m: m.steps(65_600).as_strided((8_193, 17), (8, 3)).clone(),
    "meshgrid": lambda m: [
        x.clone() for x in torch.meshgrid(m.steps(1031), m.steps(257), indexing="ij")
    ],
    "fill": lambda m: [
        torch.full((MILLION,), 3.0, device=m.device, dtype=m.dtype),
        m.steps(1031, 257).t()[3:, ::2].fill_(2),
        m.steps(MILLION).zero_(),
    ],
    "arange": lambda m: [
        torch.arange(MILLION, device=m.device),
        torch.arange(3, 400_003, 3, device=m.device, dtype=m.dtype),
    ],
    "linspace": lambda m: torch.linspace(0, 65_536, 131_073, device=m.device, dtype=m.dtype),
    "eye": lambda m: torch.eye(1031, 970, device=m.device, dtype=m.dtype),
    "indices": lambda m: [
        torch.tril_indices(1031, 257, 2, device=m.device),
        torch.triu_indices(257, 1031, -2, device=m.device),
    ],
    "window": lambda m: torch.hann_window(65_537, device=m.device, dtype=m.dtype),
}


def _into(target: Tensor, source: Tensor) -> Tensor:
    """The whole of a tensor, after a copy into every third row of its second half of columns."""
    target[::3, 131:].copy_(source)
    return target


@check("sizes/copy", "SIZE-007", cases=_COPIED, breadth=STANDARD)
def copies_are_complete(dev: Device, case: str) -> None:
    """Copies, joins, fills and sequences write each element of their result."""
    agree_with_double(dev, _COPIED[case], rtol=1e-5)


@check("sizes/cast", "SIZE-007", dtypes=_TYPES, breadth=STANDARD)
def casts_are_complete(dev: Device, dtype: torch.dtype) -> None:
    """A cast of each pair of data types converts each element, contiguous or transposed."""
    _supported(dev, dtype)
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


# ---- products ----------------------------------------------------------------------------------

#: Rows, inner dimension, columns.
_FACTORS = (
    (65, 129, 33),
    (129, 65, 257),
    (1, 1031, 65),
    (65, 1031, 1),
    (1031, 1, 65),
    (257, 515, 129),
    (65_537, 3, 2),
    (2, 3, 65_537),
    (2, 65_537, 3),
)
_PRODUCTS: dict[str, Callable[[Inputs, int, int, int], Any]] = {
    "mm": lambda m, r, i, c: m.whole(r, i) @ m.whole(i, c),
    "left_transposed": lambda m, r, i, c: m.whole(i, r).t() @ m.whole(i, c),
    "right_transposed": lambda m, r, i, c: m.whole(r, i) @ m.whole(c, i).t(),
    "both_transposed": lambda m, r, i, c: m.whole(i, r).t() @ m.whole(c, i).t(),
    "part": lambda m, r, i, c: m.whole(r + 1, i + 3)[1:, 2:-1] @ m.whole(i, c + 5)[:, 3:-2],
    "addmm": lambda m, r, i, c: torch.addmm(m.whole(r, c), m.whole(r, i), m.whole(i, c), alpha=2),
    "addmm_row": lambda m, r, i, c: torch.addmm(m.whole(c), m.whole(r, i), m.whole(i, c), beta=3),
    "mv": lambda m, r, i, c: [m.whole(r, i) @ m.whole(i), m.whole(i) @ m.whole(i, c)],
    "linear": lambda m, r, i, c: m.gradients(
        functional.linear, m.whole(r, i), m.whole(c, i), m.whole(c)
    ),
    "bmm": lambda m, r, i, c: m.whole(3, r, i) @ m.whole(3, i, c),
    "gradient": lambda m, r, i, c: m.gradients(torch.mm, m.whole(r, i), m.whole(i, c)),
    "outer": lambda m, r, i, c: torch.outer(m.whole(r), m.whole(c)),
}


@check("sizes/product", "SIZE-008", cases=_PRODUCTS, breadth=STANDARD)
def products_are_complete(dev: Device, case: str) -> None:
    """Matrix products with odd, long and thin factors have each row, column and summand."""
    agree_with_double(dev, lambda m: [_PRODUCTS[case](m, *sizes) for sizes in _FACTORS])


@check(
    "sizes/product_type",
    "SIZE-008",
    cases=("mm", "right_transposed", "addmm", "bmm", "linear"),
    dtypes=("float16", "bfloat16", "float64", "complex64", "int64", "int32"),
    breadth=STANDARD,
)
def products_of_each_type_are_complete(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Matrix products of each data type have each row, column and summand."""
    _supported(dev, dtype)
    if not (dtype.is_floating_point or dtype.is_complex) and case in _DIFFERENTIATED:
        dev.unsupported("integers have no gradient")
    agree_with_double(dev, lambda m: [_PRODUCTS[case](m, *sizes) for sizes in _FACTORS[:2]], dtype)


_DIFFERENTIATED = ("linear", "gradient")

_BATCHES: dict[str, Work] = {
    "many": lambda m: m.whole(ROWS, 2, 3) @ m.whole(ROWS, 3, 2),
    "many_transposed": lambda m: m.whole(ROWS, 3, 2).mT @ m.whole(ROWS, 2, 3).mT,
    "broadcast": lambda m: m.whole(65, 1, 5, 7) @ m.whole(33, 7, 9),
    "baddbmm": lambda m: torch.baddbmm(m.whole(65, 33, 1), m.whole(65, 33, 17), m.whole(65, 17, 9)),
    "addbmm": lambda m: torch.addbmm(m.whole(33, 9), m.whole(65, 33, 17), m.whole(65, 17, 9)),
    "einsum": lambda m: torch.einsum("bij,bkj->bik", m.whole(65, 33, 17), m.whole(65, 9, 17)),
    "gradient": lambda m: m.gradients(torch.bmm, m.whole(ROWS, 2, 3), m.whole(ROWS, 3, 2)),
    "strided": lambda m: m.whole(33, 65, 17).permute(1, 0, 2) @ m.whole(17, 65, 9).permute(1, 0, 2),
    "dot": lambda m: [
        m.whole(MILLION).dot(m.whole(MILLION, seed=1)),
        m.whole(131_075)[::2].dot(m.whole(65_538, seed=1)),
    ],
    "attention": lambda m: functional.scaled_dot_product_attention(
        m.steps(2, 3, 129, 65) / 16, m.steps(2, 3, 257, 65, seed=1), m.steps(2, 3, 257, 65, seed=2)
    ),
    "cdist": lambda m: torch.cdist(m.whole(257, 5), m.whole(301, 5, seed=1), 1.0),
    "kron": lambda m: torch.kron(m.whole(65, 33), m.whole(9, 17)),
    "cross": lambda m: torch.linalg.cross(m.whole(ROWS, 3), m.whole(ROWS, 3, seed=1)),
}


@check("sizes/batch", "SIZE-008", cases=_BATCHES, breadth=STANDARD)
def batches_are_complete(dev: Device, case: str) -> None:
    """Batches of more than 2^16 products, and long inner products, are complete."""
    agree_with_double(dev, _BATCHES[case], rtol=1e-5, slack=1e-6)


# ---- convolutions and pools --------------------------------------------------------------------

_LAST = torch.channels_last


def _conv(
    function: Callable[..., Tensor], x: tuple[int, ...], weight: tuple[int, ...], **options: Any
) -> Callable[[Inputs, bool], Any]:
    """A convolution of these shapes with all its gradients; `last`: with the channels last."""
    channels = (
        weight[1] * options.get("groups", 1) if "transpose" in function.__name__ else weight[0]
    )

    def program(m: Inputs, last: bool) -> list[Tensor]:
        image, kernel = m.whole(*x), m.whole(*weight, seed=1)
        if last and image.dim() == 4:
            image, kernel = image.to(memory_format=_LAST), kernel.to(memory_format=_LAST)
        inputs = image, kernel, m.whole(channels, seed=2)
        return m.gradients(lambda *tensors: function(*tensors, **options), *inputs)

    return program


_CONVOLUTIONS: dict[str, Callable[[Inputs, bool], Any]] = {
    "channels": _conv(functional.conv2d, (2, 65, 9, 11), (129, 65, 3, 3), padding=1),
    "more_channels": _conv(functional.conv2d, (1, 129, 7, 5), (65, 129, 1, 1)),
    "strided": _conv(functional.conv2d, (3, 17, 37, 41), (33, 17, 3, 5), stride=(2, 3), padding=2),
    "dilated": _conv(functional.conv2d, (2, 9, 37, 41), (17, 9, 3, 3), dilation=(2, 3)),
    "grouped": _conv(functional.conv2d, (2, 66, 17, 13), (129, 22, 3, 3), groups=3, padding=1),
    "depthwise": _conv(functional.conv2d, (2, 65, 33, 37), (65, 1, 3, 3), groups=65, padding=1),
    "multiplied": _conv(functional.conv2d, (2, 65, 17, 13), (130, 1, 3, 3), groups=65),
    "wide": _conv(functional.conv2d, (1, 2, 3, 65_537), (3, 2, 2, 3), padding=1),
    "high": _conv(functional.conv2d, (1, 2, 65_537, 2), (3, 2, 3, 2), padding=1),
    "many_images": _conv(functional.conv2d, (ROWS, 1, 2, 2), (2, 1, 2, 2)),
    "long": _conv(functional.conv1d, (2, 3, 65_537), (5, 3, 7), padding=3),
    "pixel": _conv(functional.conv2d, (5, 65, 1, 1), (33, 65, 1, 1)),
    "grouped_pixel": _conv(functional.conv2d, (2, 66, 1, 1), (30, 22, 1, 1), groups=3),
    "volume": _conv(functional.conv3d, (2, 9, 7, 9, 11), (17, 9, 3, 3, 3), padding=1),
    "transposed": _conv(
        functional.conv_transpose2d, (2, 65, 9, 7), (65, 33, 3, 3), stride=2, output_padding=1
    ),
    "transposed_long": _conv(functional.conv_transpose1d, (2, 3, 40_001), (3, 5, 4), stride=2),
}


@check("sizes/convolution", "SIZE-009", cases=_CONVOLUTIONS, breadth=STANDARD)
def convolutions_are_complete(dev: Device, case: str) -> None:
    """A convolution and its three gradients are complete for odd, many and long dimensions."""
    agree_with_double(dev, lambda m: _CONVOLUTIONS[case](m, False), slack=1e-5)


@check(
    "sizes/convolution_channels_last",
    "SIZE-009",
    cases=[name for name in _CONVOLUTIONS if name not in ("long", "volume", "transposed_long")],
    breadth=STANDARD,
)
def convolutions_of_channels_last_are_complete(dev: Device, case: str) -> None:
    """A convolution of image and kernel with channels last is complete, as its gradients."""
    agree_with_double(dev, lambda m: _CONVOLUTIONS[case](m, True), slack=1e-5)


@check(
    "sizes/convolution_type",
    "SIZE-009",
    cases=("channels", "grouped", "depthwise", "strided", "transposed", "pixel"),
    dtypes=("float16", "bfloat16", "float64"),
    breadth=STANDARD,
)
def convolutions_of_each_type_are_complete(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A convolution of each floating data type is complete, as its gradients."""
    _supported(dev, dtype)
    agree_with_double(dev, lambda m: _CONVOLUTIONS[case](m, False), dtype, slack=1e-5)


#: Many channels in each memory format; long rows and columns; many images.
_CHANNELS = ((2, 65, 17, 16), (1, 129, 8, 9))
_LONG_IMAGES = ((1, 2, 65_537, 4), (1, 2, 4, 65_537), (ROWS, 1, 4, 4))

_POOLED: dict[str, Unary] = {
    "max_pool": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "max_pool_dilated": lambda x: functional.max_pool2d(x, (2, 3), (1, 2), dilation=(2, 1)),
    "avg_pool": lambda x: functional.avg_pool2d(x, (2, 4), (1, 2), padding=1),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "unfolded": lambda x: functional.unfold(x, 3, padding=1, stride=2),
}
#: What has long sums or long rows of coordinates, which are not exact in float32.
_RESAMPLED: dict[str, Unary] = {
    "adaptive_avg": lambda x: functional.adaptive_avg_pool2d(x, (4, 8)),
    "adaptive_max": lambda x: functional.adaptive_max_pool2d(x, (5, 3)),
    "nearest_exact": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"),
    "shuffled": lambda x: functional.channel_shuffle(x, x.size(1)),
    "max_of_many": lambda x: functional.max_pool2d(x, 8, 8),
}


def _in_both_formats(m: Inputs, function: Unary) -> list[Any]:
    formats = (torch.contiguous_format, torch.channels_last)
    images = [m.distinct(*shape) % 1009 for shape in _CHANNELS]
    return [m.gradients(function, x.to(memory_format=f)) for x in images for f in formats]


@check("sizes/pool", "SIZE-009", cases=_POOLED, breadth=STANDARD)
def pools_are_complete(dev: Device, case: str) -> None:
    """A pool and its gradient are complete for many channels, images, rows and columns."""

    def program(m: Inputs) -> list[Any]:
        images = [m.distinct(*shape) % 1009 for shape in _LONG_IMAGES]
        long = [m.gradients(_POOLED[case], image) for image in images]
        return _in_both_formats(m, _POOLED[case]) + long

    agree_with_double(dev, program, rtol=1e-5, slack=1e-5)


@check("sizes/resampling", "SIZE-009", cases=_RESAMPLED, breadth=STANDARD)
def resamplings_are_complete(dev: Device, case: str) -> None:
    """A resampling and its gradient are complete for many channels, in both memory formats."""
    agree_with_double(dev, lambda m: _in_both_formats(m, _RESAMPLED[case]), rtol=1e-5, slack=1e-5)


# ---- norms, softmax, losses --------------------------------------------------------------------


def _layer_norm(rows: int, features: int) -> Work:
    return lambda m: m.gradients(
        lambda x, w, b: functional.layer_norm(x, (features,), w, b),
        m.steps(rows, features),
        m.whole(features, seed=1),
        m.whole(features, seed=2),
    )


def _batch_norm(*shape: int, last: bool = False, training: bool = True) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        mean, variance = m.whole(shape[1], seed=3), m.whole(shape[1], seed=4).abs() + 1
        x = m.steps(*shape)
        if last:
            x = x.to(memory_format=_LAST)
        weights = m.whole(shape[1], seed=1), m.whole(shape[1], seed=2)
        results = m.gradients(
            lambda x, w, b: functional.batch_norm(x, mean, variance, w, b, training),
            x,
            *weights,
        )
        return [*results, mean, variance]

    return program


def _group_norm(groups: int, *shape: int, last: bool = False) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        x = m.steps(*shape).to(memory_format=_LAST) if last else m.steps(*shape)
        return m.gradients(
            lambda x, w, b: functional.group_norm(x, groups, w, b),
            x,
            m.whole(shape[1], seed=1),
            m.whole(shape[1], seed=2),
        )

    return program


_NORMS: dict[str, Work] = {
    "layer_65": _layer_norm(129, 65),
    "layer_129": _layer_norm(65, 129),
    "layer_1031": _layer_norm(33, 1031),
    "layer_long": _layer_norm(3, 65_537),
    "layer_many": _layer_norm(ROWS, 5),
    "batch_65": _batch_norm(5, 65, 17, 13),
    "batch_129": _batch_norm(3, 129, 9, 11),
    "batch_65_last": _batch_norm(5, 65, 17, 13, last=True),
    "batch_129_last": _batch_norm(3, 129, 9, 11, last=True),
    "batch_rows": _batch_norm(1031, 65),
    "batch_long": _batch_norm(2, 3, 65_537),
    "batch_many": _batch_norm(3, ROWS),
    "batch_evaluated": _batch_norm(5, 65, 17, 13, training=False),
    "batch_evaluated_last": _batch_norm(5, 129, 9, 13, last=True, training=False),
    "group_65": _group_norm(5, 3, 65, 17, 13),
    "group_129": _group_norm(43, 2, 129, 9, 11),
    "group_last": _group_norm(13, 3, 65, 9, 11, last=True),
    "group_long": _group_norm(2, 2, 4, 32_769),
    "group_many": _group_norm(1, ROWS, 2, 3),
    "instance": lambda m: m.gradients(functional.instance_norm, m.steps(5, 65, 9, 13)),
    "rms": lambda m: m.gradients(
        lambda x, w: functional.rms_norm(x, (129,), w, 1e-5),
        m.steps(65, 129),
        m.whole(129, seed=1),
    ),
    "local_response": lambda m: functional.local_response_norm(m.steps(3, 65, 9, 13), 5),
    "normalize": lambda m: functional.normalize(m.steps(ROWS, 5) + 0.5, dim=1),
}


@check("sizes/norm", "SIZE-010", cases=_NORMS, breadth=STANDARD)
def norms_are_complete(dev: Device, case: str) -> None:
    """A normalisation and all its gradients are complete for many features, rows and channels."""
    agree_with_double(dev, _NORMS[case], rtol=1e-4, slack=2e-5)


_SOFTMAX_SHAPES = (
    ((3, 65_537), 1),
    ((65_537, 3), 0),
    ((ROWS, 5), 1),
    ((129, 1031), 1),
    ((1031, 65), 0),
    ((33, 129, 65), 1),
    ((257, 65), 1),
    ((1, 131_075), 1),
)
_SOFTMAXES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "softmin": lambda x, dim: functional.softmin(x, dim),
    "glu": lambda x, dim: functional.glu(torch.cat([x, x.flip(dim)], dim), dim),
}


@check("sizes/softmax", "SIZE-010", cases=_SOFTMAXES, breadth=STANDARD)
def softmaxes_are_complete(dev: Device, case: str) -> None:
    """A softmax and its gradient are complete for long rows, long columns and many of each."""

    def program(m: Inputs) -> list[Any]:
        return [
            m.gradients(lambda x, dim=dim: _SOFTMAXES[case](x, dim), m.steps(*shape) / 2)
            for shape, dim in _SOFTMAX_SHAPES
        ]

    agree_with_double(dev, program, rtol=1e-4, slack=2e-5)


_LOSSES: dict[str, Work] = {
    "mse": lambda m: _loss(m, functional.mse_loss),
    "l1": lambda m: _loss(m, functional.l1_loss),
    "smooth_l1": lambda m: _loss(m, functional.smooth_l1_loss),
    "huber": lambda m: _loss(m, functional.huber_loss),
    "bce_with_logits": lambda m: m.gradients(
        lambda x: functional.binary_cross_entropy_with_logits(
            x, m.index(131_075, below=2).to(m.dtype), reduction="sum"
        ),
        m.steps(131_075),
    ),
    "bce": lambda m: functional.binary_cross_entropy(
        (m.steps(131_075) + 8.5) / 17, m.index(131_075, below=2).to(m.dtype), reduction="none"
    ),
    "kl_div": lambda m: functional.kl_div(
        m.steps(131_075), (m.steps(131_075, seed=1) + 9) / 18, reduction="none"
    ),
    "nll_rows": lambda m: _classified(m, ROWS, 5),
    "nll_classes": lambda m: _classified(m, 3, 65_537),
    "nll_129": lambda m: _classified(m, 257, 129),
    "nll_images": lambda m: m.gradients(
        lambda x: functional.nll_loss(x, m.index(3, 129, 65, below=5), reduction="sum"),
        m.steps(3, 5, 129, 65),
    ),
    "cosine": lambda m: functional.cosine_similarity(m.steps(ROWS, 5) + 9, m.steps(ROWS, 5), 1),
    "margin": lambda m: functional.margin_ranking_loss(
        m.steps(131_075), m.steps(131_075, seed=1), m.of(torch.ones(131_075)), reduction="none"
    ),
    "multi_margin": lambda m: functional.multi_margin_loss(
        m.steps(1031, 65), m.index(1031, below=65), reduction="none"
    ),
}


def _loss(m: Inputs, loss: Callable[..., Tensor]) -> list[Tensor]:
    target = m.steps(131_075, seed=1)
    return [
        *m.gradients(lambda x: loss(x, target, reduction="none"), m.steps(131_075)),
        loss(m.steps(131_075), target),
        loss(m.steps(131_075), target, reduction="sum"),
    ]


def _classified(m: Inputs, rows: int, classes: int) -> list[Tensor]:
    """Losses with weights and ignored rows, in each reduction, and a gradient."""
    labels, weight = m.index(rows, below=classes), m.whole(classes, seed=1).abs() + 1
    x = m.steps(rows, classes)
    return [
        functional.nll_loss(x, labels, weight, ignore_index=1, reduction="none"),
        functional.nll_loss(x, labels, weight, reduction="sum"),
        functional.nll_loss(x, labels, weight, ignore_index=0),
        *m.gradients(lambda x: functional.cross_entropy(x, labels, reduction="sum"), x),
    ]


@check("sizes/loss", "SIZE-010", cases=_LOSSES, breadth=STANDARD)
def losses_are_complete(dev: Device, case: str) -> None:
    """A loss over more than 2^16 elements, rows or classes counts each once, as its gradient."""
    agree_with_double(dev, _LOSSES[case], rtol=5e-5, slack=1e-6)


# ---- lists of tensors ---------------------------------------------------------------------------


def _list(m: Inputs, seed: int = 0) -> list[Tensor]:
    """More tensors than one launch takes, of which some are empty and some are long."""
    sizes = [(7 * i) % 31 for i in range(700)] + [65_537, 0, 131_075, 1, 0]
    whole = m.steps(sum(sizes), seed=seed)
    return [part.clone() for part in whole.split(sizes)]


def _in_place(function: Callable[..., None], *arguments: Any) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        changed = _list(m)
        function(changed, *(a(m) if callable(a) else a for a in arguments))
        return changed

    return program


def _second(m: Inputs) -> list[Tensor]:
    return _list(m, 1)


def _numbers_of_list(m: Inputs) -> list[float]:
    return [float(i % 13 - 6) for i in range(len(_list(m)))]


_LISTS: dict[str, Work] = {
    "add": _in_place(torch._foreach_add_, _second),
    "add_scalar": _in_place(torch._foreach_add_, 1.5),
    "add_scalars": _in_place(torch._foreach_add_, _numbers_of_list),
    "mul": _in_place(torch._foreach_mul_, _second),
    "mul_scalars": _in_place(torch._foreach_mul_, _numbers_of_list),
    "addcmul": _in_place(torch._foreach_addcmul_, _second, _list, 2.0),
    "addcdiv": lambda m: torch._foreach_addcdiv(
        _list(m), _second(m), torch._foreach_add(torch._foreach_abs(_list(m)), 1.0)
    ),
    "lerp": _in_place(torch._foreach_lerp_, _second, 0.25),
    "copy": _in_place(torch._foreach_copy_, _second),
    "zero": _in_place(torch._foreach_zero_),
    "neg": lambda m: torch._foreach_neg(_list(m)),
    "sqrt": lambda m: torch._foreach_sqrt(torch._foreach_abs(_list(m))),
    "maximum": lambda m: torch._foreach_maximum(_list(m), _second(m)),
    "norm": lambda m: [*torch._foreach_norm(_list(m)), *torch._foreach_norm(_list(m), 1)],
    "unscale": lambda m: _unscaled(m, 1.0),
    "unscale_infinity": lambda m: _unscaled(m, torch.inf),
    "clip": lambda m: _clipped(m),
}


def _unscaled(m: Inputs, last: float) -> list[Tensor]:
    """Gradients of which the last element is `last`, divided by 4; and whether one was infinite."""
    grads = _list(m)
    grads[-2][-1] = last
    found = torch.zeros(1, device=m.device)
    scale = torch.full((1,), 0.25, device=m.device)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    return [found > 0, *grads]


def _clipped(m: Inputs) -> list[Tensor]:
    leaves = _list(m)
    for leaf, grad in zip(leaves, _second(m), strict=True):
        leaf.grad = grad
    norm = torch.nn.utils.clip_grad_norm_(leaves, 1.0, foreach=True)
    return [norm, *(leaf.grad for leaf in leaves if leaf.grad is not None)]


@check("sizes/list", "SIZE-011", cases=_LISTS, breadth=STANDARD)
def lists_are_complete(dev: Device, case: str) -> None:
    """An operator on 700 tensors computes each element of each, with the scalar of its own."""
    agree_with_double(dev, _LISTS[case], rtol=1e-5)


_STEPPED: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, 0.1, amsgrad=True, foreach=True),
    "adamw_fused": lambda p: torch.optim.AdamW(p, 0.1, fused=True),
    "sgd_fused": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True),
}


@check("sizes/optimizer", "SIZE-011", cases=_STEPPED, breadth=STANDARD)
def optimizers_step_each_of_many_parameters(dev: Device, case: str) -> None:
    """Two steps of an optimizer over 700 parameters change each element of each."""

    def program(m: Inputs) -> list[Tensor]:
        parameters = [x.requires_grad_() for x in _list(m)]
        optimizer = _STEPPED[case](parameters)
        for _ in range(2):
            for parameter, grad in zip(parameters, _second(m), strict=True):
                parameter.grad = grad + 0.25
            optimizer.step()
        return parameters

    try:
        agree_with_double(dev, program, rtol=1e-4)
    except RuntimeError as error:
        if "fused" not in str(error):
            raise
        dev.unsupported(f"PyTorch has no fused optimizer for the device: {error}")


# ---- everything again, in half the precision ---------------------------------------------------

#: What needs more digits than 16 bits have: variances of few numbers, and numbers beyond 65504.
_WIDE_ONLY = (
    *("batch_many", "group_many", "layer_many", "local_response", "clip", "norm", "window"),
    *("arange", "linspace"),
)
_NARROW: dict[str, Work] = {
    f"{kind}_{name}": work
    for kind, table in (
        ("norm", _NORMS),
        ("list", _LISTS),
        ("index", _INDEXED),
        ("copy", _COPIED),
    )
    for name, work in table.items()
    if name not in _WIDE_ONLY
}


@check("sizes/narrow", "SIZE-012", cases=_NARROW, dtypes=("float16", "bfloat16"), breadth=STANDARD)
def narrow_types_are_complete(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Norms, lists, indices and copies of 16-bit numbers are complete."""
    _supported(dev, dtype)
    agree_with_double(dev, _NARROW[case], dtype, rtol=0.02, slack=0.01)
