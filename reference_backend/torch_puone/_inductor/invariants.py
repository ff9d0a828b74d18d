# SPDX-License-Identifier: BSD-3-Clause
"""Lines that are the same for all elements of a loop, and are moved before it.

A compiler does not do so with what is loaded: it does not know that the loop stores elsewhere.
Inductor knows: it fuses a load with a store to the same buffer only if both are of one element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_DEFINITION = re.compile(r"const auto (\w+) = (.+);")
_ASSIGNED = re.compile(r"\b(\w+) = ")
_VARIABLE = re.compile(r"\b(?:tmp|\w*ptr)\d+\b")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_LOAD = "ops::read(in_ptr"


def split(lines: str, varying: Iterable[str]) -> tuple[str, str]:
    """The lines to put before a loop, and those that stay in it.

    `varying` are the variables of the loop. A line moves if it defines a variable by others that
    do not vary, and if no line before it can leave the element: it may check what the line loads.
    Without such a load nothing moves, for the compiler moves the rest.
    """
    unfixed = set(varying)
    fixed: list[str] = []
    constants: list[str] = []
    rest: list[str] = []
    may_leave = False
    for line in lines.splitlines():
        definition = None if may_leave else _DEFINITION.fullmatch(line)
        value = definition[2] if definition else line
        if definition is None or _is_unfixed(value, unfixed):
            rest.append(line)
            unfixed.update(_ASSIGNED.findall(line))
            may_leave = may_leave or line.startswith("if ")  # or it guards a load
        else:
            (fixed if _VARIABLE.search(value) else constants).append(line)
    if not any(_LOAD in line for line in fixed):
        return "", lines
    moved = [*_used(constants, fixed), *fixed]
    staying = _used(constants, rest)  # a compiler knows best what to do with them
    dropped = {line for line in moved if line not in staying}
    kept = [line for line in lines.splitlines() if line not in dropped]
    return _joined(moved), _joined(kept)


def _is_unfixed(value: str, unfixed: set[str]) -> bool:
    names = set(_NAME.findall(value))
    return bool(names & unfixed) or "out_ptr" in value or "args" in names


def _used(definitions: list[str], by: list[str]) -> list[str]:
    """The definitions of which these lines use the variable."""
    names = set(_NAME.findall("\n".join(by)))
    return [line for line in definitions if line.split()[2] in names]


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
