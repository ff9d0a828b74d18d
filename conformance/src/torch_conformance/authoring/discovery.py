# SPDX-License-Identifier: BSD-3-Clause
"""The files of checks: found and imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from torch_conformance import PACKAGE
from torch_conformance.authoring.backend import prepare_parent
from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.spec.topics import TOPICS

CHAPTERS = PACKAGE / "checks"
OPINFO = PACKAGE / "opinfo"
# Chapters from --checks-dir are imported as modules of a package of this name.
EXTRA = "conformance_extra"


def chapter_files(extra: Path | None) -> list[Path]:
    """The files with checks: the suite's chapters and those of --checks-dir.

    A chapter of the suite is a file, or a package of files.
    """
    files = sorted([*CHAPTERS.glob("*.py"), *CHAPTERS.glob("*/*.py")])
    files += sorted(extra.glob("*.py")) if extra else []
    return [file for file in files if not file.name.startswith("_")]


def chapter_of(file: Path) -> str:
    """The chapter that a file of checks belongs to: its package's name, or else its own."""
    in_package = file.parent == OPINFO or file.parent.parent == CHAPTERS
    return file.parent.name if in_package else file.stem


def prefix_of(file: Path) -> str:
    """What the ids of a file's checks begin with."""
    return f"opinfo/{file.stem}:" if file.parent == OPINFO else f"{chapter_of(file)}/"


def topic_files() -> list[Path]:
    """The files of the OpInfo tier."""
    return [OPINFO / f"{topic}.py" for topic in TOPICS]


def import_checks(file: Path) -> list[Check]:
    """Import a chapter and return its checks."""
    if file.parent == OPINFO:
        made: list[Check] = importlib.import_module(
            f"torch_conformance.opinfo.{file.stem}"
        ).checks()
        return made
    _import(file)
    return REGISTRY.from_file(str(file))


def all_checks() -> list[Check]:
    """Every check of the suite, outside of a run of pytest. Takes seconds."""
    if "torch" not in sys.modules:
        prepare_parent()  # Otherwise too late, and nothing is forked from here.
    return [
        check for file in (*chapter_files(None), *topic_files()) for check in import_checks(file)
    ]


def _import(file: Path) -> ModuleType:
    if file.is_relative_to(CHAPTERS):
        parts = file.with_suffix("").relative_to(PACKAGE.parent).parts
        return importlib.import_module(".".join(parts))
    if EXTRA not in sys.modules:
        package = ModuleType(EXTRA)
        package.__path__ = []
        sys.modules[EXTRA] = package
    folders: list[str] = sys.modules[EXTRA].__path__  # type: ignore[assignment]  # a list, made above
    if str(file.parent) not in folders:
        folders.append(str(file.parent))
    return importlib.import_module(f"{EXTRA}.{file.stem}")
