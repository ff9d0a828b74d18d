# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of the four steps of batch norm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hal_conformance.answers import COMPUTE, EPSILON, REALS, Array, Case, In, InOut, Out, rounded
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers
from hal_conformance.known_answers.reduction import inf, nan

# Of the elements and of the parameters.
TYPES = [
    *((dtype, dtype) for dtype in REALS),
    (DType.FLOAT16, DType.FLOAT32),
    (DType.BFLOAT16, DType.FLOAT32),
]
# outer, channels, inner
SMALL = [(2, 3, 1), (2, 3, 5), (1, 1, 4), (4, 65, 1), (3, 64, 2), (70, 3, 2), (2, 0, 3)]
EMPTY = [(0, 3, 2), (2, 3, 0)]
LARGE = [(2, 3, 4099), (4099, 3, 1), (5, 2, 4096), (70, 65, 1), (1, 4099, 2), (1, 2, 65536)]
EPS, MOMENTUM = 2.0**-10, 0.25


@dataclass(frozen=True)
class Norm:
    """Operands of the given types and shape, rounded; what follows from them, in more precision."""

    types: tuple[DType, DType]
    shape: tuple[int, int, int]
    training: int
    offset: float = 0

    @property
    def computed(self) -> DType:
        return COMPUTE[self.types[0]]

    def elements(self, seed: int) -> Array:
        values = numbers(self.shape, self.types[0], seed) + self.offset * (seed == 1)
        return np.asarray(rounded(values, self.types[0]), np.longdouble)

    def parameters(self, seed: int, around: float = 0, dtype: DType | None = None) -> Array:
        dtype = dtype or self.types[1]
        values = numbers(self.shape[1:2], DType.FLOAT64, seed)
        values = np.exp(values / 2) if around else values + self.offset * (seed == 5)
        return np.asarray(rounded(values, dtype), np.longdouble)

    @cached_property
    def mean(self) -> Array:
        return self.parameters(5)

    @cached_property
    def invstd(self) -> Array:
        """What a gradient multiplies with: saved, or of the running variance."""
        second = self.parameters(6, 1)
        return second if self.training else 1 / np.sqrt(second + np.longdouble(EPS))

    def args(self, **operands: Any) -> dict[str, Any]:
        outer, channels, inner = self.shape
        return {
            "dtype": self.types[0],
            "parameter_dtype": self.types[1],
            "training": self.training,
            "outer": outer,
            "channels": channels,
            "inner": inner,
            "epsilon": EPS,
            "momentum": MOMENTUM,
            **operands,
        }

    def case(self, kernel: str, label: str, **operands: Any) -> Case:
        names = " ".join(dtype.name.lower() for dtype in self.types)
        name = f"{names} {self.shape} training {self.training} {label}".strip()
        return Case(f"batch_norm_{kernel}", name, self.args(**operands), self.types)

    def of_elements(self, values: Array, off: Any = 0) -> Out:
        return Out(values, self.types[0], ulps=2, absolute=self.error(off))

    def of_parameters(self, values: Array, off: Any = 0) -> Out:
        return Out(values, self.types[1], ulps=4, absolute=self.error(off))

    def error(self, off: Any) -> float:
        """Of sums of terms as large as `off`."""
        return 4 * EPSILON[self.computed] * float(np.max(off, initial=0))

    def statistics(self) -> dict[str, Any]:
        """The mean and the deviation in the fields that hold them."""
        second = In(self.parameters(6, 1), self.types[1])
        mean = In(self.mean, self.types[1])
        names = ("save_mean", "save_invstd") if self.training else ("running_mean", "running_var")
        return dict(zip(names, (mean, second), strict=True))

    # ---- the kernels ----

    def scale(self, weight: bool = True, bias: bool = True, running: bool = True) -> Case:
        computed, (_, dtype) = self.computed, self.types
        variance, mean = self.parameters(2, 1, computed), self.parameters(3, 0, computed)
        old_mean, old_var = self.mean, self.parameters(6, 1)
        count = self.shape[0] * self.shape[2]
        unbiased = variance * (np.longdouble(count) / max(count - 1, 1))
        w = self.parameters(7) if weight else np.ones(self.shape[1])
        b = self.parameters(8) if bias else np.zeros(self.shape[1])
        used_mean, used_var = (mean, variance) if self.training else (old_mean, old_var)
        invstd = 1 / np.sqrt(used_var + np.longdouble(EPS))
        affine = np.stack([w * invstd, b - used_mean * w * invstd])
        off = self.error(np.abs(b) + np.abs(used_mean * w * invstd))
        operands: dict[str, Any] = {
            "weight": In(w, dtype) if weight else None,
            "bias": In(b, dtype) if bias else None,
            "affine": Out(affine, computed, ulps=4, absolute=off),
            "statistics": In(np.stack([variance, mean]), computed) if self.training else None,
        }
        if self.training:
            operands["save_mean"] = self.of_parameters(mean)
            operands["save_invstd"] = self.of_parameters(invstd)
        if running:
            now = [(old_mean, mean), (old_var, unbiased)]
            for name, (old, new) in zip(("running_mean", "running_var"), now, strict=True):
                next = MOMENTUM * new + (1 - MOMENTUM) * old if self.training else old
                off = self.error(np.abs(old) + np.abs(new))
                operands[name] = InOut(old, next, dtype, ulps=4, absolute=off)
        return self.case("scale", f"weight {weight} bias {bias} running {running}", **operands)

    def apply(self) -> Case:
        x = self.elements(1)
        affine = np.stack([self.parameters(seed, 0, self.computed) for seed in (2, 3)])
        scaled, shift = x * affine[0][:, None], affine[1][:, None]
        out = self.of_elements(scaled + shift, np.abs(scaled) + np.abs(shift))
        affine_in = In(affine, self.computed)
        return self.case("apply", "", out=out, affine=affine_in, **{"in": In(x, self.types[0])})

    def backward_sums(self, wanted: bool = True) -> Case:
        x, grad = self.elements(1), self.elements(4)
        products = grad * (x - self.mean[:, None])
        sums = np.stack([values.sum(axis=(0, 2)) for values in (grad, products)])
        terms = np.stack([np.abs(values).sum(axis=(0, 2)) for values in (grad, products)])
        out = Out(sums, self.computed, ulps=4, absolute=self.error(terms))
        weight = self.of_parameters(sums[1] * self.invstd, terms[1] * self.invstd)
        return self.case(
            "backward_sums",
            f"parameters {wanted}",
            **{"in": In(x, self.types[0]), "out": In(grad, self.types[0]), "statistics": out},
            grad_weight=weight if wanted else None,
            grad_bias=self.of_parameters(sums[0], terms[0]) if wanted else None,
            **self.statistics(),
        )

    def backward(self, weight: bool = True) -> Case:
        x, grad = self.elements(1), self.elements(4)
        sums = np.stack([self.parameters(seed, 0, self.computed) for seed in (2, 3)])
        w = self.parameters(7) if weight else np.ones(self.shape[1])
        scale = (w * self.invstd)[:, None]
        count = np.longdouble(max(1, self.shape[0] * self.shape[2]))
        slope = (sums[1] / count * self.invstd**2)[:, None]
        along = (x - self.mean[:, None]) * slope * self.training
        shift = (sums[0] / count)[:, None] * self.training
        expected = (grad - shift - along) * scale
        off = (np.abs(grad) + np.abs(shift) + np.abs(along)) * np.abs(scale)
        return self.case(
            "backward",
            f"weight {weight}",
            **{"in": In(x, self.types[0]), "out": In(grad, self.types[0])},
            weight=In(w, self.types[1]) if weight else None,
            statistics=In(sums, self.computed),
            grad_in=self.of_elements(expected, off),
            **self.statistics(),
        )


def cases() -> Iterator[Case]:
    for training in (0, 1):
        for types in TYPES:
            large = LARGE if types == TYPES[2] else []
            for shape in SMALL + EMPTY + large:
                norm = Norm(types, shape, training)
                if shape not in EMPTY:
                    yield norm.scale()
                yield norm.apply()
                yield norm.backward_sums()
                yield norm.backward()
            norm = Norm(types, (3, 5, 7), training)
            yield norm.scale(weight=False)
            yield norm.scale(bias=False)
            yield norm.scale(weight=False, bias=False)
            if training:
                yield norm.scale(running=False)
            yield norm.backward_sums(wanted=False)
            yield norm.backward(weight=False)
        for dtype in (DType.FLOAT32, DType.FLOAT64):
            for shape in ((4, 3, 600), (600, 3, 1)):
                far = Norm((dtype, dtype), shape, training, offset=1000)
                yield far.backward_sums()
                yield far.backward()
    yield from _special()


def _special() -> Iterator[Case]:
    """A channel's NaN and infinity are its own; so is a variance of 0."""
    for dtype in REALS:
        norm = Norm((dtype, dtype), (1, 4, 3), 0)
        x = np.array([[[1, nan, 2], [inf, -inf, 0], [1, 2, 3], [4, 5, 6]]])
        affine = np.array([[2.0, 1, 0, nan], [1.0, 0, 7, 0]])
        expected = x * affine[0][:, None] + affine[1][:, None]
        yield norm.case(
            "apply",
            "not finite",
            **{"in": In(x, dtype), "out": Out(expected, dtype)},
            affine=In(affine, norm.computed),
        )
        norm = Norm((dtype, dtype), (1, 3, 3), 1)
        with np.errstate(all="ignore"):
            statistics = np.array([[0, nan, inf], [1.0, 2, 3]])
            invstd = 1 / np.sqrt(statistics[0] + EPS)
            affine = np.stack([invstd, -statistics[1] * invstd])
        yield norm.case(
            "scale",
            "not finite",
            statistics=In(statistics, norm.computed),
            affine=Out(affine, norm.computed),
            save_mean=Out(statistics[1], dtype),
            save_invstd=Out(invstd, dtype),
        )
