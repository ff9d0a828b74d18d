# SPDX-License-Identifier: BSD-3-Clause
"""Which code makes the dashboard: the key of what is kept between two builds."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from torch_conformance.results import source

ROOT = Path(__file__).parents[1]
#: Packages of the tools whose other files, templates and scripts and styles, are in pages, too.
WITH_DATA = ("dashboard", "results")
#: Libraries that make pages or read the store.
LIBRARIES = ("Jinja2", "MarkupSafe", "duckdb", "msgspec")


@functools.cache
def digest() -> str:
    """A digest of the suite, of all modules of the tools, and of the libraries that make pages.

    It names no module: an import that is new somewhere cannot be forgotten here.
    """
    made = hashlib.sha256(source.digest().encode())
    for library in LIBRARIES:
        made.update(f"{library} {metadata.version(library)}\n".encode())
    for file in sorted(set(files())):
        made.update(file.relative_to(ROOT).as_posix().encode() + b"\n" + file.read_bytes())
    return made.hexdigest()


def files() -> Iterator[Path]:
    """The files of the digest."""
    yield from ROOT.rglob("*.py")
    for package in WITH_DATA:
        for file in (ROOT / package).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file
