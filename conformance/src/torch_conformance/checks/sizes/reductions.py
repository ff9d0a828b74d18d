# SPDX-License-Identifier: BSD-3-Clause
"""Reductions count each element once, along one dimension, several or all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import FULL, STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import MILLION, REDUCED, ROWS, Unary

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
        return [_REDUCTIONS[case](_numbers(m, case, *shape), dim) for shape, dim in REDUCED]

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
