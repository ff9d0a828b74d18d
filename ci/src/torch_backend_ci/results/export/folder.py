# SPDX-License-Identifier: BSD-3-Clause
"""A directory that is there with all of its files, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch_backend_ci.errors import CiError


@contextmanager
def new(path: Path) -> Iterator[Path]:
    """A directory to fill, which is at `path` when nothing went wrong. CiError if that is taken."""
    path = Path(os.path.abspath(path))
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise CiError(f"{path} exists: remove it, or choose a new directory")
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        part.mkdir(parents=True)
        yield part
        for file in sorted(part.iterdir()):
            _sync(file)
        _sync(part)
        os.rename(part, path)
        _sync(path.parent)
    except OSError as error:
        raise CiError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
