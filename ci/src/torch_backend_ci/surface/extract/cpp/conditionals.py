# SPDX-License-Identifier: BSD-3-Clause
"""Which conditional regions of the preprocessor a line is in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_DIRECTIVE = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")


def enclosing(lines: Sequence[str], line: int) -> tuple[str, ...]:
    """The conditions around a line (from 1), outermost first."""
    stack: list[str] = []
    for text in lines[: line - 1]:
        match = _DIRECTIVE.match(text)
        if match is None:
            continue
        word, condition = match[1], match[2].strip()
        if word == "endif":
            del stack[-1:]
        elif word in ("elif", "else"):
            stack[-1:] = [condition]
        else:
            stack.append(condition)
    return tuple(stack)


def names_any(lines: Iterable[str], macros: Iterable[str]) -> bool:
    """Whether a condition of the preprocessor names one of the macros."""
    wanted = re.compile(rf"\b(?:{'|'.join(macros)})\b")
    return any(_DIRECTIVE.match(line) and wanted.search(line) for line in lines)


def required_macros(conditions: Sequence[str], defines: Sequence[str]) -> list[str]:
    """Those of a profile's defines that the conditions name; all of them if they name none."""
    words = set(re.findall(r"\w+", " ".join(conditions)))
    return [name for name in defines if name in words] or list(defines)
