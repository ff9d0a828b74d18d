# SPDX-License-Identifier: BSD-3-Clause
"""What expressions of literals amount to: `1024 * 1024`, `!false`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.BitOr: operator.or_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_PYTHON = {"true": "True", "false": "False"}
_SUFFIXED = re.compile(r"(0[xX][0-9a-fA-F]+(?=[uUlL]+$)|[\d.]+)(?:[uUlL]{1,3}|[fF])")
_LONGEST = 100  # of the text: a patch may have anything in it
_MOST_SHIFT = 64


def amount(tokens: str) -> int | float | None:
    """The number or truth value, if there are only literals in it, and no division."""
    if len(tokens) > _LONGEST:
        return None
    if tokens.startswith("! "):  # of one word: Python's `not` is of all that follows
        truth = amount(tokens[2:]) if tokens.count(" ") == 1 else None
        return None if truth is None else not truth
    words = (_PYTHON.get(word, word) for word in tokens.split())
    words = (match[1] if (match := _SUFFIXED.fullmatch(word)) else word for word in words)
    try:
        return _of(ast.parse(" ".join(words), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, OverflowError):
        return None


def _of(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.UnaryOp(op, operand) if (unary := _UNARY.get(type(op))) is not None:
            return unary(_of(operand))
        case ast.BinOp(left, op, right) if (binary := _BINARY.get(type(op))) is not None:
            amounts = _of(left), _of(right)
            if isinstance(op, ast.LShift) and amounts[1] > _MOST_SHIFT:
                raise ValueError("a shift that C++ does not allow")
            return binary(*amounts)
    raise ValueError("not an expression of literals")
