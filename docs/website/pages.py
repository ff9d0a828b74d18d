# SPDX-License-Identifier: BSD-3-Clause
"""Lays out what Sphinx reads: the documents at their paths in the repository, and generated pages.

    python docs/website/pages.py DIRECTORY

The root page is README.md with the navigation below it. A page keeps its modification time, so that
Sphinx reads again only what changed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import torch_puone  # noqa: F401 (registers torch.puone)

sys.path.insert(0, str(Path(__file__).parents[1]))
from website import headers, python, requirements

ROOT = Path(__file__).resolve().parents[2]
#: The documents of the site; pictures that they show are laid out beside them.
DOCUMENTS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "ci/README.md",
    "conformance/README.md",
    "csrc/**/README.md",
    "docs/**/*.md",
    "docs/**/*.png",
    "docs/**/*.svg",
    "hal_conformance/README.md",
    "test/**/README.md",
)
NAVIGATION = ROOT / "docs" / "website" / "navigation.md"


def documents() -> Iterator[Path]:
    """The files of DOCUMENTS, relative to the repository."""
    for pattern in DOCUMENTS:
        for file in sorted(ROOT.glob(pattern)):
            if file != NAVIGATION and "node_modules" not in file.parts:
                yield file.relative_to(ROOT)


def lay_out(directory: Path) -> None:
    """Make `directory` what Sphinx reads: nothing else stays in it."""
    kept = {directory / "index.md"}
    for name in documents():
        kept.add(directory / name)
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, directory / name)
    _write(directory / "index.md", (ROOT / "README.md").read_text() + NAVIGATION.read_text())
    for page, text in (*requirements.pages(), *python.pages(), *headers.pages()):
        kept.add(directory / page)
        _write(directory / page, text)
    for file in directory.rglob("*"):
        if file.is_file() and file not in kept:
            file.unlink()


def _write(file: Path, text: str) -> None:
    """Leave the file alone if it has this text."""
    if not file.is_file() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
