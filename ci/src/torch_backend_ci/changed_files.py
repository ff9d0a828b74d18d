# SPDX-License-Identifier: BSD-3-Clause
"""Which files a PR changes, read from what git and GitHub say.

Taken are plain lines, names that end in NUL (`git diff --name-only -z`), a JSON list of names, and
GitHub's REST objects (`filename`, `previous_filename`, `status`), also page by page. What nobody
would send in earnest is refused; odd names are not: git allows every byte but NUL.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_backend_ci.errors import CiError

REST_LIMIT = 3000  # files, of GitHub's list of a PR's changed files

_MAX_INPUT = 256 << 20  # bytes; REST objects carry their patch
_MAX_NAME = 4096  # characters; PATH_MAX


@dataclass(frozen=True, order=True)
class ChangedFile:
    """A file by its name in the repository, and the one it had before the PR renamed it."""

    name: str
    previous: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Both names, the new one first."""
        return (self.name,) if self.previous is None else (self.name, self.previous)


def read(where: str) -> tuple[ChangedFile, ...]:
    """The files listed in a file, or on standard input (`-`)."""
    shown = "standard input" if where == "-" else where
    try:
        data = _bytes(where)
    except OSError as error:
        raise CiError(f"{shown}: {error.strerror}") from error
    if len(data) > _MAX_INPUT:
        raise CiError(f"{shown} has more than {_MAX_INPUT >> 20} MiB: that is not a list of files")
    try:
        return parse(data)
    except CiError as error:
        raise CiError(f"{shown}: {error}") from error


def parse(data: bytes) -> tuple[ChangedFile, ...]:
    """The files in any of the forms, each once, in the order they are given."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CiError("is UTF-16; give it as UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data:
        found: Iterable[ChangedFile] = map(_plain, data.split(b"\0"))
    elif data.lstrip().startswith((b"[", b"{")):
        found = _json(data)
    else:
        found = _lines(data)
    return tuple(dict.fromkeys(file for file in found if file.name))


def from_rest(entries: Iterable[Any]) -> tuple[ChangedFile, ...]:
    """The files of GitHub's objects, each once."""
    return tuple(dict.fromkeys(map(_entry, entries)))


def _bytes(where: str) -> bytes:
    if where == "-":
        return sys.stdin.buffer.read(_MAX_INPUT + 1)
    with Path(where).open("rb") as stream:
        return stream.read(_MAX_INPUT + 1)


def _lines(data: bytes) -> Iterator[ChangedFile]:
    for line in data.split(b"\n"):
        if line.startswith(b'"'):
            raise CiError(f"git has quoted the name {line[:80]!r}; ask it with -z")
        yield _plain(line.removesuffix(b"\r"))


def _plain(name: bytes) -> ChangedFile:
    return ChangedFile(_checked(name.decode("utf-8", "surrogateescape")) if name else "")


def _json(data: bytes) -> Iterator[ChangedFile]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CiError(f"is not JSON ({error}), although it begins like JSON") from error
    if not isinstance(document, list):
        raise CiError("the JSON must be a list of names, or of GitHub's objects of changed files")
    for entry in document:
        yield from map(_entry, entry if isinstance(entry, list) else [entry])


def _entry(entry: Any) -> ChangedFile:
    """A name, or an object of `GET /repos/{owner}/{repo}/pulls/{number}/files`."""
    if isinstance(entry, str):
        return ChangedFile(_checked(entry))
    if not isinstance(entry, dict) or not isinstance(entry.get("filename"), str):
        raise CiError(f"neither a name nor an object with a filename: {_shortened(entry)}")
    previous = entry.get("previous_filename")
    if previous is not None and not isinstance(previous, str):
        raise CiError(f"previous_filename must be text: {_shortened(entry)}")
    name = _checked(entry["filename"])
    if previous is None or entry.get("status") == "copied":  # the original stays as it was
        return ChangedFile(name)
    return ChangedFile(name, _checked(previous))


def _checked(name: str) -> str:
    """The name relative to the repository's root, without `./` before it."""
    if len(name) > _MAX_NAME:
        raise CiError(f"a name of {len(name)} characters is not a file name: {name[:60]!r}...")
    relative = name.removeprefix("./")
    if "\0" in name or not {"", ".", ".."}.isdisjoint(relative.split("/")):
        raise CiError(f"{name!r} is not the path of a file, relative to the repository's root")
    return relative


def _shortened(entry: Any) -> str:
    text = repr(entry)
    return text if len(text) <= 80 else text[:77] + "..."
