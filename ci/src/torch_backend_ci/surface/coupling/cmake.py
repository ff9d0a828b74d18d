# SPDX-License-Identifier: BSD-3-Clause
"""Vendor words inside generic CMake files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_backend_ci.surface.coupling.rules import Hit, Rules

_TOKEN = re.compile(
    r"""
    \#\[(?P<marks>=*)\[.*?(?:\](?P=marks)\]|\Z)      # bracket comment
  | \#[^\n]*                                         # comment
  | (?<!\w)\[(?P<bars>=*)\[.*?(?:\](?P=bars)\]|\Z)   # bracket argument: text
  | "(?P<quoted>(?:\\.|[^"\\])*)"
  | (?P<command>[A-Za-z_]\w*)[ \t]*\(
  | (?P<word>(?:\\.|[^\s()"\#\\])+)
  | (?P<paren>[()])
    """,
    re.VERBOSE | re.DOTALL,
)
_CONDITIONS = frozenset({"if", "elseif", "while", "cmake_dependent_option"})
_ENDS = frozenset({"else", "endif", "endwhile"})  # repeat the condition, by an old habit
_TEXTS = frozenset({"message"})


def hits(file: str, text: str, rules: Rules) -> Iterator[Hit]:
    """The hits of one file: words without white space; the same word once a line."""
    seen = set()
    for command, word, line in _words(text):
        if command in _TEXTS or command in _ENDS or not rules.vendor.names(word):
            continue
        hit = Hit("cmake.condition" if command in _CONDITIONS else "cmake.name", file, line, word)
        if hit not in seen:
            seen.add(hit)
            yield hit


def _words(text: str) -> Iterator[tuple[str, str, int]]:
    """Every command and argument, with the command it belongs to and its line."""
    command, depth, line, position = "", 0, 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if match["command"] and depth == 0:
            command, depth = match["command"].lower(), 1
            yield command, match["command"], line
        elif match["command"]:  # `if(NOT(X))`, `if(A AND (B))`
            depth += 1
            yield command, match["command"], line
        elif match["paren"]:
            depth += 1 if match[0] == "(" else -1
        elif match["word"]:
            yield command, match["word"], line
        elif (quoted := match["quoted"]) and not re.search(r"\s", quoted):
            yield command, quoted, line
