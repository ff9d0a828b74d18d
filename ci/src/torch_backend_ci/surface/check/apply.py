# SPDX-License-Identifier: BSD-3-Clause
"""Apply the hunks of one file: as `git apply` does, at an offset if need be, never inexactly."""

from __future__ import annotations

from torch_backend_ci.surface.check.patch import FilePatch, Hunk

# How far from its place a hunk is looked for, in lines.
REACH = 2000


class Conflict(Exception):
    """The patch does not fit; the text says where."""


def applied(content: bytes, file: FilePatch) -> bytes:
    """The contents after the patch."""
    lines = _lines(content)
    windows = file.windows and lines[:1] != [] and lines[0].endswith(b"\r\n")
    result: list[bytes] = []
    done = offset = 0
    for number, hunk in enumerate(file.hunks, 1):
        old, new = (_ends(side, windows) for side in (hunk.old, hunk.new))
        at = _place(lines, hunk, old, done, offset)
        if at is None:
            raise Conflict(_why(lines, new, number))
        result += lines[done:at]
        result += new
        done = at + len(old)
        offset = at - _index(hunk)
    return b"".join(result + lines[done:])


def _lines(content: bytes) -> list[bytes]:
    """Split at LF only: a lone CR does not end a line."""
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _ends(side: list[bytes], windows: bool) -> list[bytes]:
    return [line.replace(b"\n", b"\r\n") for line in side] if windows else side


def _index(hunk: Hunk) -> int:
    """Where the hunk says it starts, from 0; one without old lines names the line before it."""
    return hunk.start - 1 if hunk.old else hunk.start


def _place(lines: list[bytes], hunk: Hunk, old: list[bytes], done: int, offset: int) -> int | None:
    """Where the old lines stand: the place nearest to the expected one, after what is done."""
    expected = _index(hunk) + offset
    if not old:  # nothing says where: only an empty file is certain
        return 0 if not lines else None
    for distance in range(REACH):
        for at in {expected - distance, expected + distance}:
            if at >= done and lines[at : at + len(old)] == old:
                return at
    return None


def _why(lines: list[bytes], new: list[bytes], number: int) -> str:
    starts = range(len(lines) - len(new) + 1)
    if new and any(lines[at] == new[0] and lines[at : at + len(new)] == new for at in starts):
        return f"hunk {number} is in it already"
    return f"hunk {number} does not fit"
