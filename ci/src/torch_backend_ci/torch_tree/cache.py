# SPDX-License-Identifier: BSD-3-Clause
"""A directory of trees that are whole or not there.

A tree is filled under another name and renamed at the end, so one that was interrupted is never
taken for a tree. A lock per tree lets the second process wait for the first one's work.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from torch_backend_ci.errors import CiError


def default_folder() -> Path:
    """Where the user's caches are."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "puone-ci"


def tree(folder: Path, key: str, fill: Callable[[Path], None]) -> Path:
    """The tree `key`, made by `fill(an empty directory)` if it is not there."""
    target = folder / "torch" / key
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent / f".{key}.lock"):
            if not target.is_dir():
                _make(target, fill)
    except OSError as error:
        raise CiError(_unusable(error, target.parent)) from error
    return target


def _make(target: Path, fill: Callable[[Path], None]) -> None:
    for left in target.parent.glob(f".{target.name}.*.part"):  # by one who was killed
        shutil.rmtree(left, ignore_errors=True)
    part = Path(tempfile.mkdtemp(".part", f".{target.name}.", target.parent))
    try:
        fill(part)
        part.chmod(0o755)
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process, however it ends
        yield


def _unusable(error: OSError, folder: Path) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"no space left for a torch (120 MB) in {folder}: free some, or set XDG_CACHE_HOME"
    return (
        f"cannot keep a torch in {folder}: {error.strerror or error}; set XDG_CACHE_HOME to a "
        "folder that can be written"
    )
