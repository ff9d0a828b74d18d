# SPDX-License-Identifier: BSD-3-Clause
"""The texts of this project that people read, and the words to avoid in them (words.yaml)."""

from __future__ import annotations

import argparse
import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("ci/src", "conformance/src", "hal_conformance/src")
#: Made by commands from data that has its own words, or about releases that are history.
GENERATED = (
    "CHANGELOG.md",
    "docs/kernels.md",
    "docs/liars.md",
    "docs/operators.md",
    "docs/surface/examples",
)
#: Quoted in a text: it has the words of the code.
_CODE = re.compile(r"`[^`]*`")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Word(NamedTuple):
    """A pattern, and what to write in its place."""

    avoid: re.Pattern[str]
    write: str


class Text(NamedTuple):
    """A text, and where it begins: a file or a command, and a line."""

    source: str
    line: int
    text: str


def words() -> list[Word]:
    """The table."""
    rows = yaml.load((Path(__file__).parent / "words.yaml").read_text(), yaml.CSafeLoader)
    return [Word(re.compile(row["avoid"], re.IGNORECASE), row["write"]) for row in rows]


def documents() -> list[Path]:
    """Every document that people write."""
    roots = (ROOT / name for name in ("docs", "conformance", "hal_conformance", "csrc", "test"))
    found = [*ROOT.glob("*.md"), *(file for root in roots for file in root.rglob("*.md"))]
    return sorted(
        file
        for file in found
        if not file.relative_to(ROOT).as_posix().startswith(GENERATED)
        and "node_modules" not in file.parts
    )


def sources() -> list[Path]:
    """Every Python file whose docstrings are read."""
    return sorted(file for name in SOURCES for file in (ROOT / name).rglob("*.py"))


def document(file: Path) -> Iterator[Text]:
    """The prose of a document, without its code."""
    text = re.sub(r"^```.*?^```$", _blank, file.read_text(), flags=re.DOTALL | re.MULTILINE)
    yield Text(file.relative_to(ROOT).as_posix(), 1, _CODE.sub(_blank, text))


def source(file: Path) -> Iterator[Text]:
    """The docstrings and comments of a Python file."""
    code = file.read_text()
    where = file.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node, clean=False)):
            yield Text(where, node.body[0].lineno, _CODE.sub(_blank, text))
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield Text(where, token.start[0], _CODE.sub(_blank, token.string))


def helps(parser: argparse.ArgumentParser) -> Iterator[Text]:
    """The help of each command below a parser that does something itself."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield Text(f"{parser.prog} --help", 1, parser.format_help())
    for action in below:
        yield Text(f"{parser.prog} --help", 1, action.help or "")
        for sub in dict.fromkeys(action.choices.values()):
            yield from helps(sub)


def avoidable(text: Text) -> Iterator[str]:
    """A sentence for each word that the text should avoid."""
    for word in _words():
        for match in word.avoid.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start())
            yield f"{text.source}:{line}: {' '.join(match[0].split())!r}: write {word.write!r}"


def _blank(match: re.Match[str]) -> str:
    """As many lines as the match has, without its words."""
    return "\n" * match[0].count("\n")


_words = functools.cache(words)
