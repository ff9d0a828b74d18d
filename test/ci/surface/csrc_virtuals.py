# SPDX-License-Identifier: BSD-3-Clause
"""What our backend's source overrides of PyTorch and which macros it expands, read as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CSRC = Path(__file__).parents[3] / "csrc"
# No torch below the HAL.
WITHOUT_TORCH = ("drivers", "hal", "kernels")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CLASS = re.compile(
    r"\b(?:class|struct)\s+\w+(?:\s+final)?\s*:\s*(?:public\s+)?"
    r"((?:at|c10|c10d|torch|libkineto)::[\w:]+)[^{;]*\{"
)
_OVERRIDE = re.compile(
    r"(?<!~)\b(\w+)\s*\((?:[^()]|\([^()]*\))*\)\s*(?:const\s*)?(?:noexcept\s*)?override"
)
_MACRO = re.compile(r"^\s*([A-Z][A-Z0-9_]{3,})\s*\(", re.MULTILINE)


class Override(NamedTuple):
    """One overriding function of ours."""

    file: str
    base: str  # the class of PyTorch that the class around it is derived from
    name: str


def sources() -> Iterator[tuple[str, str]]:
    """File and text, without comments, of what sees PyTorch."""
    for path in sorted([*CSRC.rglob("*.h"), *CSRC.rglob("*.cpp")]):
        relative = path.relative_to(CSRC)
        if relative.parts[0] not in WITHOUT_TORCH:
            yield str(relative), _COMMENT.sub("", path.read_text())


def overrides() -> list[Override]:
    """Every function marked `override` in a class that derives from one of PyTorch."""
    return [
        Override(file, match[1], function[1])
        for file, text in sources()
        for match in _CLASS.finditer(text)
        for function in _OVERRIDE.finditer(_body(text, match.end()))
    ]


def macros() -> set[tuple[str, str]]:
    """Every macro expanded at the beginning of a line, and the file."""
    return {(file, name) for file, text in sources() for name in _MACRO.findall(text)}


def _body(text: str, start: int) -> str:
    """From behind an opening brace to the one that closes it."""
    depth, end = 1, start
    while depth and end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start:end]
