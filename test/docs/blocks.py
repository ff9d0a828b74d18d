# SPDX-License-Identifier: BSD-3-Clause
"""The fenced blocks of the documents, and what is noted above each.

<!-- run: test/docs/test_cpp_example.py -->      the test that runs the block
<!-- not run: gdb waits for input -->            why no test does
<!-- quote: csrc/hal/hal.h#NAME -->              what it quotes: quotes.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from website.pages import documents

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?^(?P<fence>```+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
#: What is not code: pictures in letters, what a program prints, and reports.
PROSE = ("text", "diff")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    document: str
    line: int
    info: str
    note: str
    text: str

    @property
    def where(self) -> str:
        """The place, for messages."""
        return f"{self.document}:{self.line}"

    @property
    def runs_by_itself(self) -> bool:
        """Whether a test runs it for what it is: programs, and the walkthrough."""
        walkthrough = self.document.startswith("docs/walkthrough/")
        return walkthrough or (
            self.info == "python" and self.document.startswith(("docs/", "README"))
        )


def blocks() -> Iterator[Block]:
    """Every block of every document of the site that people write."""
    for name in (Path("README.md"), *documents()):
        if name.suffix == ".md" and "examples" not in name.parts:
            yield from of(name.as_posix(), (ROOT / name).read_text())


def of(document: str, text: str) -> Iterator[Block]:
    """The blocks of a document."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("fence")) + 1
        yield Block(document, line, match["info"], match["note"] or "", match["text"])


def problem(block: Block) -> str | None:
    """Why it is not known whether the block is right; None if it is."""
    kind, _, rest = block.note.partition(": ")
    if block.info in PROSE or block.runs_by_itself or kind == "quote":
        return None
    if kind == "not run":
        return None if rest.strip() else "no reason why it is not run"
    if kind != "run":
        return "neither quoted, nor run, nor marked <!-- not run: REASON -->"
    test = ROOT / rest
    if not test.is_file():
        return f"there is no test {rest}"
    return None if names(test.read_text(), block.document) else f"{rest} does not read the document"


def names(test: str, document: str) -> bool:
    """Whether the text of a test names a document, in one string or in several."""
    return Path(document).name in test
