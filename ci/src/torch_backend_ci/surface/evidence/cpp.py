# SPDX-License-Identifier: BSD-3-Clause
"""Which headers of torch C++ sources include, and which of its names they qualify."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = (".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh", ".mu", ".mm")
_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*[<\"]((?:c10|ATen|torch|caffe2)/[^>\"\n]+)", re.M
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z_]\w+\b")
_NAME = re.compile(r"(?<![\w:])(?:c10d|c10|at|torch)(?:::\w+)+")


def sources(folder: Path) -> Iterator[str]:
    """The texts of the C++ files below a directory, without comments."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            yield _COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))


def includes(text: str) -> set[str]:
    """The headers of torch, as they are included."""
    return set(_INCLUDE.findall(text))


def words(text: str) -> set[str]:
    """Every identifier: what a backend does not mention, it does not use."""
    return set(_WORD.findall(text))


def names(text: str) -> set[str]:
    """Qualified names of torch's namespaces."""
    return set(_NAME.findall(text))
