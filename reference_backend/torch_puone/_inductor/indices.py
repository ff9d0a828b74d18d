# SPDX-License-Identifier: BSD-3-Clause
"""Index variables without divisions: an index as a row and a place in it.

Inductor gives each dimension of an index space a variable, (index // divisor) % length. If the
divisors and lengths are multiples of a row's length, all of them follow from the number of the row
and the place in the row, and in a loop over places only sums are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import sympy
from torch._inductor.codegen.simd import IterationRangesEntry
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

PLACE = sympy.Symbol("place", integer=True, nonnegative=True)


def row_length(entries: Sequence[IterationRangesEntry], numel: sympy.Expr) -> int | None:
    """The longest rows that fit all variables of an index space; None if no length is known."""
    steps = [entry.length if entry.divisor == 1 else entry.divisor for entry in entries]
    if not steps or not all(isinstance(step, sympy.Integer) for step in steps):
        return None
    length = math.gcd(*map(int, steps))
    return length if numel % length == 0 else None


def in_row(entry: IterationRangesEntry, row: sympy.Symbol, length: int) -> sympy.Expr:
    """The value of a variable, in terms of `row` and PLACE."""
    if entry.divisor == 1:
        if entry.length == length:
            return PLACE
        is_whole = isinstance(entry.expr, sympy.Symbol)
        first = row if is_whole else ModularIndexing(row, 1, entry.length // length)
        return first * length + PLACE
    divisor = entry.divisor // length
    if isinstance(entry.expr, FloorDiv):
        return FloorDiv(row, divisor)
    return ModularIndexing(row, divisor, entry.length)
