# SPDX-License-Identifier: BSD-3-Clause
"""Passages of sources that documents quote.

    quotes.py            writes into every document what the sources say now
    quotes.py --check    lists the quotes that differ, and fails if there is one

A passage of a source stands between two comments, and may hold others; a passage of a document is a
fenced block below a comment. Both lines of marks are left out of what is quoted.

    // [quote: NAME]                         <!-- quote: csrc/path/to/file.cpp#NAME -->
    code                                     ```cpp
    // [end: NAME]                           code
                                             ```
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Where marks may be, and the language of a block by the suffix of its source.
FOLDERS = ("cmake", "conformance", "csrc", "examples", "reference_backend")
LANGUAGES = {
    ".c": "c",
    **dict.fromkeys((".cpp", ".cu", ".cuh", ".h", ".hpp"), "cpp"),
    **dict.fromkeys((".cmake", ".txt"), "cmake"),
    ".py": "py",  # test_docs.py runs what is called "python"
    ".yaml": "yaml",
}
MARK = re.compile(r"^\s*(?://|#)\s*\[(quote|end): ([\w-]+)\]\s*$")
QUOTE = re.compile(
    r"^<!-- quote: (?P<path>[^#\s]+)#(?P<name>[\w-]+) -->\n"
    r"(?:```\w*\n(?P<text>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


class QuoteError(Exception):
    """A mark that cannot be understood; the text names file and line."""


@dataclass(frozen=True)
class Quote:
    """A passage of a document that says what stands in a source."""

    where: str
    path: str
    name: str
    block: str
    """What stands below the mark: the whole fenced block, or nothing yet."""

    def expected(self, root: Path = ROOT) -> str:
        """The block as the source has it now; raises QuoteError."""
        source = root / self.path
        if not source.is_file():
            raise QuoteError(f"{self.where}: there is no file {self.path}")
        passages = marked(source.read_text(), self.path)
        if self.name not in passages:
            raise QuoteError(f"{self.where}: {self.path} has no passage [quote: {self.name}]")
        return f"```{language(source)}\n{passages[self.name]}```"


def marked(text: str, where: str) -> dict[str, str]:
    """The passages of a source by name, without common indentation; raises QuoteError."""
    done: dict[str, str] = {}
    begun: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        match = MARK.match(line)
        if match is None:
            for lines in begun.values():
                lines.append(line)
        elif match[1] == "quote":
            if match[2] in done or match[2] in begun:
                raise QuoteError(f"{where}:{number}: a second passage {match[2]!r}")
            begun[match[2]] = []
        elif match[2] not in begun:
            raise QuoteError(f"{where}:{number}: the end of {match[2]!r}, which has not begun")
        else:
            done[match[2]] = textwrap.dedent("".join(begun.pop(match[2])))
    if begun:
        raise QuoteError(f"{where}: no end of {', '.join(begun)}")
    return done


def quotes(text: str, where: str) -> Iterator[Quote]:
    """The quotes of a document, in their order; raises QuoteError."""
    found = list(QUOTE.finditer(text))
    if text.count("<!-- quote") != len(found):
        raise QuoteError(f"{where}: a line that is not <!-- quote: PATH#NAME -->")
    for match in found:
        line = text.count("\n", 0, match.start()) + 1
        block = match[0].partition("\n")[2]
        yield Quote(f"{where}:{line}", match["path"], match["name"], block)


def renewed(text: str, where: str, root: Path = ROOT) -> str:
    """The document with every quote as its source has it now; raises QuoteError."""

    def renew(match: re.Match[str]) -> str:
        (quote,) = quotes(match[0], where)
        block = quote.expected(root)
        mark = match[0].partition("\n")[0]
        return f"{mark}\n{block}" + ("" if match["text"] is not None else "\n")

    return QUOTE.sub(renew, text)


def language(source: Path) -> str:
    """The language of a fenced block."""
    return LANGUAGES.get(source.suffix, "")


def documents() -> list[Path]:
    """Every document of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def sources() -> Iterator[tuple[str, dict[str, str]]]:
    """(path, passages) of every source that has any; raises QuoteError."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in LANGUAGES and path.is_file():
                name = path.relative_to(ROOT).as_posix()
                if passages := marked(path.read_text(), name):
                    yield name, passages


def main(arguments: list[str]) -> int:
    """The command line; see above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    differing = 0
    for document in documents():
        text = document.read_text()
        new = renewed(text, document.relative_to(ROOT).as_posix())
        if new != text:
            differing += 1
            print(f"{document.relative_to(ROOT)}: {'differs' if options.check else 'written'}")
            if not options.check:
                document.write_text(new)
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except QuoteError as error:
        sys.exit(str(error))
