# SPDX-License-Identifier: BSD-3-Clause
"""C++ source as text: tokens without comments and spacing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<token>
        (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
      | (?:u8|[uUL])?'(?:\\.|[^'\\\n])*'
      | [A-Za-z_]\w*
      | \.?\d(?:[eEpP][+-]|'?[\w.])*
      | \#\# | \.\.\. | <=> | <<= | >>= | ->\* | :: | -> | \+\+ | -- | << | <= | >= | == | !=
      | && | \|\| | [-+*/%&|^]=
      | .
    )""",
    re.VERBOSE | re.DOTALL,
)
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_ROUND_OPENING, _ROUND_CLOSING = ("(", "["), (")", "]")


def tokens(text: str) -> list[str]:
    """The tokens; lines joined by a backslash are one."""
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text)
    return [match["token"] for match in _TOKEN.finditer(joined) if match["token"]]


def declaration_text(text: str) -> str:
    """A declaration as it is written, on one line, without comments and without its body."""
    plain = re.sub(r"(?<=\() | (?=[,)])", "", " ".join(_without_comments(text).split()))
    return plain[: _body_starts(plain)].rstrip(" ;:")


def initializer(text: str) -> str:
    """The tokens of what a variable is initialized with; "" for nothing."""
    words = tokens(text)
    for depth, index, word in _depths(words):
        if depth == 0 and word == "=":
            return " ".join(words[index + 1 :])
        if depth == 1 and word == "{":
            return " ".join(words[index:])
    return ""


def function_body(text: str) -> str:
    """The body of the function with whose declaration the text begins; "" for a declaration."""
    depth, begin = 0, -1
    for match in _TOKEN.finditer(text):
        word = match["token"] or ""
        if begin < 0 and depth == 0 and word in (";", "="):
            return ""
        if begin < 0 and depth == 0 and word == "{":
            begin = match.start()
        depth += (word in _OPENING) - (word in _CLOSING)
        if begin >= 0 and depth == 0:
            return text[begin : match.end()]
    return ""


def digest(text: str) -> str:
    """A short name for the tokens; "" for none."""
    words = tokens(text)
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12] if words else ""


def _without_comments(text: str) -> str:
    return "".join(
        " " if match["skip"] and not match["skip"].isspace() else match[0]
        for match in _TOKEN.finditer(text)
    )


def _body_starts(plain: str) -> int:
    """Where the body of a function or class begins: a brace, or the colon of initializers."""
    depth, before = 0, ""
    for match in _TOKEN.finditer(plain):
        word = match["token"] or ""
        depth += (word in _ROUND_OPENING) - (word in _ROUND_CLOSING)
        if depth == 0 and (word == "{" or (word == ":" and before == ")")):
            return match.start()
        before = word or before
    return len(plain)


def _depths(words: list[str]) -> Iterator[tuple[int, int, str]]:
    depth = 0
    for index, word in enumerate(words):
        depth += (word in _OPENING) - (word in _CLOSING)
        yield depth, index, word
