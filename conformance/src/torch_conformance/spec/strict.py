# SPDX-License-Identifier: BSD-3-Clause
"""JSON without the liberties that Python's reader takes, from a source that is not trusted.

No NaN or infinity, no key twice, no number that a double or 64 bits cannot hold, no half
characters, bounded size and depth: what one reader takes for a pass another one must not take for
a failure.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

MAX_BYTES = 64 << 20
MAX_DEPTH = 24
# Digits of an integer of 64 bits with its sign.
MAX_DIGITS = 20


class Malformed(Exception):
    """Bytes that are not the JSON they should be; the text says what and where."""


def read(file: Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a regular file of bounded size."""
    try:
        if not file.is_file():
            raise Malformed("no such file" if not file.exists() else "not a file")
        if file.stat().st_size > limit:
            raise Malformed(f"larger than {limit >> 20} MiB")
        return file.read_bytes()
    except (OSError, ValueError) as error:
        # Also a path that no file system takes, such as one with a NUL.
        raise Malformed(getattr(error, "strerror", None) or str(error)) from None


def loads(data: bytes) -> Any:
    """The value of the JSON text `data`."""
    if not data.strip():
        raise Malformed("empty")
    if len(data) > MAX_BYTES:
        raise Malformed(f"larger than {MAX_BYTES >> 20} MiB")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error}") from None
    except RecursionError:
        raise Malformed(f"nested deeper than {MAX_DEPTH}") from None
    _verify_depth(value)
    if b"\\u" in data:  # UTF-8 has no half characters: only escapes make them
        _verify_texts(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Malformed(f"key {twice[:80]!r} stands twice in one object")
    return found


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise Malformed(f"number {text[:MAX_DIGITS]}... is too large")
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Malformed(f"number {text[:MAX_DIGITS]} is too large")
    return number


def _constant(text: str) -> NoReturn:
    raise Malformed(f"{text} is not a number of JSON")


def _verify_depth(value: Any) -> None:
    """A loop and not a recursion, for the depth is what is in doubt."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = [item for item in below if isinstance(item, (dict, list))]
    raise Malformed(f"nested deeper than {MAX_DEPTH}")


def _verify_texts(value: Any) -> None:
    if isinstance(value, str):
        _verify_text(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _verify_text(key)
            _verify_texts(item)
    elif isinstance(value, list):
        for item in value:
            _verify_texts(item)


def _verify_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Malformed(f"half a character in {text[:40]!r}") from None
