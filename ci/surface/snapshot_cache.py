# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots that were taken before, by what they were taken of and with."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ci import output
from ci.errors import CiError
from ci.surface import snapshot_file
from ci.surface.catalogue import Catalogue
from ci.surface.model import Snapshot
from ci.torch_tree import TorchTree

KEPT = 24  # snapshots, a few MB each

_HERE = Path(__file__).parent
_CODE = (  # that decides what is in a snapshot
    *sorted((_HERE / "extract").rglob("*.py")),
    *(_HERE / name for name in ("catalogue.py", "model.py", "snapshot.py", "snapshot_file.py")),
)
_READ = (".h", ".hpp", ".cuh", ".inc", ".py", ".pyi", ".yaml")


def entry(folder: Path, tree: TorchTree, catalogue: Catalogue) -> Path:
    """Where the snapshot of a tree is kept: a name for the files of the tree and of this tool.

    Files of the tree go by path, size and time of change, which takes a fraction of a second.
    """
    key = hashlib.sha256()
    for word in (tree.version, tree.git_version, tree.libraries is not None, sys.version_info):
        key.update(f"{word}\0".encode())
    key.update(repr(catalogue).encode())
    for path in _CODE:
        key.update(path.read_bytes())
    for name, size, changed in sorted(_files(tree)):
        key.update(f"{name}\0{size}\0{changed}\0".encode())
    return folder / "snapshots" / f"{tree.version}-{key.hexdigest()[:24]}.json"


def get(path: Path) -> Snapshot | None:
    """The snapshot kept there; None for none, and for one that is damaged."""
    try:
        checksum, _, text = path.read_bytes().partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != checksum:
            return None
        return snapshot_file.loads(text.decode(), str(path))
    except (OSError, CiError):
        return None


def put(path: Path, snapshot: Snapshot, progress: Callable[[str], None]) -> None:
    """Keep a snapshot. Two writers write the same; a folder that refuses costs only time."""
    text = snapshot_file.dumps(snapshot).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write(path, hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
        _forget_oldest(path.parent)
    except (OSError, CiError) as error:
        progress(f"the snapshot is not kept for the next time: {error}")


def _forget_oldest(folder: Path) -> None:
    kept = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in kept[KEPT:]:
        path.unlink(missing_ok=True)


def _files(tree: TorchTree) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change of each file that an extractor may read."""
    folders = [tree.root / "torch", tree.root / "torchgen"]
    folders += [f for f in tree.include if not f.is_relative_to(tree.root)]
    for folder in folders:
        for name, status in _walk(str(folder)):
            yield name.removeprefix(str(tree.root)), status.st_size, status.st_mtime_ns
    for library in sorted(tree.libraries.glob("*.so") if tree.libraries else ()):
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
