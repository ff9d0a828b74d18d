# SPDX-License-Identifier: BSD-3-Clause
"""The files of requirements that people write, read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from packaging.utils import NormalizedName, canonicalize_name


def asked(path: Path) -> Iterator[tuple[NormalizedName, str]]:
    """What a file of ours asks for, with its version, which another file may give."""
    lines = [line.partition(" #")[0].strip() for line in path.read_text().splitlines()]
    files = [line.split()[1] for line in lines if line.startswith(("-r ", "-c "))]
    given = dict(pair for name in files for pair in asked(path.parent / name))
    for line in filter(None, lines):
        if line.startswith("-r "):
            yield from asked(path.parent / line.split()[1])
        elif not line.startswith(("-c ", "#")):
            name, _, version = line.partition("==")
            yield canonicalize_name(name), version or given[canonicalize_name(name)]
