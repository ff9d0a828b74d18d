# SPDX-License-Identifier: BSD-3-Clause
"""Which files of a torch are read, and a new tree made of links to them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch_backend_ci.errors import CiError

# Of a wheel, only this is ever unpacked or linked: a tenth of its size.
_READ = re.compile(
    r"torch/include/.+"
    r"|torch/(?:.+/)?[^/]+\.pyi?"
    r"|torchgen/.+"
    r"|torch-[^/]+\.dist-info/METADATA"
)
# Directories of an installed torch without any of these files.
_SKIPPED = {"torch/lib", "torch/bin", "torch/share", "torch/test"}

Change = bytes | Path | None  # new contents, a file that has them, or: the file is gone


def is_read(path: str) -> bool:
    """True if an extractor may want this file of a wheel."""
    return _READ.fullmatch(path) is not None and "__pycache__" not in path


def files(root: Path) -> Iterator[str]:
    """All files of the tree that are read, relative to it, in no particular order; a directory that
    is a link may lead anywhere, and round in circles: nothing below it is one of the tree's."""
    tops = (entry.name for entry in os.scandir(root))
    pending = [t for t in tops if t in {"torch", "torchgen"} or t.endswith(".dist-info")]
    while pending:
        folder = pending.pop()
        for entry in os.scandir(root / folder):
            path = f"{folder}/{entry.name}"
            if entry.is_file():
                if is_read(path):
                    yield path
            elif entry.is_dir(follow_symlinks=False) and path not in _SKIPPED:
                pending.append(path)


def link_tree(root: Path, changes: Mapping[str, Change], into: Path) -> None:
    """Fill the empty directory `into` with links to the files of `root`, but for the `changes`.

    All directories are real and all links lead to files, so no file that is made below `into` lands
    in the original; nobody opens one that is there for writing.
    """
    made: set[str] = set()
    original, copy = os.path.realpath(root), os.fspath(into)  # Path is slow, and there are 12,000
    for path in files(root):
        if path not in changes:
            _folder_of(into, path, made)
            _link(f"{original}/{path}", f"{copy}/{path}")
    for path, change in changes.items():
        if change is not None:
            _folder_of(into, path, made)
            _write(into / path, change)


def _folder_of(into: Path, path: str, made: set[str]) -> None:
    """Make the directories above `path`, each a real one."""
    folder, _, name = path.rpartition("/")
    if folder in made and name not in {"", ".", ".."}:
        return
    if any(part in {"", ".", ".."} for part in path.split("/")):
        raise CiError(f"{path!r} leads out of the tree")
    try:
        (into / folder).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise CiError(f"{path}: there is a file in the place of its directory") from error
    made.add(folder)


def _link(file: str, link: str) -> None:
    """A hard link where that is possible: on some disks a symbolic one takes 50 times as long."""
    if os.path.islink(file):
        os.symlink(os.path.realpath(file), link)
        return
    try:
        os.link(file, link)
    except OSError:  # another disk, or another's file
        os.symlink(file, link)


def _write(path: Path, change: bytes | Path) -> None:
    if isinstance(change, Path):
        _link(os.path.realpath(change), os.fspath(path))
        return
    with open(path, "xb") as file:  # never follows a link that is there already
        file.write(change)
