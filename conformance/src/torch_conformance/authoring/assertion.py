# SPDX-License-Identifier: BSD-3-Clause
"""What a failed assertion says: first the expression as it is written, then its values.

pytest's rewriting gives the values alone, and "assert False" is what different checks have in
common that verify different things.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import TracebackType

from torch_conformance.authoring.backend import text_of

# How a message begins that was made of an assertion without one.
_MADE = "assert "
MAX_EXPRESSION = 300


def said(error: AssertionError) -> str:
    """The message of the assertion, or else its expression and what is known of its values."""
    text = text_of(error)
    if text and not text.startswith(_MADE):
        return text
    expression = _expression(error.__traceback__)
    if expression is None or text.partition("\n")[0] == expression:
        return text or "assertion failed"
    return f"{expression}\n{text}".rstrip()


def _expression(trace: TracebackType | None) -> str | None:
    """The assertion that raised, on one line, if an assertion did."""
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    found = [
        text
        for first, last, text in _assertions(trace.tb_frame.f_code.co_filename)
        if first <= trace.tb_lineno <= last
    ]
    return found[-1] if found else None  # The innermost one begins last.


@cache
def _assertions(file: str) -> list[tuple[int, int, str]]:
    """First and last line of each assertion in a file, and its text without a message."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []  # Generated code has no file; one that has changed tells nothing.
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return [(node.lineno, node.end_lineno or node.lineno, _text(node.test)) for node in found]


def _text(test: ast.expr) -> str:
    text = _MADE + ast.unparse(test)
    return text if len(text) <= MAX_EXPRESSION else f"{text[: MAX_EXPRESSION - 3]}..."
