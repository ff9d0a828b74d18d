# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of the negative log likelihood and its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    REALS,
    STORAGE,
    Array,
    Case,
    In,
    InOut,
    Layout,
    Out,
    dense,
    flipped,
    gaps,
    rounded,
    transposed,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers
from hal_conformance.known_answers.reduction import inf, nan

NONE, MEAN, SUM = range(3)
# batch, classes, inner
SMALL = [(1, 1, 1), (5, 7, 1), (3, 4, 6), (65, 3, 1), (2, 3, 64), (0, 3, 1), (2, 3, 0)]
LARGE = [(n, 3, 1) for n in (63, 64, 1025, 4096, 4099, 70000)] + [(2, 300, 4099)]


class Likelihood:
    """Operands of a launch."""

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, int, int],
        reduction: int,
        weighted: bool = True,
        ignored: int = 1,
        target_type: DType = DType.INT64,
        target: Array | None = None,
    ) -> None:
        self.dtype, self.shape, self.reduction = dtype, shape, reduction
        batch, classes, inner = shape
        random = np.random.default_rng(12)
        drawn = random.integers(0, classes, (batch, inner))
        self.target = drawn if target is None else np.asarray(target).reshape(batch, inner)
        given = np.abs(numbers((classes,), dtype, 13)) + 0.5
        weight = rounded(given if weighted else np.ones(classes), dtype).astype(np.longdouble)
        self.counted = self.target != ignored
        self.weight = np.where(self.counted, weight[np.clip(self.target, 0, classes - 1)], 0)
        self.total = self.weight.sum()
        self.args: dict[str, Any] = {
            "dtype": dtype,
            "target_dtype": target_type,
            "reduction": reduction,
            "batch": batch,
            "classes": classes,
            "inner": inner,
            "ignore_index": ignored,
            "target": In(self.target, target_type),
            "weight": In(weight, dtype) if weighted else None,
        }
        type_name = f"{dtype.name.lower()} target {target_type.name.lower()}"
        self.name = f"{type_name} {shape} reduction {reduction} weighted {weighted}"
        self.name += f" ignoring {ignored}"

    def at_target(self, values: Array) -> Array:
        """values[b, target[b, i], i]"""
        place = np.clip(self.target, 0, self.shape[1] - 1)[:, None]
        return np.take_along_axis(values, place, axis=1)[:, 0]

    def out(self, values: Any, terms: Any = 0) -> Out:
        off = 2 * EPSILON[COMPUTE[self.dtype]] * float(np.max(terms, initial=0))
        return Out(np.asarray(values), self.dtype, ulps=2, absolute=off)

    def forward(self, label: str = "", values: Array | None = None) -> Case:
        given = numbers(self.shape, self.dtype, 14) if values is None else values
        x = rounded(given, self.dtype).astype(np.longdouble)
        with np.errstate(all="ignore"):
            losses = np.where(self.counted, -self.weight * self.at_target(x), 0)
            result = losses.sum() if self.reduction else losses
            size = np.abs(losses).sum() if self.reduction else np.zeros(1)
            if self.reduction == MEAN:
                result, size = result / self.total, size / self.total
        total = 0 if self.reduction == NONE else self.total
        args = {
            **self.args,
            "in": In(x, self.dtype),
            "output": self.out(result, size if np.isfinite(size) else 0),
            "total_weight": self.out(total, total),
        }
        return Case("nll_loss", f"{self.name} {label}".strip(), args, (self.dtype,))

    def backward(self, label: str = "", layout: Layout = dense, broadcast: bool = False) -> Case:
        shape = (1, 1) if broadcast or self.reduction else self.target.shape
        grad = rounded(numbers(shape, self.dtype, 15), self.dtype).astype(np.longdouble)
        total = rounded(self.total, self.dtype).astype(np.longdouble)
        steps = -self.weight * grad
        with np.errstate(all="ignore"):
            steps = steps / total if self.reduction == MEAN else steps
        expected = np.zeros(self.shape, np.longdouble)
        is_class = (self.target >= 0) & (self.target < self.shape[1])
        for b, i in np.argwhere(self.counted & is_class):
            expected[b, self.target[b, i], i] = steps[b, i]
        size = STORAGE[self.dtype].itemsize
        strides = [step // size for step in layout(shape, size).strides]
        args = {
            **self.args,
            "grad_strides": [0, 0] if broadcast else strides,
            "in": In(grad, self.dtype, layout),
            "output": InOut(np.zeros(self.shape), expected, self.dtype, ulps=2),
            "total_weight": In(total, self.dtype),
        }
        name = f"{self.name} {layout.__name__} broadcast {broadcast} {label}".strip()
        return Case("nll_loss_backward", name, args, (self.dtype,))


def cases() -> Iterator[Case]:
    for reduction in (NONE, MEAN, SUM):
        for dtype in REALS:
            for shape in SMALL:
                yield Likelihood(dtype, shape, reduction).forward()
                yield Likelihood(dtype, shape, reduction).backward()
            for options in (
                {"weighted": False},
                {"ignored": -100},
                {"target_type": DType.UINT8},
                {"target_type": DType.UINT8, "weighted": False, "ignored": -100},
            ):
                yield Likelihood(dtype, (6, 5, 4), reduction, **options).forward()
                yield Likelihood(dtype, (6, 5, 4), reduction, **options).backward()
            # Nothing counts; what is ignored need not be a class.
            ignoring = Likelihood(dtype, (3, 4, 1), reduction, ignored=9, target=[9, 9, 9])
            yield ignoring.forward("all ignored")
            if reduction != MEAN:
                yield ignoring.backward("all ignored")
            special = np.array([[inf, 0], [0, -inf], [nan, 0], [1, nan]])[:, :, None]
            for picked in ([0, 1, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1]):
                likely = Likelihood(dtype, (4, 2, 1), reduction, ignored=-1, target=picked)
                yield likely.forward(f"not finite {picked}", special)
        for shape in LARGE:
            yield Likelihood(DType.FLOAT32, shape, reduction).forward()
            if shape[0] < 10000:
                yield Likelihood(DType.FLOAT32, shape, reduction).backward()
        for index in (3, -1, 2**40):
            wrong = Likelihood(DType.FLOAT32, (2, 3, 1), reduction, target=[0, index])
            message = f"nll_loss: target: index {index} is out of bounds for dimension with size 3"
            for case in (wrong.forward(f"index {index}"), wrong.backward(f"index {index}")):
                yield Case(case.kernel, case.name, case.args, case.types, fails=message)
    for layout in (transposed, gaps, flipped):
        yield Likelihood(DType.FLOAT32, (5, 4, 6), NONE).backward("", layout)
    yield Likelihood(DType.FLOAT32, (5, 4, 6), NONE).backward("", broadcast=True)
