# SPDX-License-Identifier: BSD-3-Clause
"""What a message says: the line that says what happened, without what is different each time."""

from __future__ import annotations

import re

#: What follows in a longer line is not read.
MAX_LINE = 4000

_REAL = r"(?:\d{1,3}(?:[,_]\d{3})+|\d+\.?\d*(?:e[-+]?\d+)?|inf(?:inity)?|nan)"
_UNIT = r"(?:\s?(?:(?:[mnuµ]?s|[kKMGT]?i?B)\b|%))?"
# Digits inside a word, as in float32, are a part of its name; a status says how a process ended.
_BEFORE = r"(?<!status )(?<![\w.])"
_VALUES = (
    # Colours of a terminal.
    (re.compile(r"\x1b\[[\d;]*[A-Za-z]"), ""),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "N"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?\b"), "N"),
    (re.compile(r"0x[0-9a-fA-F]+"), "0x.."),
    # Eight hexadecimal digits or more are an address, a handle or a hash.
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b", re.IGNORECASE), "N"),
    (
        re.compile(
            rf"\([-+]?{_REAL}[-+]{_REAL}j\)|{_BEFORE}[-+]?(?:{_REAL}[-+])?{_REAL}j\b", re.IGNORECASE
        ),
        "N",
    ),
    (re.compile(rf"{_BEFORE}\d+(?:x\d+)+\b"), "N"),
    (re.compile(rf"{_BEFORE}[-+]?(?i:{_REAL})(?:{_UNIT}(?<=[sB%])|\b)"), "N"),
    # The number of one of many, as in worker_3.
    (re.compile(r"(?<=[a-z])_\d+\b"), "_N"),
    # The directory of a file, and names that Python makes up for temporary ones.
    (re.compile(r"(?<![\w.])(?:/[^\s/:'\"]+)+/(?=[^\s/])"), ""),
    (re.compile(r"\btmp[a-z0-9_]{8}\b"), "tmp.."),
)
# A list of anything or a tuple of values, with what is inside of it replaced already.
_LIST = re.compile(r"\[[^\[\]]*\]|\([-N\0, ]+\)")
# One that the end of a long line cuts.
_CUT = re.compile(r"[\[(][-N\0, ]*\.?$")
_NAMES = (
    (re.compile(r"(?<!\w)'[^']*'|\"[^\"]*\"|`[^`]*`"), "'..'"),
    (re.compile(r"\b\w+::\w+(\.\w+)*"), "..::.."),
    (re.compile(r"\b(torch\.)?(complex|b?float|u?int)\d+(_\w+)?\b|\btorch\.bool\b"), "dtype"),
)
# The frames of a traceback; the first line behind them that is not indented is the exception.
_FRAME = re.compile(r'^ +File ".*", line \d+')
_PLAIN = re.compile(r"^[^\s^]")
# How a process ended, before what it has written.
_ENDED = re.compile(r"\bended with (?:status -?\d+|signal \w+)")
# What native code says of its end: C++, assert(), the C library, sanitizers, the interpreter.
_NATIVE = re.compile(
    r"^\s*(?:what\(\):\s*(?P<what>.*\S)|(?P<line>"
    r"Fatal Python error: .*|.*\bAssertion .* failed.*|.*\w+Sanitizer: .*|"
    r"(?:free|malloc|realloc)\(\): .*|double free.*|corrupted .*))"
)


def headline(message: str) -> str:
    """The line that says what happened: of a traceback, the exception at its end."""
    lines = [line for line in message.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    ended = _ENDED.search(first)
    root = (_of_native_code(lines) if ended else None) or _of_traceback(lines)
    if root is None:
        return first
    return f"{ended[0]}: {root}" if ended else root


def is_end_of_process(message: str) -> bool:
    """Whether it says how a process ended, and why."""
    first = message.lstrip().partition("\n")[0]
    return _ENDED.search(first) is not None and headline(message) != first


def without_values(line: str) -> str:
    """A line without numbers, addresses, times, directories and lists."""
    line, is_cut = line[:MAX_LINE], len(line) > MAX_LINE
    for pattern, replacement in _VALUES:
        line = pattern.sub(replacement, line)
    while (shorter := _LIST.sub("\0", line)) != line:
        line = shorter
    if is_cut:
        line = _CUT.sub("\0", line)
    return line.replace("\0", "[..]")


def without_names(line: str) -> str:
    """A line without operators, data types and whatever is quoted."""
    for pattern, replacement in _NAMES:
        line = pattern.sub(replacement, line)
    return line


def _of_traceback(lines: list[str]) -> str | None:
    """The exception at the end of the last traceback, which may be indented as a whole."""
    frames = [place for place, line in enumerate(lines) if _FRAME.match(line)]
    if not frames:
        return None
    margin = _indentation(lines[frames[-1]]) - 2
    below = (line[margin:] for line in lines[frames[-1] :] if _indentation(line) <= margin)
    return next(filter(_PLAIN.match, below), None)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _of_native_code(lines: list[str]) -> str | None:
    found = next(filter(None, map(_NATIVE.match, lines[1:])), None)
    return found and (found["what"] or found["line"])
