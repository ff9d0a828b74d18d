# SPDX-License-Identifier: BSD-3-Clause
"""The texts of this project that people read, and the words that they avoid (words.yaml)."""

from __future__ import annotations

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
SOURCES = ("ci", "conformance/src", "hal_conformance/src")
#: Made by commands from data that has its own words, or about releases that are history.
GENERATED = ("CHANGELOG.md", "docs/liars.md", "docs/operators.md", "docs/surface/examples")
#: Written for a terminal: the value of these names and of these arguments is a help text.
_HELP_NAMES = re.compile(r"_?(DESCRIPTION|EPILOG|EXAMPLES?|SUMMARY|HELP|USAGE)")
_HELP_ARGUMENTS = {"help", "description", "epilog"}


class Word(NamedTuple):
    """A pattern, and what to write in its place."""

    avoid: re.Pattern[str]
    write: str


class Text(NamedTuple):
    """A text with the place where it begins."""

    file: Path
    line: int
    text: str


def words() -> list[Word]:
    """The table."""
    rows = yaml.safe_load((Path(__file__).parent / "words.yaml").read_text())
    return [Word(re.compile(row["avoid"], re.IGNORECASE), row["write"]) for row in rows]


def documents() -> list[Path]:
    """Every document that people write."""
    folders = (ROOT / name for name in ("docs", "conformance", "hal_conformance", "csrc", "test"))
    found = [*ROOT.glob("*.md"), *(file for folder in folders for file in folder.rglob("*.md"))]
    return sorted(
        file
        for file in found
        if not file.relative_to(ROOT).as_posix().startswith(GENERATED)
        and "node_modules" not in file.parts
    )


def sources() -> list[Path]:
    """Every Python file whose docstrings and help texts are read."""
    return sorted(file for name in SOURCES for file in (ROOT / name).rglob("*.py"))


def document(file: Path) -> Iterator[Text]:
    """The prose of a document: what is quoted as code has the words of the code."""
    text = re.sub(r"^```.*?^```$", _blank, file.read_text(), flags=re.DOTALL | re.MULTILINE)
    yield Text(file, 1, re.sub(r"`[^`]*`", _blank, text))


def source(file: Path) -> Iterator[Text]:
    """The docstrings and help texts of a Python file."""
    for node in ast.walk(ast.parse(file.read_text())):
        for constant in _read_by_people(node):
            yield Text(file, constant.lineno, str(constant.value))


def comments(file: Path) -> Iterator[Text]:
    """The comments of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield Text(file, token.start[0], token.string)


def found(text: Text) -> Iterator[str]:
    """A sentence for each word that the text should avoid."""
    for word in _words():
        for match in word.avoid.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start())
            where = text.file.relative_to(ROOT).as_posix()
            yield f"{where}:{line}: {' '.join(match[0].split())!r}: write {word.write!r}"


def _read_by_people(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr):
            yield from _texts(first.value)
    elif isinstance(node, ast.Call):
        for argument in node.keywords:
            if argument.arg in _HELP_ARGUMENTS:
                yield from _texts(argument.value)
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if any(_HELP_NAMES.fullmatch(name) for name in names):
            yield from _texts(node.value)


def _texts(node: ast.expr) -> Iterator[ast.Constant]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each


def _blank(match: re.Match[str]) -> str:
    """As many lines as the match has, without its words."""
    return "\n" * match[0].count("\n")


_words = functools.cache(words)
