# SPDX-License-Identifier: BSD-3-Clause
"""Index variables without divisions: an index as a row and a place in it.

Inductor gives each dimension of an index space a variable, (index // divisor) % length. If the
divisors and lengths are multiples of a row's length, all of them follow from the number of the row
and the place in the row, and in a loop over places only sums are left. Sizes may be symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from torch._inductor.codegen.simd import IterationRangesEntry
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

PLACE = sympy.Symbol("place", integer=True, nonnegative=True)


def row_length(entries: Sequence[IterationRangesEntry], numel: sympy.Expr) -> sympy.Expr | None:
    """The longest rows that fit all variables of an index space; None if no length is known."""
    steps = [_size(entry.length if entry.divisor == 1 else entry.divisor) for entry in entries]
    if not steps or not all(step.is_polynomial(*step.free_symbols) for step in steps):
        return None
    length = sympy.gcd_list(steps)
    return length if _quotient(_size(numel), length) is not None else None


def in_row(entry: IterationRangesEntry, row: sympy.Symbol, length: sympy.Expr) -> sympy.Expr:
    """The value of a variable, in terms of `row` and PLACE."""
    if entry.divisor == 1:
        rows = _quotient(_size(entry.length), length)
        if rows == 1:
            return PLACE
        is_whole = isinstance(entry.expr, sympy.Symbol)
        first = row if is_whole else ModularIndexing(row, sympy.S.One, rows)
        return first * length + PLACE
    divisor = _quotient(_size(entry.divisor), length)
    if isinstance(entry.expr, FloorDiv):
        return FloorDiv(row, divisor)
    return ModularIndexing(row, divisor, entry.length)


def same(one: sympy.Expr, other: sympy.Expr) -> bool:
    return _quotient(_size(one), _size(other)) == 1


def _size(size: sympy.Expr) -> sympy.Expr:
    """In terms of the sizes of inputs: products of them may have symbols of their own."""
    return V.graph.sizevars.remove_precomputed_replacements(size)


def _quotient(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
    """a / b if it is an integer whatever the sizes are."""
    numerator, denominator = sympy.fraction(sympy.cancel(a / b))
    return numerator if denominator == 1 else None
