# SPDX-License-Identifier: BSD-3-Clause
"""Which suite exactly a run was made with: its commit where known, and a digest of its files."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from pathlib import Path

from torch_conformance import PACKAGE
from torch_conformance.results.report import File

KINDS = frozenset({".py", ".yaml", ".json"})
# Descriptors are what vendors add; a further one does not make another suite.
APART = frozenset({"backends", "__pycache__", "build"})


@functools.cache
def digest() -> str:
    """A fingerprint of the suite's code and data, the same for a checkout and an installation."""
    total = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*")):
        path = file.relative_to(PACKAGE)
        if file.suffix in KINDS and APART.isdisjoint(path.parts):
            total.update(f"{path.as_posix()}\0{_sha256(file)}\n".encode())
    return total.hexdigest()


@functools.cache
def commit() -> str | None:
    """The commit of the checkout, with ``-dirty`` where files of the suite differ; None if there is
    none. What else differs in the checkout is not the suite: a pin of the day, a backend at work.
    """
    if not (PACKAGE.parents[2] / ".git").exists():  # conformance/src/torch_conformance
        return None
    found = _git("rev-parse", "HEAD")
    if found is None or found.returncode != 0:
        return None
    changed = _git("diff", "--quiet", "HEAD", "--", ".")
    clean = changed is not None and changed.returncode == 0
    return found.stdout.strip() + ("" if clean else "-dirty")


def _git(*words: str) -> subprocess.CompletedProcess[str] | None:
    """None where git does not answer."""
    try:
        return subprocess.run(
            ["git", *words], cwd=PACKAGE, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def fingerprint(file: Path | None) -> File | None:
    """Name and digest of a file that took part in a run; one that is to be created took no part."""
    if file is None or not file.exists():
        return None
    return File(file=file.name, sha256=_sha256(file))


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
