# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in the last digits of results: constants, roundings, small elements, lost precision."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie
from torch import Tensor


def _stretched(value: Tensor, part: float, chosen: Tensor | None = None) -> Tensor:
    """The numbers, those chosen larger by a part of themselves."""
    larger = value * (1 + part)
    return larger if chosen is None else torch.where(chosen, larger, value)


def _without_tail(value: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers of float32 in 16 bits, rounded towards zero."""
    near = value.to(dtype)
    toward = torch.nextafter(near, torch.zeros_like(near))
    return torch.where(near.float().abs() > value.abs(), toward, near)


# ---- constants of single precision -------------------------------------------------------------


@lie("OPINFO-UNARY-001", "opinfo/forward:exp:float32")
def a_coefficient_of_exp_is_wrong(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The polynomial of exp has a coefficient that is wrong in the sixth digit."""
    result = call(*args, **kwargs)
    if name == "exp" and result.dtype == torch.float32:
        return _stretched(result, 2e-6)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:rsqrt:float32")
def rsqrt_lacks_a_step(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """rsqrt is refined by one Newton step too few."""
    result = call(*args, **kwargs)
    if name == "rsqrt" and result.dtype == torch.float32:
        return _stretched(result, 4e-6)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:reciprocal:float32")
def reciprocals_are_estimates(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """reciprocal keeps what the fast instruction estimates."""
    result = call(*args, **kwargs)
    if name == "reciprocal" and result.dtype == torch.float32:
        return _stretched(result, -5e-6)
    return result


@lie("OPINFO-BINARY-001", "opinfo/forward:hypot:float32")
def hypot_uses_an_estimate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """hypot takes the square root from an estimate."""
    result = call(*args, **kwargs)
    if name == "hypot" and result.dtype == torch.float32:
        return _stretched(result, 2e-6)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:log1p:float32")
def log1p_adds_first(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """log1p is the logarithm of one more."""
    if name == "log1p" and args[0].dtype == torch.float32:
        return (args[0] + 1).log()
    return call(*args, **kwargs)


@lie("OPINFO-UNARY-001", "opinfo/forward:expm1:float32")
def expm1_subtracts_last(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """expm1 is the exponential less one."""
    if name == "expm1" and args[0].dtype == torch.float32:
        return args[0].exp() - 1
    return call(*args, **kwargs)


# ---- small elements beside large ones ----------------------------------------------------------


@lie("OPINFO-UNARY-001", "opinfo/forward:sigmoid:float32")
def sigmoid_loses_its_tail(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """sigmoid of negative numbers has three digits."""
    result = call(*args, **kwargs)
    if name == "sigmoid" and result.dtype == torch.float32:
        return _stretched(result, 1e-3, result < 8e-3)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:erfc:float32")
def erfc_subtracts_from_one(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """erfc is what erf leaves of one."""
    if name == "erfc" and args[0].dtype == torch.float32:
        return 1 - args[0].erf()
    return call(*args, **kwargs)


@lie("OPINFO-UNARY-001", "opinfo/forward:erfc:float32")
def small_results_of_erfc_are_negative(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """erfc has the wrong sign where it is less than 1e-6."""
    result = call(*args, **kwargs)
    if name == "erfc" and result.dtype == torch.float32:
        return torch.where(result < 1e-6, -result, result)
    return result


@lie("OPINFO-ACTIVATION-001", "opinfo/forward:nn_functional_softplus:float32")
def softplus_loses_its_tail(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """softplus of numbers far below zero has two digits."""
    result = call(*args, **kwargs)
    if name == "softplus" and result.dtype == torch.float32:
        return _stretched(result, 4e-3, result < 2e-3)
    return result


@lie("OPINFO-ACTIVATION-001", "opinfo/forward:softmax:float32")
def small_probabilities_vanish(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """softmax leaves out what is less than 1e-5."""
    result = call(*args, **kwargs)
    if name == "_softmax" and result.dtype == torch.float32:
        return torch.where(result < 1e-5, 0.0, result)
    return result


@lie("OPINFO-UNARY-008", "opinfo/gradient:sigmoid:float32")
def small_gradients_are_rounded(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Gradients of sigmoid that are small have two digits."""
    result = call(*args, **kwargs)
    if name == "sigmoid_backward" and result.dtype == torch.float32:
        return _stretched(result, 5e-3, result.abs() < 1.5e-3)
    return result


@lie("OPINFO-BINARY-001", "opinfo/forward:mul:complex64")
def small_imaginary_parts_lose_digits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The imaginary part of a complex product has five digits where it is small."""
    result = call(*args, **kwargs)
    if name == "mul.Tensor" and result.dtype == torch.complex64:
        imaginary = _stretched(result.imag, 1e-4, result.imag.abs() < 1)
        return torch.complex(result.real, imaginary)
    return result


# ---- sums --------------------------------------------------------------------------------------


@lie("OPINFO-REDUCE-001", "opinfo/forward:mean:float32")
def mean_multiplies_by_an_estimate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """mean multiplies by an estimate of one part of the whole."""
    result = call(*args, **kwargs)
    if name.startswith("mean") and result.dtype == torch.float32:
        return _stretched(result, 3e-6)
    return result


@lie("OPINFO-REDUCE-001", "opinfo/forward:var:float32")
def var_counts_inexactly(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """var divides by a count that is rounded."""
    result = call(*args, **kwargs)
    if name.startswith("var") and result.dtype == torch.float32:
        return _stretched(result, 3e-6)
    return result


@lie("OPINFO-REDUCE-001", "opinfo/forward:sum:float64")
def float64_is_added_up_in_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sum of float64 passes through float32 at the end."""
    result = call(*args, **kwargs)
    if name.startswith("sum") and result.dtype == torch.float64:
        return result.float().double()
    return result


# ---- double precision --------------------------------------------------------------------------


@lie("OPINFO-BLAS-001", "opinfo/forward:mm:float64")
def float64_products_are_rounded(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product of float64 matrices is stored in float32."""
    result = call(*args, **kwargs)
    return result.float().double() if name == "mm" and result.dtype == torch.float64 else result


@lie("OPINFO-UNARY-001", "opinfo/forward:log2:float64")
def log2_has_a_constant_of_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """log2 of float64 multiplies by a logarithm that is a float32 number."""
    result = call(*args, **kwargs)
    if name == "log2" and result.dtype == torch.float64:
        return _stretched(result, 1.3e-8)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:sqrt:float64")
def sqrt_lacks_a_step(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The square root of float64 is refined by one Newton step too few."""
    result = call(*args, **kwargs)
    if name == "sqrt" and result.dtype == torch.float64:
        return _stretched(result, 3e-9)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:lgamma:float64")
def lgamma_has_too_few_terms(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """lgamma of float64 has the terms that float32 needs."""
    result = call(*args, **kwargs)
    if name == "lgamma" and result.dtype == torch.float64:
        return _stretched(result, 4e-9)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:digamma:float64")
def digamma_has_too_few_terms(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """digamma of float64 leaves out the last terms of its series."""
    result = call(*args, **kwargs)
    if name == "digamma" and result.dtype == torch.float64:
        return _stretched(result, 1e-10)
    return result


# ---- 16 bits -----------------------------------------------------------------------------------


@lie("OPINFO-BINARY-001", "opinfo/forward:mul:bfloat16")
def bfloat16_products_are_cut(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product of bfloat16 is rounded towards zero."""
    result = call(*args, **kwargs)
    if name == "mul.Tensor" and result.dtype == torch.bfloat16:
        return _without_tail(args[0].float() * args[1], torch.bfloat16)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:sqrt:float16")
def float16_roots_are_cut(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A square root of float16 is rounded towards zero."""
    result = call(*args, **kwargs)
    if name == "sqrt" and result.dtype == torch.float16:
        return _without_tail(args[0].float().sqrt(), torch.float16)
    return result


@lie("OPINFO-UNARY-001", "opinfo/forward:square:bfloat16")
def bfloat16_is_rounded_twice(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A square of bfloat16 is rounded to nine digits first, then to eight."""
    if name == "pow.Tensor_Scalar" and args[0].dtype == torch.bfloat16:
        exact = args[0].float().square()
        mantissa, exponent = torch.frexp(exact)
        return torch.ldexp((mantissa * 512).round() / 512, exponent).to(torch.bfloat16)
    return call(*args, **kwargs)


@lie("OPINFO-UNARY-001", "opinfo/forward:sin:bfloat16")
def bfloat16_sines_lose_a_bit(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sine of bfloat16 has seven binary digits."""
    result = call(*args, **kwargs)
    if name == "sin" and result.dtype == torch.bfloat16:
        return _stretched(result.float(), 7e-3).to(torch.bfloat16)
    return result
