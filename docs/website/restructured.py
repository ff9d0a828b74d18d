# SPDX-License-Identifier: BSD-3-Clause
"""Texts in reStructuredText, for generated pages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SPECIAL = re.compile(r"([\\*_|<>`])")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_HEADING = re.compile(r"^#{2,} (.+)$", re.MULTILINE)


def heading(text: str, line: str) -> str:
    """A heading, underlined with the character `line`."""
    return f"{text}\n{line * len(text)}\n"


def escaped(text: str) -> str:
    """Prose: what is between single backticks is code, and nothing else has a meaning."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _SPECIAL.sub(r"\\\1", text)
    return "".join(
        _literal(part) if index % 2 else _SPECIAL.sub(r"\\\1", part)
        for index, part in enumerate(parts)
    )


def slug(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", title.lower())
    return kept.replace(" ", "-")


def linked(target: str) -> str:
    """A link to a section of a document (a path in the repository and an anchor), by its title.

    Raises KeyError if the document has no such section.
    """
    path, _, anchor = target.partition("#")
    text = (ROOT / path).read_text()
    (title, *_) = _TITLE.findall(text)
    if anchor:
        title = {slug(each): each for each in _HEADING.findall(text)}[anchor]
    return f":section:`{title.replace('`', '')} <{target}>`"


def _literal(code: str) -> str:
    """Code, whatever stands beside it."""
    return f"\\ ``{code}``\\ "
