# SPDX-License-Identifier: BSD-3-Clause
"""Special values: signed zeros, subnormal numbers, NaN, infinities, corners and limits of types.

The expected values are those of the CPU in double precision, or of Python's integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import (
    Device,
    Inputs,
    agree,
    agree_with_double,
    check,
    tensors,
)

Work = Callable[[Inputs], Any]
Unary = Callable[[Tensor], Any]
Binary = Callable[[Tensor, Tensor], Any]

_NAN, _INF = float("nan"), float("inf")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def _supported(dev: Device, dtype: torch.dtype) -> None:
    if dtype not in dev.dtypes():
        dev.unsupported(f"needs {dtype}")


def _same_zeros(dev: Device, dtype: torch.dtype, work: Work) -> None:
    """What is zero in double precision is zero of the same sign on the device."""
    expected = tensors(work(Inputs(torch.device("cpu"), torch.float64)))
    actual = tensors(work(Inputs(dev.device(), dtype)))
    for got, wanted in zip(actual, expected, strict=True):
        zero = wanted == 0
        values = dev.cpu(got)[zero]
        assert zero.any(), "the CPU computes no zero"
        assert bool((values == 0).all()), f"{values[values != 0].tolist()} instead of zero"
        wrong = values.signbit() != wanted[zero].signbit()
        assert not wrong.any(), f"zeros of the other sign at {zero.nonzero()[wrong].tolist()}"


# ---- the sign of zero --------------------------------------------------------------------------

_ODD: dict[str, Unary] = {
    name: getattr(torch, name)
    for name in (
        *("neg", "sqrt", "floor", "ceil", "trunc", "round", "sin", "tan", "asin", "atan", "sinh"),
        *(
            "tanh",
            "asinh",
            "atanh",
            "expm1",
            "log1p",
            "erf",
            "erfinv",
            "deg2rad",
            "positive",
            "abs",
        ),
        "square",
    )
}


def _of_zeros(function: Unary) -> Work:
    return lambda m: function(m.of([-0.0, 0.0]))


#: Of (-0.0, 0.0) and numbers that are rounded to zero.
_SIGNED_ZEROS: dict[str, Work] = {
    **{name: _of_zeros(function) for name, function in _ODD.items()},
    "rounded": lambda m: [
        m.of([-0.25, 0.25, -0.5, 0.5]).round(),
        m.of([-0.25, -0.75]).ceil(),
        m.of([-0.25, 0.75]).trunc(),
    ],
    "reciprocal": lambda m: [m.of([-_INF, _INF]).reciprocal(), 1 / m.of([-_INF, _INF])],
    "add": lambda m: _pairs(m, torch.add),
    "sub": lambda m: _pairs(m, torch.sub),
    "mul": lambda m: _pairs(m, torch.mul),
    "div": lambda m: m.of([-0.0, 0.0])[:, None] / m.of([1, -1, _INF, -_INF]),
    "scalar": lambda m: [m.of([-0.0, 0.0]) * -2, m.of([0.0, -0.0]) - 0.0, -0.0 - m.of([0.0, -0.0])],
    "fmod": lambda m: m.of([-0.0, 0.0, -6.0, 6.0])[:, None].fmod(m.of([3, -3, _INF])),
    "atan2": lambda m: torch.atan2(m.of([-0.0, 0.0]), m.of([1.0, 2.0])),
    "copysign": lambda m: torch.copysign(m.of([0.0, -0.0])[:, None], m.of([-0.0, 0.0, -1, 1])),
    "power": lambda m: m.of([-0.0, 0.0])[:, None].pow(m.of([1.0, 2.0, 3.0, 5.0])),
    "ldexp": lambda m: torch.ldexp(m.of([-0.0, 0.0]), m.of([3.0, 3.0])),
    "clamp": lambda m: m.of([-0.0, 0.0]).clamp(-1, 1),
    "leaky_relu": lambda m: functional.leaky_relu(m.of([-0.0, 0.0]), 0.5),
    "lists": lambda m: torch._foreach_mul([m.of([-0.0, 0.0]), m.of([0.0])], -1.0),
}


def _pairs(m: Inputs, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    values = m.of([-0.0, 0.0, 1.0, -1.0])
    return function(values[:, None], values)


@check("special_values/zero", "SPECIAL-001", cases=_SIGNED_ZEROS, dtypes=_FLOATS)
def zeros_have_their_sign(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A result that is exactly zero has the sign that IEEE 754 gives it."""
    _supported(dev, dtype)
    _same_zeros(dev, dtype, _SIGNED_ZEROS[case])


#: Writing a negative zero is not zeroing memory.
_WRITTEN_ZEROS: dict[str, Work] = {
    "fill": lambda m: m.whole(33).fill_(-0.0),
    "fill_tensor": lambda m: m.whole(33).fill_(m.of(-0.0)),
    "full": lambda m: torch.full((33,), -0.0, dtype=m.dtype, device=m.device),
    "full_like": lambda m: torch.full_like(m.whole(33), -0.0),
    "new_full": lambda m: m.whole(33).new_full((3,), -0.0),
    "assigned": lambda m: _assigned(m.whole(33), slice(1, 30, 2), -0.0)[1:30:2],
    "assigned_index": lambda m: _assigned(m.whole(33), m.order(33), -0.0),
    "masked_fill": lambda m: m.whole(33).masked_fill(m.whole(33) < 9, -0.0),
    "index_fill": lambda m: m.whole(33).index_fill(0, m.order(33), -0.0),
    "scatter": lambda m: m.whole(33).scatter(0, m.order(33), -0.0),
    "where": lambda m: torch.where(m.whole(33) < 9, -0.0, m.whole(33)),
    "pad": lambda m: functional.pad(m.whole(3), (5, 5), value=-0.0)[:5],
    "tensor": lambda m: torch.tensor([-0.0, 0.0], dtype=m.dtype, device=m.device),
    "foreach": lambda m: torch._foreach_mul([m.of([0.0]), m.of([0.0])], [-1.0, 1.0]),
}


def _assigned(target: Tensor, index: Any, value: float) -> Tensor:
    target[index] = value
    return target


@check("special_values/written_zero", "SPECIAL-001", cases=_WRITTEN_ZEROS, dtypes=_FLOATS)
def negative_zeros_are_written(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A fill with negative zero writes negative zeros."""
    _supported(dev, dtype)
    _same_zeros(dev, dtype, _WRITTEN_ZEROS[case])


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


# ---- subnormal numbers -------------------------------------------------------------------------


def _subnormal(m: Inputs, dtype: torch.dtype) -> Tensor:
    info = torch.finfo(dtype)
    least, tiny = info.smallest_normal * info.eps, info.smallest_normal
    return m.of(torch.tensor([least, -least, 3 * least, tiny / 2, -tiny / 2, tiny], dtype=dtype))


#: Of subnormal numbers x; each result is exact.
_OF_SUBNORMAL: dict[str, Unary] = {
    "neg": lambda x: [-x, x.abs()],
    "add": lambda x: [x + x, x - x.flip(0)],
    "scaled": lambda x: [x * 2, x * 4, 2 * x],
    "compare": lambda x: [x > 0, x == 0, x < x.flip(0), x.sign(), x.signbit()],
    "truth": lambda x: [x.bool(), x.logical_not(), x.count_nonzero(), x.any(), x.nonzero()],
    "choose": lambda x: [torch.maximum(x, -x), x.max(), x.clamp(min=0), x.relu(), x.argmax()],
    "sum": lambda x: [x.sum(), x.view(2, 3).sum(0), x.cumsum(0)],
    "copy": lambda x: [x.clone(), x.flip(0), torch.cat([x, x]), torch.where(x > 0, x, x)],
    "sort": lambda x: list(x.sort()),
    "fmod": lambda x: x.fmod(x.abs().max()),
    "in_place": lambda x: x.clone().add_(x).sub_(x),
    "foreach": lambda x: torch._foreach_add([x, x], [x, x]),
}


@check("special_values/subnormal", "SPECIAL-003", cases=_OF_SUBNORMAL, dtypes=_FLOATS)
def subnormal_numbers_are_not_zero(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Numbers below the smallest normal one are computed exactly, and are not zero."""
    _supported(dev, dtype)
    work = _OF_SUBNORMAL[case]
    expected = tensors(work(_subnormal(Inputs(torch.device("cpu"), torch.float64), dtype)))
    actual = tensors(work(_subnormal(Inputs(dev.device(), dtype), dtype)))
    for got, wanted in zip(actual, expected, strict=True):
        dev.assert_equal(got, wanted.to(got.dtype) if wanted.is_floating_point() else wanted)


@check("special_values/subnormal_cast", "SPECIAL-003", dtypes=_FLOATS)
def subnormal_numbers_are_converted(dev: Device, dtype: torch.dtype) -> None:
    """A conversion to each floating data type rounds to its subnormal numbers."""
    _supported(dev, dtype)
    host = Inputs(torch.device("cpu"), dtype)
    for other in dev.dtypes("floating"):
        numbers = torch.cat([_subnormal(host, dtype), _subnormal(host, other) * 1.25])
        dev.assert_equal(numbers.to(dev.device()).to(other), numbers.to(other))


# ---- extreme values ----------------------------------------------------------------------------

#: Of the range of each type: what does not overflow when it is squared in a wider one.
_EXTREME = {
    torch.float16: (6e4, 6.104e-05, 3e3, 1e-3),
    torch.bfloat16: (1e30, 1e-30, 1e10, 1e-10),
    torch.float32: (1e30, 1e-30, 1e10, 1e-10),
    torch.float64: (1e300, 1e-300, 1e30, 1e-30),
}


def _extremes(m: Inputs, dtype: torch.dtype) -> Tensor:
    numbers = [*_EXTREME[dtype], 1.0, 0.0, _INF]
    values = torch.tensor([sign * n for n in numbers for sign in (1, -1)] + [_NAN], dtype=dtype)
    return m.of(values)


def _not_small(x: Tensor) -> Tensor:
    return torch.where(x.abs() < 1, torch.ones_like(x), x)


_NAMES = (
    *("abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
    *("reciprocal", "square", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "sigmoid", "erfc", "floor", "ceil", "round", "trunc", "relu", "isnan"),
    *("isinf", "isfinite", "isposinf", "isneginf", "signbit", "logical_not", "sin", "cos", "tan"),
)
_OF_EXTREMES: dict[str, Unary] = {
    **{name: getattr(torch, name) for name in _NAMES},
    **{
        name: getattr(functional, name)
        for name in (
            *("silu", "softplus", "mish", "logsigmoid", "hardtanh", "relu6", "hardswish"),
            *("hardsigmoid", "elu", "celu", "selu", "leaky_relu", "softshrink", "hardshrink"),
            "softsign",
        )
    },
    # The CPU's vectors compute erf of small numbers as zero, and gelu of infinity as NaN.
    "erf": lambda x: _not_small(x).erf(),
    "gelu": lambda x: functional.gelu(_not_small(x).nan_to_num(_NAN, 9, -9)),
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "bool": lambda x: x.bool(),
    "nan_to_num": lambda x: x.nan_to_num(1.0, 2.0, 3.0),
    "threshold": lambda x: functional.threshold(x, 1e-3, 7.0),
    "xlogy": lambda x: torch.xlogy(torch.zeros_like(x), x),
}


@check("special_values/extreme", "SPECIAL-004", cases=_OF_EXTREMES, dtypes=_FLOATS)
def functions_of_extreme_values_neither_overflow_nor_vanish(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """A function of very large and very small numbers, infinities and NaN has the right value."""
    _supported(dev, dtype)
    _agree_relatively(dev, lambda m: _OF_EXTREMES[case](_extremes(m, dtype)), dtype)


def _agree_relatively(dev: Device, work: Work, dtype: torch.dtype) -> None:
    """Compare with double precision; small results must be as precise as large ones."""
    expected = tensors(work(Inputs(torch.device("cpu"), torch.float64)))
    actual = tensors(work(Inputs(dev.device(), dtype)))
    for got, wanted in zip(actual, expected, strict=True):
        if not wanted.is_floating_point():
            dev.assert_equal(got, wanted)
            continue
        rtol = max(dev.tolerance(got.dtype)[0], 8 * torch.finfo(got.dtype).eps)
        tiny = torch.finfo(got.dtype).smallest_normal
        dev.assert_close(got, wanted.to(got.dtype), rtol=rtol, atol=tiny)


_OF_EXTREME_PAIRS: dict[str, Binary] = {
    name: getattr(torch, name)
    for name in (
        *("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "pow"),
        *("atan2", "copysign", "hypot", "logaddexp", "eq", "ne", "lt", "le", "gt", "ge", "xlogy"),
        *("logical_and", "logical_or", "logical_xor", "heaviside"),
    )
}


@check("special_values/extreme_pair", "SPECIAL-004", cases=_OF_EXTREME_PAIRS, dtypes=_FLOATS)
def operators_on_extreme_values_neither_overflow_nor_vanish(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """An operator on pairs of large and small numbers, infinities and NaN has the right value."""
    _supported(dev, dtype)

    def work(m: Inputs) -> Any:
        x = _extremes(m, dtype)
        return _OF_EXTREME_PAIRS[case](x[:, None], x)

    _agree_relatively(dev, work, dtype)


_COMPLEX = ("complex64", "complex128")
_MIDDLE = (0.0, 1e-30, 1e-5, 0.5, 1.0, 1 + 2.0**-20, 2.0)

#: Functions that do not overflow, of parts up to near the largest number.
_OF_FAR = (
    *("asin", "acos", "atan", "asinh", "acosh", "atanh", "log", "log2", "log10", "log1p"),
    *("sqrt", "rsqrt", "reciprocal", "abs", "angle", "sgn"),
)
_OF_NEAR = (
    *("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "square", "sigmoid"),
)
#: Where a function is infinite: the sign of a zero decides the kind of the infinity.
_POLES: dict[str, tuple[complex, ...]] = {
    "atan": (1j, -1j),
    "atanh": (1, -1),
    "log1p": (-1,),
    **dict.fromkeys(("log", "log2", "log10", "rsqrt", "reciprocal"), (0,)),
}

#: Absolute errors of the CPU, which takes the arc cosine of numbers next to 1 by a difference.
_LOST = dict.fromkeys(("acos", "acosh"), torch.finfo(torch.float64).eps)


def _plane(case: str, dtype: torch.dtype) -> Tensor:
    """Numbers of which each part is of each magnitude and sign."""
    far = (1e5, 1e20, torch.finfo(dtype).max / 4)
    sizes = (*_MIDDLE, *(far if case in _OF_FAR else (30.0,)))
    parts = torch.tensor([sign * n for n in sizes for sign in (1, -1)], dtype=dtype.to_real())
    numbers = torch.complex(*torch.meshgrid(parts, parts, indexing="ij")).flatten()
    for pole in _POLES.get(case, ()):
        numbers = numbers[numbers != pole]
    return numbers


@check("special_values/complex", "SPECIAL-004", cases=(*_OF_FAR, *_OF_NEAR), dtypes=_COMPLEX)
def functions_of_large_and_small_parts_are_right(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """A function of complex numbers is right for parts of each pair of magnitudes and signs."""
    _supported(dev, dtype)
    numbers = _plane(case, dtype)
    got = getattr(torch, case)(numbers.to(dev.device()))
    wanted = getattr(torch, case)(numbers.to(torch.complex128)).to(got.dtype)
    rtol = max(dev.tolerance(got.dtype)[0], 16 * torch.finfo(got.dtype).eps)
    atol = _LOST.get(case, torch.finfo(got.dtype).smallest_normal)
    dev.assert_close(got, wanted, rtol=rtol, atol=atol)


#: Neighbours of these, towards each other, are found by their bits.
_STEPPED = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0, 1.5, _INF, -_INF, _NAN)


@check("special_values/nextafter", "SPECIAL-004", dtypes=_FLOATS)
def neighbours_are_the_next_numbers(dev: Device, dtype: torch.dtype) -> None:
    """nextafter gives the next number of the type, around zero, powers of two and the limits."""
    _supported(dev, dtype)
    info = torch.finfo(dtype)
    least, tiny = info.smallest_normal * info.eps, info.smallest_normal
    edges = [sign * n for n in (least, 2 * least, tiny, tiny - least, info.max) for sign in (1, -1)]
    x = torch.tensor([*_STEPPED, *edges], dtype=torch.float64).to(dtype)
    there = x.to(dev.device())
    dev.assert_equal(torch.nextafter(there[:, None], there), torch.nextafter(x[:, None], x))


# ---- NaN in each operand -----------------------------------------------------------------------


def _with_nan(m: Inputs, *shape: int, seed: int = 0) -> Tensor:
    """Small integers with a NaN in the middle and an infinity at the end."""
    x = m.whole(*shape, seed=seed)
    x.view(-1)[x.numel() // 2] = _NAN
    x.view(-1)[-1] = _INF
    return x


_WITH_NAN: dict[str, Work] = {
    "clamp_min": lambda m: [m.whole(9).clamp(min=_with_nan(m, 9))],
    "clamp_max": lambda m: [m.whole(9).clamp(max=_with_nan(m, 9))],
    "clamp_both": lambda m: [
        m.whole(9).clamp(_with_nan(m, 9), m.whole(9) + 2),
        m.whole(9).clamp(m.whole(9) - 2, _with_nan(m, 9)),
        _with_nan(m, 9).clamp(m.whole(9) - 2, m.whole(9) + 2),
        m.whole(9).clamp(_NAN, 1),
        m.whole(9).clamp(-1, _NAN),
    ],
    "hardtanh": lambda m: [functional.hardtanh(_with_nan(m, 9)), functional.relu6(_with_nan(m, 9))],
    "threshold": lambda m: functional.threshold(_with_nan(m, 9), 1.0, 2.0),
    "prelu": lambda m: functional.prelu(-m.whole(2, 3).abs() - 1, _with_nan(m, 3)),
    "where": lambda m: [
        torch.where(m.whole(9) > 0, _with_nan(m, 9), m.whole(9)),
        torch.where(m.whole(9) > 0, m.whole(9), _with_nan(m, 9)),
    ],
    "where_gradient": lambda m: m.gradients(
        lambda x: torch.where(x > 0, x, _with_nan(m, 9)), m.whole(9)
    ),
    "lerp": lambda m: [
        torch.lerp(m.whole(9), m.whole(9, seed=1), _with_nan(m, 9)[:-1].repeat(2)[:9]),
        torch.lerp(m.whole(9), _with_nan(m, 10)[:-1], 0.25),
    ],
    "addcmul": lambda m: [
        torch.addcmul(_with_nan(m, 9), m.whole(9), m.whole(9)),
        torch.addcmul(m.whole(9), _with_nan(m, 9), m.whole(9) + 5),
        torch.addcdiv(m.whole(9), m.whole(9), _with_nan(m, 9) + 5),
    ],
    "linear": lambda m: [
        functional.linear(m.whole(3, 4), m.whole(5, 4), _with_nan(m, 5)),
        functional.linear(m.whole(3, 4) + 5, _with_nan(m, 5, 4)),
    ],
    "conv": lambda m: functional.conv2d(
        m.whole(1, 2, 5, 5) + 5, m.whole(3, 2, 3, 3), _with_nan(m, 3)
    ),
    # A NaN times the zeros around an input is NaN or nothing: weights of NaN meet none.
    "conv_of_channels": lambda m: [
        *(
            functional.conv2d(
                m.whole(2, 6, 9, 21) + 5, _with_nan(m, 6, 1, 3, 3), None, step, 0, 1, 6
            )
            for step in (1, 2)
        ),
        *m.gradients(
            lambda x, w: functional.conv2d(x, w, padding=1, groups=6),
            _with_nan(m, 2, 6, 9, 21),
            m.whole(6, 1, 3, 3),
        ),
    ],
    "batch_norm": lambda m: [
        functional.batch_norm(m.whole(3, 4), m.whole(4), m.whole(4).abs() + 1, _nan_in(m, 4)),
        functional.batch_norm(m.whole(3, 4), m.whole(4), m.of([1, _NAN, 1, 4]), m.whole(4)),
        functional.batch_norm(_nan_in(m, 5, 3), None, None, training=True),
    ],
    "layer_norm": lambda m: [
        functional.layer_norm(m.steps(3, 4), (4,), _nan_in(m, 4), m.whole(4)),
        functional.layer_norm(m.steps(3, 4), (4,), m.whole(4), _nan_in(m, 4)),
        functional.layer_norm(_nan_in(m, 3, 4), (4,)),
    ],
    "group_norm": lambda m: functional.group_norm(_nan_in(m, 2, 4, 3), 2),
    "nll_weight": lambda m: [
        functional.nll_loss(m.steps(3, 3), m.order(3), _nan_in(m, 3), reduction="none"),
        functional.nll_loss(m.steps(2, 3), m.order(3)[:2] * 0, m.of([1, _NAN, 1])),
    ],
    "nll_ignored": lambda m: functional.nll_loss(
        m.of([[_NAN, _NAN], [1, 2]]), m.order(2), ignore_index=int(m.order(2)[0]), reduction="none"
    ),
    "losses": lambda m: (
        [
            loss(_nan_in(m, 9), m.whole(9), reduction="none")
            for loss in (functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss)
        ]
        + [functional.huber_loss(m.whole(9), _nan_in(m, 9), reduction="none")]
    ),
    "bce": lambda m: functional.binary_cross_entropy_with_logits(
        m.steps(9), m.index(9, below=2).to(m.dtype), _nan_in(m, 9), reduction="none"
    ),
    "max_pool": lambda m: [
        functional.max_pool2d(_nan_in(m, 1, 1, 6, 6), 3, 2, 1),
        functional.avg_pool2d(_nan_in(m, 1, 1, 6, 6), 2),
        functional.adaptive_max_pool1d(_nan_in(m, 1, 1, 9), 3),
    ],
    "interpolate": lambda m: functional.interpolate(_nan_in(m, 1, 1, 5), scale_factor=2),
    "embedding": lambda m: functional.embedding(m.order(3), _nan_in(m, 3, 2), padding_idx=0),
    "search": lambda m: [
        torch.searchsorted(m.of([1, 2, _NAN]), m.of([_NAN, 2, 3, _INF])),
        torch.bucketize(_nan_in(m, 9), m.of([-1, 0, 1])),
    ],
    "histc": lambda m: torch.histc(_nan_in(m, 9), 4, -3, 3),
    "isclose": lambda m: [
        torch.isclose(_with_nan(m, 9), _with_nan(m, 9)),
        torch.isclose(_with_nan(m, 9), _with_nan(m, 9), equal_nan=True),
    ],
    "sorted": lambda m: [
        *_with_nan(m, 9).sort(stable=True),
        _with_nan(m, 9).topk(2).values,
        _with_nan(m, 9).topk(8, largest=False).values,
        _with_nan(m, 9).kthvalue(9).values,
        _with_nan(m, 9).median(),
        _with_nan(m, 9).msort(),
    ],
    "extremes": lambda m: [
        _with_nan(m, 9).argmax(),
        _with_nan(m, 9).argmin(),
        *_with_nan(m, 3, 3).max(0),
        *_with_nan(m, 3, 3).min(1),
        *_with_nan(m, 3, 3).aminmax(dim=0),
        *_with_nan(m, 9).cummax(0),
        *_with_nan(m, 9).cummin(0),
    ],
    "sums": lambda m: [
        _nan_in(m, 9).nansum(),
        _nan_in(m, 9).nanmean(),
        _nan_in(m, 3, 3).sum(0),
        _nan_in(m, 3, 3).prod(1),
        _nan_in(m, 9).cumsum(0),
        _nan_in(m, 9).norm(),
        _nan_in(m, 9).norm(_INF),
        _nan_in(m, 9).var(),
        _nan_in(m, 3, 3).mean(0),
    ],
    "truth": lambda m: [
        _nan_in(m, 9).bool(),
        m.of([0, _NAN]).any(),
        m.of([1, _NAN]).all(),
        m.of([0, _NAN]).count_nonzero(),
        m.of([0, _NAN, 0]).nonzero(),
        m.of([0, _NAN]).logical_not(),
        m.of([0, _NAN]).ne(m.of([0, _NAN])),
    ],
    "scatter_reduce": lambda m: [
        m.whole(4).scatter_reduce(0, m.index(9, below=4), _nan_in(m, 9), how)
        for how in ("amax", "amin", "sum")
    ],
    "power": lambda m: [
        m.of([_NAN, 1, _NAN, 0]).pow(m.of([0, _NAN, 2, _NAN])),
        m.of([_NAN, 2]).pow(0),
        torch.pow(1, m.of([_NAN, 3])),
        torch.hypot(m.of([_INF, _NAN]), m.of([_NAN, -_INF])),
    ],
    "foreach": lambda m: [
        *torch._foreach_maximum([_nan_in(m, 9)], [m.whole(9)]),
        *torch._foreach_maximum([m.whole(9)], [_nan_in(m, 9)]),
        *torch._foreach_clamp_min([_nan_in(m, 9)], 0.0),
        *torch._foreach_norm([_nan_in(m, 9), m.whole(9)]),
    ],
    "attention": lambda m: functional.scaled_dot_product_attention(
        m.whole(1, 3, 4), m.whole(1, 3, 4), _nan_in(m, 1, 3, 4)
    ).isnan(),
    "softmax": lambda m: [
        _nan_in(m, 3, 3).softmax(1),
        m.of([[-_INF, 1, 2], [-_INF] * 3, [_INF, 0, 0]]).softmax(1),
        m.of([[-_INF, 1, 2], [-_INF] * 3]).log_softmax(1),
        m.of([[-_INF, 1, 2], [-_INF] * 3, [_INF, 1, 2], [_INF, -_INF, 0]]).logsumexp(1),
    ],
}


def _nan_in(m: Inputs, *shape: int) -> Tensor:
    """Small integers with a NaN in the middle."""
    x = m.whole(*shape)
    x.view(-1)[x.numel() // 2] = _NAN
    return x


@check("special_values/nan", "SPECIAL-005", cases=_WITH_NAN)
def a_nan_in_any_operand_has_its_effect(dev: Device, case: str) -> None:
    """A NaN in a bound, weight, bias, target or other operand changes what it does on the CPU."""
    agree_with_double(dev, _WITH_NAN[case], rtol=1e-5)


_NAN_AS_BOUND: dict[str, Work] = {
    "min": lambda m: m.whole(9).clamp(min=_NAN),
    "max": lambda m: m.whole(9).clamp(max=_NAN),
}


@check("special_values/nan_as_bound", "SPECIAL-005", cases=_NAN_AS_BOUND)
def a_nan_as_the_only_bound_has_its_effect(dev: Device, case: str) -> None:
    """Clamped to one number that is NaN, everything is NaN."""
    if not _NAN_AS_BOUND[case](Inputs(torch.device("cpu"), torch.float64)).isnan().all():
        dev.unsupported("this torch ignores such a bound on the CPU, too")
    agree_with_double(dev, _NAN_AS_BOUND[case], rtol=1e-5)


# ---- corners -----------------------------------------------------------------------------------

#: Functions and the points where their pieces meet.
_PIECEWISE: dict[str, tuple[Unary, Sequence[float]]] = {
    "relu": (functional.relu, (0,)),
    "relu6": (functional.relu6, (0, 6)),
    "hardtanh": (functional.hardtanh, (-1, 1)),
    "hardtanh_wide": (lambda x: functional.hardtanh(x, -2.5, 0.5), (-2.5, 0.5)),
    "hardswish": (functional.hardswish, (-3, 0, 3)),
    "hardsigmoid": (functional.hardsigmoid, (-3, 3)),
    "threshold": (lambda x: functional.threshold(x, 0.25, -7), (0.25,)),
    "softshrink": (lambda x: functional.softshrink(x, 0.5), (-0.5, 0.5)),
    "hardshrink": (lambda x: functional.hardshrink(x, 0.5), (-0.5, 0.5)),
    "softplus": (lambda x: functional.softplus(x, 2, 4), (2, 0)),
    "leaky_relu": (lambda x: functional.leaky_relu(x, 0.25), (0,)),
    "prelu": (lambda x: functional.prelu(x, x.new_full((1,), 0.25)), (0,)),
    "rrelu": (lambda x: functional.rrelu(x, 0.25, 0.75), (0,)),
    "elu": (lambda x: functional.elu(x, 1.5), (0,)),
    "celu": (lambda x: functional.celu(x, 2), (0,)),
    "selu": (functional.selu, (0,)),
    "softsign": (functional.softsign, (0,)),
    "abs": (torch.abs, (0,)),
    "clamp": (lambda x: x.clamp(-1.5, 2), (-1.5, 2)),
    "clamp_min": (lambda x: x.clamp(min=0.5), (0.5,)),
    "clamp_max": (lambda x: x.clamp(max=-0.5), (-0.5,)),
    "clamp_tensors": (
        lambda x: x.clamp(torch.full_like(x, -1.5), torch.full_like(x, 2)),
        (-1.5, 2),
    ),
    "clamp_crossed": (lambda x: x.clamp(2, -1), (-1, 2)),
    "maximum": (lambda x: torch.maximum(x, torch.full_like(x, 0.5)), (0.5,)),
    "minimum": (lambda x: torch.minimum(torch.full_like(x, 0.5), x), (0.5,)),
    "fmax": (lambda x: torch.fmax(x, torch.full_like(x, 0.5)), (0.5,)),
    "l1_loss": (lambda x: functional.l1_loss(x, _half(x), reduction="none"), (0.5,)),
    "smooth_l1": (
        lambda x: functional.smooth_l1_loss(x, _half(x), reduction="none"),
        (-0.5, 0.5, 1.5),
    ),
    "smooth_l1_beta": (
        lambda x: functional.smooth_l1_loss(x, _half(x), reduction="none", beta=0.25),
        (0.25, 0.5, 0.75),
    ),
    "smooth_l1_zero": (
        lambda x: functional.smooth_l1_loss(x, _half(x), reduction="none", beta=0),
        (0.5,),
    ),
    "huber": (
        lambda x: functional.huber_loss(x, _half(x), reduction="none"),
        (-0.5, 0.5, 1.5),
    ),
    "huber_delta": (
        lambda x: functional.huber_loss(x, _half(x), reduction="none", delta=2),
        (-1.5, 0.5, 2.5),
    ),
    "hinge": (
        lambda x: functional.hinge_embedding_loss(x, -torch.ones_like(x), 2, reduction="none"),
        (2,),
    ),
    "margin_ranking": (
        lambda x: functional.margin_ranking_loss(
            x, _half(x), torch.ones_like(x), 1, reduction="none"
        ),
        (1.5,),
    ),
    "where": (lambda x: torch.where(x > 0.5, x * 2, -x), (0.5,)),
    "floor": (torch.floor, (-1, 0, 1)),
    "ceil": (torch.ceil, (-1, 0, 1)),
    "trunc": (torch.trunc, (-1, 0, 1)),
    "round": (torch.round, (-1.5, -0.5, 0.5, 1.5, 2.5)),
    "round_decimals": (lambda x: torch.round(x, decimals=-1), (-15, 5, 15, 25)),
    "frac": (torch.frac, (-1, 1)),
    "sign": (torch.sign, (0,)),
    "heaviside": (lambda x: torch.heaviside(x.detach(), torch.full_like(x, 0.25)), (0,)),
    "logit": (lambda x: torch.logit(x, 0.25), (0.25, 0.75)),
    "remainder": (lambda x: x.remainder(1.5), (-3, -1.5, 1.5, 3)),
    "fmod": (lambda x: x.fmod(1.5), (-3, -1.5, 1.5, 3)),
    "floor_divide": (lambda x: x.detach().floor_divide(1.5), (-3, -1.5, 1.5, 3)),
    "comparison": (lambda x: (x > 0.5) * 1.0 + (x >= 0.5) * 2.0 + (x <= 0.5) * 4.0, (0.5,)),
}


def _half(x: Tensor) -> Tensor:
    return torch.full_like(x, 0.5)


def _around(m: Inputs, corners: Sequence[float], dtype: torch.dtype) -> Tensor:
    """Each corner, its neighbours in a data type, and points further away."""
    at = torch.tensor(corners, dtype=dtype)
    near = torch.where(at == 0, torch.tensor(2.0**-12, dtype=dtype), (at / 2).abs())
    above, below = torch.nextafter(at, at + 1), torch.nextafter(at, at - 1)
    above, below = torch.where(at == 0, near, above), torch.where(at == 0, -near, below)
    return m.of(torch.cat([at, above, below, at + near, at - near]))


@check("special_values/corner", "SPECIAL-006", cases=_PIECEWISE, dtypes=_FLOATS)
def piecewise_functions_change_at_their_corners(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A piecewise function has the documented value at each corner and on both sides of it."""
    _supported(dev, dtype)
    function, corners = _PIECEWISE[case]
    agree_with_double(dev, lambda m: function(_around(m, corners, dtype)), dtype)


_SMOOTH = ("heaviside", "floor_divide", "comparison")


@check(
    "special_values/corner_gradient",
    "SPECIAL-007",
    cases=[name for name in _PIECEWISE if name not in _SMOOTH],
    dtypes=_FLOATS,
)
def gradients_change_at_corners(dev: Device, case: str, dtype: torch.dtype) -> None:
    """The gradient of a piecewise function is the CPU's at each corner and on both sides of it."""
    _supported(dev, dtype)
    function, corners = _PIECEWISE[case]
    agree_with_double(
        dev, lambda m: m.gradients(function, _around(m, corners, dtype)), dtype, slack=1e-6
    )


#: Functions whose gradient is shared or chosen among equal elements, or is defined at zero.
_SHARED: dict[str, Work] = {
    "amax": lambda m: m.gradients(lambda x: x.amax(1), m.of([[1, 3, 3, 2], [5, 5, 5, 5]])),
    "amin": lambda m: m.gradients(lambda x: x.amin(0), m.of([[1, 3, 3, 2], [1, 5, 3, 2]])),
    "max_all": lambda m: m.gradients(lambda x: x.max()[None], m.of([1, 3, 3, 2])),
    "min_all": lambda m: m.gradients(lambda x: x.min()[None], m.of([1, 3, 1, 1, 1])),
    "maximum": lambda m: m.gradients(torch.maximum, m.of([1, 2, 3]), m.of([1, 3, 2])),
    "minimum": lambda m: m.gradients(torch.minimum, m.of([1, 2, 3]), m.of([1, 3, 2])),
    "norm_of_zero": lambda m: [
        y
        for p in (1, 2, 3, _INF)
        for y in m.gradients(lambda x, p=p: x.norm(p)[None], m.of([0, 0]))
    ],
    "prod_of_zeros": lambda m: [
        *m.gradients(lambda x: x.prod(1), m.of([[0, 2, 3], [0, 0, 3], [1, 2, 3]])),
        *m.gradients(lambda x: x.cumprod(0), m.of([2, 0, 3, 4])),
    ],
    "sqrt_of_zero": lambda m: m.gradients(torch.sqrt, m.of([0, 4])),
    "power_of_zero": lambda m: [
        *m.gradients(lambda x: x.pow(2), m.of([0, 3])),
        *m.gradients(lambda x: x.pow(1), m.of([0, 3])),
        *m.gradients(lambda x: x.pow(0), m.of([0, 3])),
        *m.gradients(lambda x: x.pow(m.of([0, 1, 2])), m.of([0, 0, 0])),
    ],
    "std_of_equal": lambda m: m.gradients(lambda x: x.var(1), m.of([[2, 2, 2], [1, 2, 3]])),
    "max_pool": lambda m: m.gradients(
        lambda x: functional.max_pool2d(x, 2), m.of([[[[1, 1], [1, 1]]], [[[0, 2], [2, 0]]]])
    ),
    "sinc": lambda m: m.gradients(torch.sinc, m.of([0, 0.5, 1])),
    "xlogy": lambda m: m.gradients(torch.xlogy, m.of([0, 1, 2]), m.of([2, 1, 4])),
    "atan2": lambda m: m.gradients(torch.atan2, m.of([0, 1]), m.of([1, 0])),
    "cosine": lambda m: m.gradients(
        lambda a, b: functional.cosine_similarity(a, b, 1), m.of([[3, 4]]), m.of([[3, 4]])
    ),
    "logsumexp_of_equal": lambda m: m.gradients(lambda x: x.logsumexp(1), m.of([[2, 2, 2, 2]])),
}


@check("special_values/shared_gradient", "SPECIAL-007", cases=_SHARED)
def gradients_at_ties_and_zeros_are_those_of_the_cpu(dev: Device, case: str) -> None:
    """The gradient at equal elements and at zero is divided, chosen or defined as on the CPU."""
    agree_with_double(dev, _SHARED[case])


#: Bins, ranges and choices whose bounds are met exactly.
_BOUNDS: dict[str, Work] = {
    "bucketize": lambda m: [
        torch.bucketize(m.of([0, 1, 1.5, 2, 3]), m.of([1, 2]), right=right)
        for right in (False, True)
    ],
    "searchsorted": lambda m: [
        torch.searchsorted(m.of([1, 1, 2, 2]), m.of([0, 1, 1.5, 2, 3]), right=right)
        for right in (False, True)
    ],
    "histc": lambda m: torch.histc(m.of([0, 0.25, 0.5, 0.75, 1, -0.1, 1.1]), 4, 0, 1),
    "quantile": lambda m: [
        torch.quantile(m.of([1, 2, 4, 8, 16]), m.of([0, 0.25, 0.3, 1]), interpolation=how)
        for how in ("linear", "lower", "higher", "midpoint", "nearest")
    ],
    "linspace": lambda m: [
        torch.linspace(-3, 5, n, dtype=m.dtype, device=m.device) for n in (1, 2, 5, 17)
    ],
    "arange": lambda m: [
        torch.arange(0, 1, 0.25, dtype=m.dtype, device=m.device),
        torch.arange(1, -1, -0.5, dtype=m.dtype, device=m.device),
        torch.arange(0, 0.9, 0.3, dtype=m.dtype, device=m.device),
        torch.arange(2, 2, device=m.device),
        torch.range(0, 2, 0.25, dtype=m.dtype, device=m.device),
    ],
    "isclose": lambda m: torch.isclose(m.of([1, 1.25, 1.5]), m.of([1, 1, 1]), rtol=0, atol=0.25),
    "kthvalue": lambda m: [*m.of([3, 1, 2]).kthvalue(1), *m.of([3, 1, 2]).kthvalue(3)],
    "topk": lambda m: [*m.of([3, 1, 2]).topk(3), *m.of([3, 1, 2]).topk(1)],
    "nearest": lambda m: [
        functional.interpolate(m.of([[[1, 2, 3, 4, 5]]]), n) for n in (1, 2, 4, 5, 7, 10)
    ],
    "linear": lambda m: [
        functional.interpolate(m.of([[[1, 2, 4, 8, 16]]]), n, mode="linear", align_corners=aligned)
        for n in (1, 2, 5, 9)
        for aligned in (False, True)
    ],
    "pool_edges": lambda m: [
        functional.avg_pool1d(m.of([[[1, 2, 4, 8, 16]]]), 2, 2, ceil_mode=True),
        functional.max_pool1d(m.of([[[1, 2, 4, 8, 16]]]), 2, 2, ceil_mode=True),
        functional.avg_pool1d(m.of([[[1, 2, 4]]]), 3, 1, 1, count_include_pad=False),
        functional.adaptive_avg_pool1d(m.of([[[1, 2, 4, 8, 16]]]), 3),
    ],
    "triangle": lambda m: (
        [m.whole(4, 6).tril(k) for k in (-5, -4, -3, 0, 5, 6)]
        + [m.whole(4, 6).triu(k) for k in (-4, -3, 0, 5, 6)]
    ),
    "renorm": lambda m: torch.renorm(m.of([[3, 4], [6, 8], [0, 0]]), 2, 0, 5),
}


@check("special_values/bound", "SPECIAL-012", cases=_BOUNDS)
def bounds_belong_to_the_documented_side(dev: Device, case: str) -> None:
    """Bins, ranges, windows and selections include or exclude their bounds as on the CPU."""
    agree_with_double(dev, _BOUNDS[case])


# ---- limits of integer types -------------------------------------------------------------------


def _limits(dtype: torch.dtype) -> Tensor:
    """The smallest, largest and middle numbers of an integer type."""
    info = torch.iinfo(dtype)
    middle = 1 << (info.bits // 2)
    numbers = [0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1, middle, middle - 1]
    return torch.tensor(numbers + ([-1, -2, -middle] if info.min else []), dtype=dtype)


@check("special_values/shift", "SPECIAL-008", dtypes=_INTEGERS)
def shifts_are_arithmetic(dev: Device, dtype: torch.dtype) -> None:
    """Shifts by each count that a type has bits for give the CPU's bits; right ones keep signs."""
    x, bits = _limits(dtype), torch.arange(torch.iinfo(dtype).bits, dtype=dtype)
    there, counts = x[:, None].to(dev.device()), bits.to(dev.device())
    expected = torch.tensor([[v >> b for b in bits.tolist()] for v in x.tolist()], dtype=dtype)
    dev.assert_equal(there >> counts, expected)
    shifted = [[v << b for b in bits.tolist()] for v in x.tolist()]
    dev.assert_equal(there << counts, _wrapped(shifted, dtype))
    dev.assert_equal((there >> 3, there << 3), ((x >> 3)[:, None], (x << 3)[:, None]))


def _wrapped(rows: list[list[int]], dtype: torch.dtype) -> Tensor:
    """Integers of any size, modulo what a type has bits for."""
    info = torch.iinfo(dtype)
    span = 1 << info.bits
    return torch.tensor(
        [[(v - info.min) % span + info.min for v in row] for row in rows], dtype=dtype
    )


#: Of all pairs of the limits of a type, by Python's integers.
_WRAPPING: dict[str, tuple[Binary, Callable[[int, int], int]]] = {
    "add": (torch.add, lambda a, b: a + b),
    "sub": (torch.sub, lambda a, b: a - b),
    "mul": (torch.mul, lambda a, b: a * b),
    "and": (torch.bitwise_and, lambda a, b: a & b),
    "or": (torch.bitwise_or, lambda a, b: a | b),
    "xor": (torch.bitwise_xor, lambda a, b: a ^ b),
    "maximum": (torch.maximum, max),
    "minimum": (torch.minimum, min),
    "not": (lambda a, b: ~a | (b & 0), lambda a, b: ~a),
    "clamp": (lambda a, b: a.clamp(b, b), lambda a, b: b),
    "where": (lambda a, b: torch.where(a < b, a, b), min),
    "subtract_scaled": (lambda a, b: torch.sub(a, b, alpha=3), lambda a, b: a - 3 * b),
}


@check("special_values/integer", "SPECIAL-009", cases=_WRAPPING, dtypes=_INTEGERS)
def integers_wrap_at_the_limits_of_their_type(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Integer arithmetic on the limits of a type is exact modulo the range of the type."""
    operator, exact = _WRAPPING[case]
    x = _limits(dtype)
    there = x.to(dev.device())
    expected = _wrapped([[exact(a, b) for b in x.tolist()] for a in x.tolist()], dtype)
    dev.assert_equal(operator(there[:, None], there[None]), expected)


_QUOTIENTS: dict[str, tuple[Binary, Callable[[int, int], int]]] = {
    "floor": (lambda a, b: torch.div(a, b, rounding_mode="floor"), lambda a, b: a // b),
    "trunc": (
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    ),
    "remainder": (torch.remainder, lambda a, b: a % b),
    "fmod": (torch.fmod, lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1)),
    "gcd": (torch.gcd, lambda a, b: math.gcd(a, b)),
}


@check("special_values/quotient", "SPECIAL-013", cases=_QUOTIENTS, dtypes=_INTEGERS)
def quotients_at_the_limits_are_exact(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Quotients and remainders of the limits of a type are those of Python's integers."""
    operator, exact = _QUOTIENTS[case]
    info = torch.iinfo(dtype)
    # The most negative number is left out: divided by -1 it overflows.
    x = _limits(dtype)[_limits(dtype) > info.min] if info.min else _limits(dtype)
    divisors = x[x != 0]
    there, by = x.to(dev.device()), divisors.to(dev.device())
    expected = [[exact(a, b) for b in divisors.tolist()] for a in x.tolist()]
    dev.assert_equal(operator(there[:, None], by[None]), torch.tensor(expected, dtype=dtype))


_FAR = 2**53
_WIDE = (_FAR + 1, _FAR, _FAR + 3, -_FAR - 1, 2**62 + 1, 2**62, -(2**62) - 1, 2**63 - 1, -(2**63))
#: Of int64 numbers that double precision would round.
_OF_WIDE: dict[str, Unary] = {
    "compare": lambda x: [x[:, None] < x, x[:, None] == x, x > _FAR, x == _FAR + 1],
    "extremes": lambda x: [x.max(), x.min(), x.argmax(), x.amax(), *x.aminmax(), *x[:3].max(0)],
    "sort": lambda x: [*x.sort(), *x.sort(descending=True), *x.topk(3), *x.kthvalue(2), x.median()],
    "unique": lambda x: list(torch.cat([x, x]).unique(return_counts=True)),
    "search": lambda x: [
        torch.searchsorted(x.sort().values, x),
        torch.isin(x, x[1:4]),
        torch.isin(x, _FAR + 1),
        *(
            torch.isin(number, x, invert=invert)
            for number in (_FAR, _FAR + 1, 5)
            for invert in (False, True)
        ),
    ],
    "sum": lambda x: [x[:4].sum(), x[:4].cumsum(0), x[:2].prod(), x[:3].view(1, 3).sum(0)],
    "scalar": lambda x: [x + 1, x - _FAR, x.clamp(max=_FAR + 1), x.remainder(_FAR - 1), x * 3],
    "fill": lambda x: [
        x.clone().fill_(_FAR + 1),
        torch.full((3,), 2**63 - 1, device=x.device),
        x.masked_fill(x > 0, _FAR + 3),
        torch.where(x > 0, _FAR + 1, x),
        x.index_fill(0, torch.tensor([1], device=x.device), _FAR + 5),
        torch.tensor([_FAR + 1], device=x.device),
    ],
    "range": lambda x: [
        torch.arange(_FAR, _FAR + 5, device=x.device),
        torch.arange(2**63 - 4, 2**63 - 1, device=x.device),
        torch.arange(-(2**63), -(2**63) + 5, 2, device=x.device),
        torch.arange(_FAR + 5, _FAR, -2, device=x.device),
    ],
    "scatter": lambda x: [
        torch.zeros_like(x).scatter_add(0, torch.arange(9, device=x.device), x),
        torch.zeros_like(x).index_add(0, torch.arange(9, device=x.device), x),
        torch.ones_like(x).index_put((torch.arange(9, device=x.device),), x, accumulate=True),
        torch.zeros_like(x).scatter_reduce(0, torch.arange(9, device=x.device), x, "amax"),
    ],
    "unary": lambda x: [x.abs(), -x, x.sign(), ~x, x.square(), x.bitwise_not(), x.pow(3)],
    "product": lambda x: [x[:4].view(2, 2) @ x[:4].view(2, 2), x[:3].dot(x[:3])],
    "scan": lambda x: [*x.cummax(0), *x.cummin(0), x.cumsum(0), x.cumprod(0)],
    "joined": lambda x: [torch.cat([x, x.int()]), torch.stack([x, x]), x.flip(0), x.diff()],
}


@check("special_values/wide_integer", "SPECIAL-010", cases=_OF_WIDE)
def wide_integers_keep_all_bits(dev: Device, case: str) -> None:
    """int64 numbers and scalars beyond 2^53 are computed and compared in 64 bits."""
    numbers = torch.tensor(_WIDE)
    agree(dev, lambda device: _OF_WIDE[case](numbers.to(device)))


@check("special_values/integer_cast", "SPECIAL-011", dtypes=_INTEGERS)
def integers_are_converted_at_their_limits(dev: Device, dtype: torch.dtype) -> None:
    """The limits of an integer type are wrapped in other integers and rounded to even in floats."""
    x = _limits(dtype)
    if dtype == torch.int64:
        x = torch.cat([x, torch.tensor([2**24 + 1, 2**53 + 1, 2**53 + 3, 2**11 + 1, 65519, 65520])])
    for other in dev.dtypes():
        expected = _wrapped([x.tolist()], other)[0] if other in _INTEGRAL else x.to(other)
        dev.assert_equal(x.to(dev.device()).to(other), expected)


_INTEGRAL = [getattr(torch, name) for name in _INTEGERS]


_UNSIGNED = ("uint16", "uint32", "uint64")


@check("special_values/unsigned_cast", "SPECIAL-015", dtypes=_UNSIGNED)
def wide_unsigned_integers_are_converted_at_their_limits(dev: Device, dtype: torch.dtype) -> None:
    """Unsigned integers of 16 bits and more become other numbers, and other numbers become them."""
    x, device = _limits(dtype), dev.device()
    for other in (*dev.dtypes(), *(getattr(torch, name) for name in _UNSIGNED)):
        dev.assert_equal(x.to(device).to(other), x.to(other))
        small = torch.tensor([0, 1, 2, 100]).to(other)
        dev.assert_equal(small.to(device).to(dtype), small.to(dtype))


@check("special_values/float_cast", "SPECIAL-011", dtypes=_FLOATS)
def floats_are_converted_at_the_limits(dev: Device, dtype: torch.dtype) -> None:
    """Numbers next to the limits of integers are cut off; what is not zero, NaN too, is true."""
    _supported(dev, dtype)
    for other in dev.dtypes("integral"):
        info = torch.iinfo(other)
        top = torch.tensor(2.0 ** (info.bits - (1 if info.min else 0)), dtype=dtype)
        last = torch.nextafter(top, torch.zeros_like(top))
        numbers = [last if bool(top.isfinite()) else torch.tensor(6e4, dtype=dtype)]
        numbers += [torch.tensor(v, dtype=dtype) for v in (0.0, -0.0, 0.99, 1.5, 2.99)]
        if info.min:
            numbers += [-n for n in numbers]
        x = torch.stack(numbers)
        dev.assert_equal(x.to(dev.device()).to(other), x.double().trunc().to(other))
    x = torch.tensor([0.0, -0.0, 0.25, -0.25, _NAN, _INF, -_INF], dtype=dtype)
    dev.assert_equal(x.to(dev.device()).bool(), torch.tensor([False] * 2 + [True] * 5))


#: Halfway and overflowing numbers of each narrower type.
_ROUNDED = {
    torch.float16: (65504, 65519.99, 65520, 65536, 2049, 2051, 2049.01, 1e-8, 2.9e-8, 3e-8, 6e-5),
    torch.bfloat16: (257, 259, 257.01, 3.3895e38, 3.3961e38, 1.00390625, 1.01171875),
    torch.float32: (16777217.0, 16777219.0, 3.4028235e38, 3.4028236e38, 1e-46, 7e-46, 8e-46),
}


@check("special_values/float_rounding", "SPECIAL-014", dtypes=("float32", "float64"))
def conversions_round_to_even(dev: Device, dtype: torch.dtype) -> None:
    """A conversion to a narrower type rounds halves to even, and what is too large to infinity."""
    _supported(dev, dtype)
    for other, numbers in _ROUNDED.items():
        if other in dev.dtypes() and other != dtype:
            x = torch.tensor([n * sign for n in numbers for sign in (1, -1)], dtype=dtype)
            dev.assert_equal(x.to(dev.device()).to(other), x.to(other))
