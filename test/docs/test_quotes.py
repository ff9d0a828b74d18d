# SPDX-License-Identifier: BSD-3-Clause
"""Code that a document quotes from a file is that file's text.

In the document, the line `<!-- quote: PATH#NAME -->` stands before a fenced block. In the file, the
part begins after the comment `quote: NAME` and ends before the comment `end quote`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ANNOUNCED = re.compile(r"^<!-- quote: (\S+)#(\S+) -->$", re.MULTILINE)
QUOTED = re.compile(
    r"^<!-- quote: (?P<file>\S+)#(?P<name>\S+) -->\n```\w*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
PART = re.compile(
    r"^[ \t]*(?://|#) quote: (?P<name>\S+)\n(?P<text>.*?)^[ \t]*(?://|#) end quote$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Quote:
    """A fenced block of a document, and the part of a file that it must be."""

    where: str
    file: str
    name: str
    text: str


def quotes() -> Iterator[Quote]:
    """All of them, in all documents."""
    for document in DOCUMENTS:
        text = document.read_text()
        for match in QUOTED.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            where = f"{document.relative_to(ROOT)}:{line}"
            yield Quote(where, match["file"], match["name"], match["text"])


QUOTES = list(quotes())


def parts(text: str) -> dict[str, str]:
    """The parts of a file that may be quoted, by name."""
    return {match["name"]: match["text"] for match in PART.finditer(text)}


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: f"{quote.file}#{quote.name}")
def test_a_quote_is_what_the_file_says(quote: Quote) -> None:
    found = parts((ROOT / quote.file).read_text())
    assert quote.name in found, f"{quote.where}: {quote.file} has no part {quote.name}"
    assert quote.text == found[quote.name], f"{quote.where} differs from {quote.file}"


def test_every_announced_quote_is_followed_by_a_block() -> None:
    announced = sum(len(ANNOUNCED.findall(document.read_text())) for document in DOCUMENTS)
    assert announced == len(QUOTES) > 0


def test_every_part_of_the_example_is_quoted() -> None:
    for file in ("examples/cpp/train.cpp", "examples/cpp/CMakeLists.txt"):
        quoted = {quote.name for quote in QUOTES if quote.file == file}
        assert parts((ROOT / file).read_text()).keys() == quoted
