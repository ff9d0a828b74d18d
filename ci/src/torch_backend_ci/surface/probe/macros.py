# SPDX-License-Identifier: BSD-3-Clause
"""Which macros of the surface the probe expands, read from its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.probe.result import Covered, Place, Use

_FOLDER = Path(__file__).parent
_DIRECTIVE = re.compile(r"^\s*#\s*(if|ifndef|elif|else|endif)\b(.*)")
_SINCE = re.compile(r"(!?)\s*PROBE_TORCH\((\d+), (\d+)\)")
_WORD = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\b")
_COMMENT_OR_TEXT = re.compile(r'//.*|"(?:\\.|[^"\\])*"')


def expanded(version: str) -> Iterator[Covered]:
    """The macros in what a torch of this version sees of the probe."""
    known = catalogue.load()
    for path in sorted(_FOLDER.glob("surfaces/*.h")):
        file = str(path.relative_to(_FOLDER))
        for number, line in active_lines(path.read_text(), version):
            for name in _WORD.findall(_COMMENT_OR_TEXT.sub("", line)):
                if known.surface_of_macro(name):
                    begin = Place(file, number)
                    yield Covered(name, Use.EXPANDS, Place("", 0), begin, number, number)


def active_lines(text: str, version: str) -> Iterator[tuple[int, str]]:
    """The lines, from 1, that the conditions on PROBE_TORCH let through, directives left out."""
    torch = Version(version).release[:2]
    stack: list[tuple[bool, bool]] = []  # this branch is taken; one of this `if` has been
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.match(line)
        if match is None:
            if all(taken for taken, _ in stack) and not line.lstrip().startswith("#"):
                yield number, line
            continue
        word, condition = match[1], match[2]
        if word.startswith("if"):
            holds = _holds(condition, torch)
            stack.append((holds, holds))
        elif word == "endif":
            stack.pop()
        else:
            _, before = stack.pop()
            holds = not before and (word == "else" or _holds(condition, torch))
            stack.append((holds, holds or before))


def _holds(condition: str, torch: tuple[int, ...]) -> bool:
    return all(
        (torch >= (int(major), int(minor))) != bool(negated)
        for negated, major, minor in _SINCE.findall(condition)
    )
