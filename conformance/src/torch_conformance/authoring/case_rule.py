# SPDX-License-Identifier: BSD-3-Clause
"""One behaviour, one check: whether a function chooses between behaviours by the name of its case.

A chain of ``if case == "a"`` hides several behaviours in one function, and a misspelt or new case
runs another one's body. Not seen: a chained comparison, ``case.startswith``, and comparisons
inside an ``assert`` that pytest has rewritten.
"""

from __future__ import annotations

import dis
from types import CodeType

_COMPARISONS = ("COMPARE_OP", "CONTAINS_OP")
_COMPARE = frozenset(dis.opmap[name] for name in _COMPARISONS if name in dis.opmap)
_DUPLICATIONS = ("COPY", "DUP_TOP")  # before the comparison in a match statement
_LITERALS = (str, tuple, frozenset)


def compares_case(code: CodeType) -> bool:
    """Whether a function, or one inside it, compares `case` with a string or several.

    By its bytecode: the source would have to be found, read and parsed.
    """
    if any(compares_case(part) for part in code.co_consts if isinstance(part, CodeType)):
        return True
    variables = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    # To disassemble all takes 20 times as long.
    if "case" not in variables or _COMPARE.isdisjoint(code.co_code[::2]):
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in _DUPLICATIONS]
    return any(
        third.opname in _COMPARISONS
        and ((_is_case(first) and _is_literal(second)) or (_is_literal(first) and _is_case(second)))
        for first, second, third in zip(steps, steps[1:], steps[2:], strict=False)
    )


def _is_case(step: dis.Instruction) -> bool:
    """Whether the last variable that is loaded (one operation may load two) is `case`."""
    if "LOAD_FAST" not in step.opname and "LOAD_DEREF" not in step.opname:
        return False
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    return names[-1] == "case"


def _is_literal(step: dis.Instruction) -> bool:
    return step.opname == "LOAD_CONST" and isinstance(step.argval, _LITERALS)
