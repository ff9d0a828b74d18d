# SPDX-License-Identifier: BSD-3-Clause
"""The words of docs/glossary.md, and their forms in a text."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from website.restructured import slug

PAGE = "docs/glossary"
FILE = Path(__file__).resolve().parents[2] / f"{PAGE}.md"
#: Words that pages also use in their ordinary sense: these are no links.
ORDINARY = frozenset(
    (
        *("backend", "bundle", "chapter", "check", "column", "configuration", "control", "driver"),
        *("finding", "kernel", "keyword", "level", "module", "pin", "report", "segment", "store"),
        *("surface", "unexpected", "verdict", "witness"),
    )
)
_ROW = re.compile(r"^\| ([a-zA-Z][\w -]*?) \| (?!meaning)", re.MULTILINE)


@functools.cache
def words() -> tuple[str, ...]:
    """The words that are defined, in the order of the page."""
    return tuple(_ROW.findall(FILE.read_text(encoding="utf-8")))


def anchor(word: str) -> str:
    """Of the row that defines a word."""
    return f"term-{slug(word)}"


@functools.cache
def pattern() -> re.Pattern[str]:
    """Every word that is linked, in the singular or plural, longer ones first."""
    linked = sorted({*words()} - ORDINARY, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(_forms, linked))})\b", re.IGNORECASE)


def _forms(word: str) -> str:
    plural = f"{word[:-1]}(?:y|ies)" if word.endswith("y") else f"{word}s?"
    return plural.replace(" ", r"\s+")


def defined(text: str) -> str:
    """The word of the glossary that a match of `pattern` is a form of."""
    (word,) = [word for word in words() if re.fullmatch(_forms(word), text, re.IGNORECASE)]
    return word
