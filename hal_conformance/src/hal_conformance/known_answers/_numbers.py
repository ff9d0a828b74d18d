# SPDX-License-Identifier: BSD-3-Clause
"""Functions that NumPy lacks, in Python's decimals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from hal_conformance.answers import Array


@cache
def _two_over_root_pi(digits: int) -> Decimal:
    """By Machin's formula for pi."""

    def arctangent_of_inverse(n: int) -> int:
        term: int = 10 ** (digits + 10) // n
        total = term
        k, sign = 3, -1
        while term:
            term //= n * n
            total += sign * (term // k)
            k, sign = k + 2, -sign
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    with localcontext() as context:
        context.prec = digits
        return 2 / Decimal(pi).scaleb(-digits - 10).sqrt()


@cache
def _erf(x: Any, complement: bool) -> Any:
    """By the Taylor series, with as many digits as its largest term and erfc's smallness take."""
    if not np.isfinite(x):
        limit = np.longdouble(math.copysign(1, x)) if x == x else np.longdouble(np.nan)
        return 1 - limit if complement else limit
    if abs(x) > 40:
        return _erf(np.longdouble(math.copysign(math.inf, x)), complement)
    digits = 40 + int(2 * float(x) ** 2 / math.log(10))
    with localcontext() as context:
        context.prec = digits
        over, under = x.as_integer_ratio()
        exact = Decimal(over) / Decimal(under)
        square, power, total, n = exact * exact, exact, exact, 0
        while abs(power) > Decimal(10) ** -digits and n < 10000:
            n += 1
            power = -power * square / n
            total += power / (2 * n + 1)
        found = total * _two_over_root_pi(digits)
        return np.longdouble(f"{(1 - found if complement else found):.30e}")


def erf(x: Array) -> Array:
    return np.where(x == 0, x, _each(x, False))  # a decimal 0 has lost its sign


def erfc(x: Array) -> Array:
    return _each(x, True)


def _each(x: Array, complement: bool) -> Array:
    flat = [_erf(value, complement) for value in np.asarray(x, np.longdouble).reshape(-1)]
    return np.array(flat, np.longdouble).reshape(np.shape(x))
