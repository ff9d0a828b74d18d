# SPDX-License-Identifier: BSD-3-Clause
"""Results that are kept for the next time, in files named after all that they depend on."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from torch_backend_ci import output
from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree import TorchTree

_READ = (".h", ".hpp", ".cuh", ".inc", ".py", ".pyi", ".yaml")


def fingerprint(tree: TorchTree, code: Iterable[Path], *words: object) -> str:
    """A name for the files of the tree, those of the code that reads it, and further words.

    Files of the tree go by path, size and time of change, which takes a fraction of a second.
    """
    key = hashlib.sha256()
    for word in (tree.version, tree.git_version, sys.version_info, *words):
        key.update(f"{word}\0".encode())
    for path in code:
        key.update(path.read_bytes())
    for name, size, changed in sorted(_files(tree)):
        key.update(f"{name}\0{size}\0{changed}\0".encode())
    return key.hexdigest()[:24]


def get(path: Path) -> str | None:
    """The text kept there; None for none, and for one that is damaged."""
    try:
        checksum, _, text = path.read_bytes().partition(b"\n")
        whole = hashlib.sha256(text).hexdigest().encode() == checksum
        return text.decode() if whole else None
    except (OSError, UnicodeDecodeError):
        return None


def put(path: Path, text: str, at_most: int, what: str, progress: Callable[[str], None]) -> None:
    """Keep a text, which is `what`, and `at_most` so many in its directory.

    Two writers write the same; a directory that refuses costs only time.
    """
    data = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write(path, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
        _forget_oldest(path.parent, at_most)
    except (OSError, CiError) as error:
        progress(f"{what} is not kept for the next time: {error}")


def _forget_oldest(folder: Path, at_most: int) -> None:
    kept = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in kept[at_most:]:
        path.unlink(missing_ok=True)


def _files(tree: TorchTree) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change of each file that may be read."""
    folders = [tree.root / "torch", tree.root / "torchgen"]
    folders += [f for f in tree.include if not f.is_relative_to(tree.root)]
    for folder in folders:
        for name, status in _walk(str(folder)):
            yield name.removeprefix(str(tree.root)), status.st_size, status.st_mtime_ns
    for library in sorted(tree.libraries.glob("*.*") if tree.libraries else ()):
        status = library.stat()
        yield library.name, status.st_size, status.st_mtime_ns


def _walk(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for found in entries:
        if found.is_dir():
            yield from _walk(found.path)
        elif found.name.endswith(_READ):
            yield found.path, found.stat()
