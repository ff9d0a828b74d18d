# SPDX-License-Identifier: BSD-3-Clause
"""Functions of complex numbers are right for parts of all magnitudes and signs."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check

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
    numbers = _plane(case, dtype)
    got = getattr(torch, case)(numbers.to(dev.device()))
    wanted = getattr(torch, case)(numbers.to(torch.complex128)).to(got.dtype)
    rtol = max(dev.tolerance(got.dtype)[0], 16 * torch.finfo(got.dtype).eps)
    atol = _LOST.get(case, torch.finfo(got.dtype).smallest_normal)
    dev.assert_close(got, wanted, rtol=rtol, atol=atol)
