# SPDX-License-Identifier: BSD-3-Clause
"""The Python files that the commands `--report` and `--fix` read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def python_files(paths: Iterable[str]) -> Iterator[Path]:
    """Files as they are; of directories all `*.py` below, without hidden directories, sorted.

    FileNotFoundError if there is no such path.
    """
    for name in paths:
        path = Path(name)
        if not path.exists():
            raise FileNotFoundError(f"{name}: there is no such file or directory")
        yield from _below(path) if path.is_dir() else [path]


def _below(directory: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        yield from (Path(parent) / name for name in sorted(files) if name.endswith(".py"))
