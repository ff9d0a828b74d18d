# SPDX-License-Identifier: BSD-3-Clause
r"""Globs of paths, with the meaning that npm's minimatch gives them: what GitHub people expect.

`*` and `?` stay within one directory, `**` as a whole directory crosses directories, a leading dot
is a character like any other, case counts, `{a,b}` are alternatives, `[a-z]` and `[!a-z]` are
classes, `\` takes a character as it is. Globs in which wcmatch and minimatch differ, or which are
not what they look like, are refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import bracex
from wcmatch import glob as wcglob

from torch_backend_ci.errors import CiError

_FLAGS = wcglob.CASE | wcglob.DOTGLOB | wcglob.GLOBSTAR | wcglob.FORCEUNIX
_MAX_ALTERNATIVES = 1000  # of the braces of one glob

_CLASS = r"\[[!^]?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9_.])+\]"
_ESCAPED = r"\\[*?\[\]{}]"
_ORDINARY = r"[^\\\[\]]"
_WELL_FORMED = re.compile(rf"(?:{_CLASS}|{_ESCAPED}|{_ORDINARY})*", re.DOTALL)
_LITERAL = re.compile(rf"{_CLASS}|{_ESCAPED}")  # in which braces and commas mean nothing

# What a glob must not have, once its braces are written out.
_REFUSED = (
    (re.compile(r"^\Z"), "is empty"),
    (re.compile(r"^[#!]"), "begins with # or !!"),
    (re.compile(r"[@?+*!]\("), "has an extended glob (write alternatives as {a,b})"),
    (re.compile(r"^/|/\Z|//"), "has an empty directory name (no / at an end, none doubled)"),
    (re.compile(r"(?:^|/)\.\.?(?:/|\Z)"), "has . or .. as a directory"),
    (re.compile(r"(?:^|/)[*?][^/]*\\"), "has a \\ in a name that begins with * or ?"),
    (re.compile(r"\*\*[^/]|[^/]\*\*"), "has ** inside a name, where it is no more than *"),
)


@dataclass(frozen=True)
class Glob:
    """One glob as it is written, and what it matches."""

    text: str
    negative: bool  # it begins with `!`
    pattern: re.Pattern[str]  # of the text without its `!`

    def names(self, path: str) -> bool:
        """Whether the glob, without its `!`, matches the path."""
        return self.pattern.fullmatch(_units(path)) is not None


def compile_glob(text: str) -> Glob:
    """Read one glob; CiError says what is wrong with it."""
    positive = text.removeprefix("!")
    patterns = [_translate(text, one) for one in _alternatives(text, positive)]
    return Glob(text, positive != text, re.compile("|".join(f"(?:{p})" for p in patterns)))


def match(globs: Iterable[Glob], path: str) -> Glob | None:
    """The glob by which a list matches the path, if it does.

    As in the `paths` of a GitHub workflow the order counts: `!glob` takes away what globs before it
    matched, and a glob after it can give that back.
    """
    by = None
    for glob in globs:
        if (by is None) is not glob.negative and glob.names(path):
            by = None if glob.negative else glob
    return by


def _alternatives(text: str, positive: str) -> Sequence[str]:
    """The glob with its braces written out."""
    if not _WELL_FORMED.fullmatch(positive):
        raise _refusal(
            text, "has a stray [ ] or \\, or a class of other characters than a-z 0-9 . _"
        )
    if backwards := [r for c in re.findall(_CLASS, positive) for r in _ranges(c) if r[0] > r[2]]:
        raise _refusal(text, f"has a range that runs backwards: {backwards[0]}")
    if not _braces_are_lists(positive):
        raise _refusal(text, "has braces that are not a list {a,b} (escape them)")
    try:
        return bracex.expand(positive, keep_escapes=True, limit=_MAX_ALTERNATIVES) or [positive]
    except bracex.ExpansionLimitException as error:
        raise _refusal(text, f"has more than {_MAX_ALTERNATIVES} alternatives") from error


def _ranges(character_class: str) -> list[str]:
    return re.findall(r"\w-\w", character_class)


def _braces_are_lists(positive: str) -> bool:
    """Whether every brace has its counterpart, and a comma between: not {a}, {1..9}, ${a,b}."""
    rest = _LITERAL.sub("x", positive)
    innermost = re.compile(r"(?<!\$)\{[^{},]*(?:,[^{},]*)+\}")
    while innermost.search(rest):
        rest = innermost.sub("x", rest)
    return not re.search(r"[{}]", rest)


def _translate(text: str, alternative: str) -> str:
    """One alternative as a regular expression."""
    for refused, why in _REFUSED:
        if refused.search(alternative):
            raise _refusal(text, why)
    (pattern,), _ = wcglob.translate(_units(alternative), flags=_FLAGS)
    return str(pattern).replace("(?:$|", r"(?:\Z|")  # $ would also stand before a last newline


def _refusal(text: str, why: str) -> CiError:
    return CiError(f"the glob {text!r} {why}")


@functools.lru_cache(maxsize=8192)
def _units(text: str) -> str:
    """The text in UTF-16 code units, which is what `?` counts in JavaScript."""
    if text.isascii():
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(raw[i] | raw[i + 1] << 8) for i in range(0, len(raw), 2))
