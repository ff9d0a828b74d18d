# SPDX-License-Identifier: BSD-3-Clause
"""Kernels reach elements that are further apart than 32 bits count, without the memory between."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
from ptx_executor import needs_ptx
from ptx_kernels import SHOWN, ExactLaunch, families, in_child, wrong_answers

from hal_conformance.answers import STORAGE, Case, In, InOut, Out, Placement
from hal_conformance.known_answers import known_answers

pytestmark = needs_ptx

#: Between the elements of one dimension: more than 2^31 elements of a byte, and not a power of two.
FAR = (3 << 30) + 4096
#: Sizes of a dimension that is stretched; elements are written one by one.
FEW, MANY = 6, 400
CASES = 12

#: The strides of what they index are numbers in their arguments, which a layout does not change.
LEFT_OUT = frozenset({"indexing"})
#: One of each idiom over strided operands.
IDIOMS = ("add", "copy", "cumsum", "fill", "gemm", "sum")


def stretched(shape: tuple[int, ...]) -> int | None:
    """The dimension whose elements are put far apart."""
    if math.prod(shape) > MANY:
        return None
    return next((d for d, size in enumerate(shape) if 2 <= size <= FEW), None)


def shape_of(operand: Any) -> tuple[int, ...]:
    if isinstance(operand, Out) and operand.shape is not None:
        return operand.shape
    return np.shape(operand.before if isinstance(operand, InOut) else operand.values)


class Far:
    """A layout with one dimension stretched."""

    def __init__(self, layout: Any, dimension: int) -> None:
        self.layout, self.dimension = layout, dimension

    def __call__(self, shape: tuple[int, ...], size: int) -> Placement:
        near = self.layout(shape, size)
        strides = list(near.strides)
        strides[self.dimension] += FAR
        more = (shape[self.dimension] - 1) * FAR
        return Placement(near.bytes + more, near.offset, tuple(strides))


def far(value: Any) -> Any:
    """Arguments with operands that are stretched where that is possible."""
    if isinstance(value, dict):
        return {name: far(each) for name, each in value.items()}
    if isinstance(value, list):
        return [far(each) for each in value]
    if isinstance(value, In | Out | InOut):
        dimension = stretched(shape_of(value))
        return value if dimension is None else replace(value, layout=Far(value.layout, dimension))
    return value


class FarLaunch(ExactLaunch):
    def _pointer(self, field: Any, value: Any, path: str, index: int) -> Any:
        # Without strides in the arguments, a layout cannot change.
        if field.type == "void*" and isinstance(getattr(value, "layout", None), Far):
            value = replace(value, layout=value.layout.layout)
        return super()._pointer(field, value, path, index)

    def _addresses(self, block: Any) -> Iterator[tuple[tuple[int, ...], int]]:
        for index in np.ndindex(*block.shape):
            at = sum(i * step for i, step in zip(index, block.placement.strides, strict=True))
            yield index, block.address + block.placement.offset + at

    def _write(self, block: Any, elements: Any) -> None:
        if isinstance(block.operand.layout, Far):
            for index, address in self._addresses(block):
                self._driver.write(address, elements[index].tobytes(), self._stream)
        else:
            super()._write(block, elements)

    def _read(self, block: Any) -> Any:
        if not isinstance(block.operand.layout, Far):
            return super()._read(block)
        dtype = STORAGE[block.operand.dtype]
        elements = np.empty(block.shape, dtype)
        for index, address in self._addresses(block):
            raw = self._driver.read(address, dtype.itemsize, self._stream)
            elements[index] = np.frombuffer(raw, dtype)[0]
        return elements


def has_far(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(has_far, value.values() if isinstance(value, dict) else value))
    return isinstance(getattr(value, "layout", None), Far)


def far_cases(kernel: str) -> Iterator[Case]:
    cases = (replace(case, args=far(case.args)) for case in known_answers(kernel))
    found = [case for case in cases if case.fails is None and has_far(case.args)]
    yield from islice(found, 0, None, max(1, len(found) // CASES))


def far_answers_of(kernel: str) -> tuple[int, list[str]]:
    return wrong_answers(far_cases(kernel), FarLaunch)


def check(kernels: list[str]) -> None:
    wrong = []
    for name in kernels:
        _, found = in_child(partial(far_answers_of, name))
        wrong += found[:SHOWN]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_reaches_them(name: str) -> None:
    assert any(True for _ in far_cases(name))
    check([name])


@pytest.mark.nightly
@pytest.mark.parametrize("family", sorted(dict(families()).keys() - LEFT_OUT))
def test_every_kernel_reaches_them(family: str) -> None:
    check(dict(families())[family])
