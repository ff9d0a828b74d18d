# SPDX-License-Identifier: BSD-3-Clause
"""Apply the edits of places to a file: only their characters change, and the file as one whole."""

from __future__ import annotations

import difflib
import io
import os
import re
import tempfile
import tokenize
from collections.abc import Iterable
from pathlib import Path

from .places import Edit, Place, Position


def fixed(text: str, places: Iterable[Place]) -> str:
    """The text with all edits made. SyntaxError if the result is not Python: then keep the text."""
    starts = _line_starts(text)
    edits = sorted({edit for place in places for edit in place.edits}, key=_order, reverse=True)
    for edit in edits:
        start, end = _offset(starts, edit.start), _offset(starts, edit.end)
        text = text[:start] + edit.text + text[end:]
    compile(text, "the result", "exec", dont_inherit=True)
    return text


def _order(edit: Edit) -> tuple[Position, Position]:
    return edit.start, edit.end


def _line_starts(text: str) -> list[int]:
    """Where each line begins. Lines end as in Python sources; str.splitlines knows other ends."""
    return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]


def _offset(starts: list[int], position: Position) -> int:
    return starts[position.line - 1] + position.column - 1


def encoded(source: bytes, text: str) -> bytes:
    """The text in the encoding of the file that it was read from."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return text.encode(encoding)


def diff(path: str, before: str, after: str) -> str:
    """A unified diff, for a person and for `patch`."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), path, path
    )
    # A last line without its end must not swallow the line behind it.
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def write(path: Path, content: bytes) -> None:
    """Replace a file in one step: it has its old content or the new one, never half of it.

    Its permissions stay; a symbolic link stays one, and the file behind it is replaced. OSError if
    the directory cannot be written to.
    """
    target = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
