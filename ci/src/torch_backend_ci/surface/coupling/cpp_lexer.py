# SPDX-License-Identifier: BSD-3-Clause
"""C and C++ split into tokens: enough to tell code from comments, text and directives.

Comments and white space give nothing. A qualified name (`at::cuda::getCurrentCUDAStream`) is one
token, because it names one thing. Nothing is expanded and no branch is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
    """One token. `directive` is the name of the preprocessor directive it belongs to, if any."""

    kind: str  # "name", "string", "include", "directive", "other"
    text: str  # of a string, what is between the quotes; of an include, the path
    line: int  # from 1, where it begins
    directive: str = ""


# The order matters: a comment before a slash, a raw string before a name.
_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\f\v]|\\\r?\n)+)
  | (?P<newline>\n)
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\"]{0,16})\((?P<rawbody>.*?)(?:\)(?P=mark)"|\Z))
  | (?:u8|[uUL])?"(?P<string>(?:\\.|[^"\\\n])*)"
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<include>\#[ \t]*(?:include|import)[ \t]*(?:<(?P<angle>[^>\n]+)>|"(?P<quoted>[^"\n]+)"))
  | (?P<directive>\#[ \t]*(?P<word>[A-Za-z_]+)?)
  | (?P<name>[^\W\d]\w*(?:(?:::[ \t]*|[ \t]+::[ \t]+)[^\W\d]\w*)*)  # `API ::std::x` is two
  | (?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a file; any text has some, and none of it makes this fail."""
    line, directive, fresh = 1, "", True
    for match in _TOKEN.finditer(text):
        kind, start = match.lastgroup, line
        whole = match[0]
        line += whole.count("\n")
        if kind == "newline":
            directive, fresh = "", True
        elif kind in ("mark", "rawbody", "raw"):
            yield Token("string", match["rawbody"], start, directive)
        elif kind == "string":
            yield Token("string", match["string"], start, directive)
        elif kind in ("angle", "quoted", "include"):
            if fresh:
                yield Token("include", match["angle"] or match["quoted"], start, "include")
        elif kind in ("word", "directive"):
            if fresh:
                directive = match["word"] or ""
                yield Token("directive", directive, start, directive)
        elif kind == "name":
            name = whole if whole.isidentifier() else re.sub(r"\s", "", whole)
            yield Token("name", name, start, directive)
        elif kind in ("number", "char", "other"):
            yield Token("other", whole, start, directive)
        fresh = fresh and kind in ("space", "comment", "newline")
