# SPDX-License-Identifier: BSD-3-Clause
"""Magnitudes: large common offsets, large and small numbers, in every floating data type.

A naive formula is right for numbers about 1. Here it overflows, vanishes or cancels, and a stable
one does not. The CPU computes the expected results in double precision from the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Inputs, agree_with_double, check

Work = Callable[[Inputs], Any]
_FLOATS = ("float16", "bfloat16", "float32", "float64")

#: An offset, and steps of which the sums with the offset are exact. The offset is beyond where the
#: exponential function overflows, and its square loses the squares of the steps.
_OFFSETS = {
    torch.float16: (1024.0, 1.0),
    torch.bfloat16: (128.0, 1.0),
    torch.float32: (256.0, 2.0**-4),
    torch.float64: (2.0**18, 2.0**-8),
}


class _Numbers:
    """The inputs of a program for the range of a data type."""

    def __init__(self, m: Inputs, dtype: torch.dtype) -> None:
        self.m = m
        self.dtype = dtype
        self.offset, self.step = _OFFSETS[dtype]
        info = torch.finfo(dtype)
        self.largest, self.least = info.max, info.smallest_normal

    def near(self, *shape: int, sign: float = 1.0, seed: int = 0) -> Tensor:
        """Numbers close to each other and far from zero."""
        return self.m.of(self._steps(*shape, seed=seed) + sign * self.offset)

    def far(self, *shape: int) -> Tensor:
        """Rows of such numbers, each row about another offset, one of them about zero."""
        offsets = torch.tensor([1.0, -1.0, 0.0, 0.5, -0.5])[: shape[0]] * self.offset
        return self.m.of(self._steps(*shape) + offsets.view(-1, *[1] * (len(shape) - 1)))

    def below_one(self, *shape: int) -> Tensor:
        """Numbers so little below one that a running sum of many of them rounds up."""
        return self.m.of(1 - self._steps(*shape).abs() * 2.0**-11)

    def _steps(self, *shape: int, seed: int = 0) -> Tensor:
        host = Inputs(torch.device("cpu"), torch.float64)
        return host.whole(*shape, seed=seed) * self.step

    def of(self, *values: float) -> Tensor:
        """Numbers, rounded to the data type."""
        return self.m.of(torch.tensor(values, dtype=self.dtype))


Numbers = Callable[[_Numbers], Any]

# ---- exponentials and logarithms ---------------------------------------------------------------


def _rows(function: Callable[[Tensor], Tensor], *shape: int) -> Numbers:
    """A function of rows about several offsets, and its gradient."""
    return lambda n: n.m.gradients(function, n.far(*shape))


_STABILISED: dict[str, Numbers] = {
    "logsumexp": lambda n: n.far(5, 33).logsumexp(1),
    "logsumexp_columns": lambda n: n.far(5, 33).t().contiguous().logsumexp(0),
    "logsumexp_long": lambda n: n.far(2, 1031).logsumexp(1),
    "log_softmax": _rows(lambda x: x.log_softmax(1), 5, 33),
    "log_softmax_columns": lambda n: n.far(5, 33).t().contiguous().log_softmax(0),
    "log_softmax_long": lambda n: n.far(2, 1031).log_softmax(1),
    "cross_entropy": lambda n: functional.cross_entropy(
        n.far(5, 33), n.m.index(5, below=33), reduction="none"
    ),
    "bce_with_logits": lambda n: functional.binary_cross_entropy_with_logits(
        n.of(-90, 90, 80, -80, 0, 8, -8), n.of(0, 1, 0, 1, 1, 0, 1), reduction="none"
    ),
    "logaddexp": lambda n: torch.logaddexp(
        n.of(n.offset, -n.offset, n.offset, -90), n.of(n.offset, -n.offset, -n.offset, -90)
    ),
}


@check("magnitudes/stabilised", "MAGNITUDE-001", cases=_STABILISED, dtypes=_FLOATS)
def documented_logarithms_of_sums_are_stable(dev: Device, case: str, dtype: torch.dtype) -> None:
    """What is documented to be stable is right for numbers whose exponentials overflow."""
    _agree(dev, _STABILISED[case], dtype)


def _agree(dev: Device, work: Numbers, dtype: torch.dtype, tolerance: float | None = None) -> None:
    """Compare with double precision; without a tolerance, in units of the type's last place."""
    allowed = 4 * torch.finfo(dtype).eps if tolerance is None else tolerance
    agree_with_double(dev, lambda m: work(_Numbers(m, dtype)), dtype, rtol=allowed, slack=allowed)


_SHIFTED: dict[str, Numbers] = {
    "softmax": _rows(lambda x: x.softmax(1), 5, 33),
    "softmax_columns": lambda n: n.far(5, 33).t().contiguous().softmax(0),
    "softmax_long": lambda n: n.far(2, 1031).softmax(1),
    "softmin": lambda n: functional.softmin(n.far(5, 33), 1),
    "logcumsumexp": lambda n: n.far(5, 33).logcumsumexp(1),
    "attention": lambda n: functional.scaled_dot_product_attention(
        n.of(*[n.offset / 16] * 4).view(1, 1, 4),
        n.of(*range(-4, 4)).view(1, 2, 4),
        n.of(*range(8)).view(1, 2, 4),
    ),
}


@check("magnitudes/shifted", "MAGNITUDE-002", cases=_SHIFTED, dtypes=_FLOATS)
def softmaxes_do_not_depend_on_a_common_offset(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A softmax of numbers about a large offset, of either sign, is neither NaN nor zero."""
    _agree(dev, _SHIFTED[case], dtype)


# ---- moments -----------------------------------------------------------------------------------

_MOMENTS: dict[str, Numbers] = {
    "mean": lambda n: [n.near(1031).mean(), n.near(5, 33).mean(1), n.near(33, 5, sign=-1).mean(0)],
    "var": lambda n: [n.near(1031).var(), n.near(5, 33).var(1), n.near(33, 5).var(0)],
    "std": lambda n: [n.near(1031).std(correction=0), n.near(5, 33).std(1), n.near(33, 5).std(0)],
    "var_mean": lambda n: [*torch.var_mean(n.near(5, 333), 1), *torch.std_mean(n.near(333, 5), 0)],
    "var_long": lambda n: [n.near(65_537).var(), n.near(2, 9_001).var(1), n.near(9_001, 2).var(0)],
    "layer_norm": lambda n: [
        functional.layer_norm(n.near(5, 65), (65,)),
        functional.layer_norm(n.near(2, 4_099), (4_099,)),
    ],
    "group_norm": lambda n: functional.group_norm(n.near(3, 6, 7, 5), 2),
    "batch_norm": lambda n: [
        functional.batch_norm(n.near(9, 5, 7), None, None, training=True),
        functional.batch_norm(n.near(65, 3), None, None, training=True),
        functional.batch_norm(
            n.near(3, 4, 9, 7).to(memory_format=torch.channels_last), None, None, training=True
        ),
    ],
    "instance_norm": lambda n: functional.instance_norm(n.near(3, 5, 9, 7)),
}


@check("magnitudes/moments", "MAGNITUDE-003", cases=_MOMENTS, dtypes=("float32", "float64"))
def moments_do_not_cancel(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Means, variances and normalisations of numbers that are close to each other are precise."""
    _agree(dev, _MOMENTS[case], dtype, 2e-3 if dtype == torch.float32 else 1e-6)


_N = 50_001
_LONG_ROWS: dict[str, Numbers] = {
    "var": lambda n: [n.below_one(2, _N).var(1), n.below_one(2, _N).std(1)],
    "layer_norm": lambda n: functional.layer_norm(n.below_one(2, _N), (_N,), eps=1e-30),
    "group_norm": lambda n: functional.group_norm(n.below_one(1, 2, _N), 2, eps=1e-30),
    "batch_norm": lambda n: functional.batch_norm(
        n.below_one(1, 2, _N), None, None, training=True, eps=1e-30
    ),
}


@check("magnitudes/long_rows", "MAGNITUDE-003", cases=_LONG_ROWS, dtypes=("float32",))
def moments_of_long_rows_do_not_drift(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Normalisations of 50,001 numbers just below one are right to a hundredth."""
    _agree(dev, _LONG_ROWS[case], dtype, 0.01)


# ---- sums that leave the range -----------------------------------------------------------------

#: Of 16-bit numbers, whose sums and squares need the range of 32 bits.
_WIDENED: dict[str, Numbers] = {
    "mean": lambda n: [n.of(*[6e4] * 99).mean(), n.of(*[6e4] * 99).view(33, 3).mean(0)],
    "var": lambda n: n.of(*[-300, 0, 300] * 33).var(),
    "norm": lambda n: [n.of(*[300] * 99).norm(), n.of(*[300] * 99).view(33, 3).norm(dim=0)],
    "norm_small": lambda n: n.of(*[1e-4] * 99).norm(),
    "layer_norm": lambda n: functional.layer_norm(n.of(*[-6e4, 0, 6e4] * 33), (99,)),
    "rms_norm": lambda n: functional.rms_norm(n.of(*[-6e4, 3e4, 6e4] * 33), (99,)),
    "group_norm": lambda n: functional.group_norm(n.of(*[-6e4, 0, 6e4] * 32).view(2, 4, 12), 2),
    "batch_norm": lambda n: functional.batch_norm(
        n.of(*[-6e4, 0, 6e4] * 33).view(3, 33).t(), None, None, training=True
    ),
    "cancelled": lambda n: [
        n.of(6e4, 6e4, -6e4, -6e4).sum(),
        n.of(6e4, 6e4, -6e4, -6e4).view(4, 1).sum(0),
        n.of(6e4, 6e4, -6e4, -6e4).view(1, 4) @ n.of(1, 1, 1, 1).view(4, 1),
    ],
    "avg_pool": lambda n: functional.avg_pool2d(n.of(*[6e4] * 64).view(1, 1, 8, 8), 8),
    "adaptive_avg": lambda n: functional.adaptive_avg_pool2d(n.of(*[6e4] * 64).view(1, 1, 8, 8), 1),
    "mse_loss": lambda n: functional.mse_loss(n.of(*[200] * 99), n.of(*[0] * 99)),
    "bilinear": lambda n: functional.interpolate(
        n.of(6e4, 6e4, 6e4, 6e4).view(1, 1, 2, 2), scale_factor=2, mode="bilinear"
    ),
}


@check("magnitudes/widened", "MAGNITUDE-004", cases=_WIDENED, dtypes=("float16", "bfloat16"))
def sums_of_16_bits_leave_their_range(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A sum or square inside an operator may be larger or smaller than 16-bit numbers can be."""
    _agree(dev, _WIDENED[case], dtype)


# ---- small numbers -----------------------------------------------------------------------------


def _of_small(function: Callable[[Tensor], Tensor]) -> Numbers:
    """A function whose result is as small as its argument."""

    def work(n: _Numbers) -> Tensor:
        scales = (1, 2**-4, 2**-8, 2**-12) if n.dtype == torch.float16 else (1, 1e-4, 1e-12, 1e-25)
        return function(n.of(*(sign * 0.25 * s for s in scales for sign in (1, -1))))

    return work


_ACCURATE = {
    "log1p": _of_small(torch.log1p),
    "expm1": _of_small(torch.expm1),
}
_SMALL = {
    name: _of_small(getattr(torch, name))
    for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh")
} | {
    "elu": _of_small(functional.elu),
    "softsign": _of_small(functional.softsign),
    "silu": _of_small(functional.silu),
    "sum": _of_small(lambda x: x.view(4, 2)[:, 0].cumsum(0).flip(0)),
    "square": _of_small(lambda x: x[:4].square()),
    "division": _of_small(lambda x: x[:4] / (x[:4] * 2)),
    "mean": _of_small(lambda x: x.view(4, 2).abs().mean(1)),
    "prod": _of_small(lambda x: x[:4].view(2, 2).prod(1)),
}


@check("magnitudes/accurate", "MAGNITUDE-005", cases=_ACCURATE, dtypes=_FLOATS)
def documented_functions_of_small_numbers_are_accurate(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """log1p and expm1 of small numbers keep all their digits."""
    _agree_in_each_digit(dev, _ACCURATE[case], dtype)


@check("magnitudes/small", "MAGNITUDE-006", cases=_SMALL, dtypes=_FLOATS)
def functions_of_small_numbers_keep_their_digits(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """A function of small numbers has a small relative error, not only a small error."""
    _agree_in_each_digit(dev, _SMALL[case], dtype)


def _agree_in_each_digit(dev: Device, work: Numbers, dtype: torch.dtype) -> None:
    wanted = work(_Numbers(Inputs(torch.device("cpu"), torch.float64), dtype)).to(dtype)
    found = work(_Numbers(Inputs(dev.device(), dtype), dtype))
    info = torch.finfo(dtype)
    rtol = max(dev.tolerance(dtype)[0], 8 * info.eps)
    dev.assert_close(found, wanted, rtol=rtol, atol=info.smallest_normal)


#: Where one minus a number, or the difference of logarithms, would lose everything.
_TAILS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "softplus": functional.softplus,
    "logsigmoid": lambda x: functional.logsigmoid(-x),
    "exp": torch.exp,
    "silu": functional.silu,
    "tanh": lambda x: torch.tanh(x / 64),
}


@check("magnitudes/tail", "MAGNITUDE-006", cases=_TAILS, dtypes=("float32", "float64"))
def tails_keep_their_digits(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A function that tends to zero keeps its digits down to the smallest numbers."""
    _agree_in_each_digit(dev, lambda n: _TAILS[case](n.of(-1, -5, -10, -20, -40, -60, -80)), dtype)
