# SPDX-License-Identifier: BSD-3-Clause
"""Integers at the limits of their types are shifted, wrapped and divided exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.special_values._integers import INTEGERS, limits, wrapped
from torch_conformance.checks.special_values._values import Binary


@check("special_values/shift", "SPECIAL-008", dtypes=INTEGERS)
def shifts_are_arithmetic(dev: Device, dtype: torch.dtype) -> None:
    """Shifts by each count that a type has bits for give the CPU's bits; right ones keep signs."""
    x, bits = limits(dtype), torch.arange(torch.iinfo(dtype).bits, dtype=dtype)
    there, counts = x[:, None].to(dev.device()), bits.to(dev.device())
    expected = torch.tensor([[v >> b for b in bits.tolist()] for v in x.tolist()], dtype=dtype)
    dev.assert_equal(there >> counts, expected)
    shifted = [[v << b for b in bits.tolist()] for v in x.tolist()]
    dev.assert_equal(there << counts, wrapped(shifted, dtype))
    dev.assert_equal((there >> 3, there << 3), ((x >> 3)[:, None], (x << 3)[:, None]))


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


@check("special_values/integer", "SPECIAL-009", cases=_WRAPPING, dtypes=INTEGERS)
def integers_wrap_at_the_limits_of_their_type(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Integer arithmetic on the limits of a type is exact modulo the range of the type."""
    operator, exact = _WRAPPING[case]
    x = limits(dtype)
    there = x.to(dev.device())
    expected = wrapped([[exact(a, b) for b in x.tolist()] for a in x.tolist()], dtype)
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


@check("special_values/quotient", "SPECIAL-013", cases=_QUOTIENTS, dtypes=INTEGERS)
def quotients_at_the_limits_are_exact(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Quotients and remainders of the limits of a type are those of Python's integers."""
    operator, exact = _QUOTIENTS[case]
    info = torch.iinfo(dtype)
    # The most negative number is left out: divided by -1 it overflows.
    x = limits(dtype)[limits(dtype) > info.min] if info.min else limits(dtype)
    divisors = x[x != 0]
    there, by = x.to(dev.device()), divisors.to(dev.device())
    expected = [[exact(a, b) for b in divisors.tolist()] for a in x.tolist()]
    dev.assert_equal(operator(there[:, None], by[None]), torch.tensor(expected, dtype=dtype))
