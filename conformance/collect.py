# SPDX-License-Identifier: BSD-3-Clause
"""pytest nodes of the suite: a file of checks, a backend in it, one check.

The node id of a check is ``<file>::<backend>::<check id>``.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from conformance.backend import AUTOLOAD
from conformance.catalogue import LEVELS, TIERS, Requirement
from conformance.check import REGISTRY, Check
from conformance.opinfo import TOPICS
from conformance.outcome import CannotLoad
from conformance.tolerances import TolerancesError

if TYPE_CHECKING:
    from conformance.suite import Suite

PACKAGE = Path(__file__).resolve().parent
CHAPTERS = PACKAGE / "checks"
OPINFO = PACKAGE / "opinfo"
# Chapters from --checks-dir are imported as modules of a package of this name.
EXTRA = "conformance_extra"
# What -m can select by.
MARKS = (*TIERS, *LEVELS)


def prepare_parent() -> None:
    """Import torch as a parent of forks needs it: one thread, no backend, no device."""
    if "torch" not in sys.modules:
        os.environ[AUTOLOAD] = "0"
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("MKL_NUM_THREADS", "1")
        # The operator database asks for CUDA devices; asking NVML leaves CUDA fit for forks.
        os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    try:
        import torch
    except ImportError as error:
        raise CannotLoad(f"torch cannot be imported: {error}; install the torch to test") from None
    if os.environ.get(AUTOLOAD) != "0" and torch._C._get_privateuse1_backend_name() != (
        "privateuseone"
    ):
        raise CannotLoad(
            f"torch was imported with a backend before the suite started; set {AUTOLOAD}=0"
        )
    os.environ[AUTOLOAD] = "0"
    torch.set_num_threads(1)


def settle_copies(arguments: list[str], pyargs: bool) -> None:
    """Let `--pyargs conformance` mean this copy of the suite, also beside a folder of that name.

    pytest takes the folder of a checkout for the package, and then cannot import both. A folder
    that was asked for as such is refused where another copy is installed.
    """
    for i, argument in enumerate(arguments):
        folder = Path(argument.partition("::")[0])
        if not (folder / "plugin.py").is_file() or not (folder / "opinfo").is_dir():
            continue
        if folder.resolve() == PACKAGE:
            continue
        if not pyargs:
            raise pytest.UsageError(
                f"{folder} is another copy of the suite than the installed one, {PACKAGE}: "
                "run that with --pyargs conformance, or this one with `python -m pytest` from the "
                "folder that has it"
            )
        arguments[i] = str(PACKAGE)


def chapter_files(extra: Path | None) -> list[Path]:
    """The files with checks: the suite's chapters and those of --checks-dir."""
    folders = [CHAPTERS, *([extra] if extra else [])]
    files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
    return [file for file in files if not file.name.startswith("_")]


def topic_files() -> list[Path]:
    """The files of the OpInfo tier."""
    return [OPINFO / f"{topic}.py" for topic in TOPICS]


def import_checks(file: Path) -> list[Check]:
    """Import a chapter and return its checks."""
    if file.parent == OPINFO:
        made: list[Check] = importlib.import_module(f"conformance.opinfo.{file.stem}").checks()
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
    if file.parent == CHAPTERS:
        return importlib.import_module(f"conformance.checks.{file.stem}")
    if EXTRA not in sys.modules:
        package = ModuleType(EXTRA)
        package.__path__ = []
        sys.modules[EXTRA] = package
    folders: list[str] = sys.modules[EXTRA].__path__  # type: ignore[assignment]  # a list, made above
    if str(file.parent) not in folders:
        folders.append(str(file.parent))
    return importlib.import_module(f"{EXTRA}.{file.stem}")


class CheckFile(pytest.File):
    """A source file of checks."""

    suite: Suite

    def collect(self) -> Iterator[pytest.Collector]:
        try:
            checks = [check for check in import_checks(self.path) if self.suite.wants(check)]
        except TolerancesError as error:
            raise self.CollectError(str(error)) from None
        for check in checks:
            unknown = [id for id in check.requirements if id not in self.suite.catalogue]
            if unknown:
                raise self.CollectError(
                    f"{check.file}:{check.line}: {check.id} names requirement {unknown[0]}, "
                    "which no file of requirements/ defines"
                )
        self.suite.available.update(checks)
        self.suite.collected_files.add(self.path.resolve())
        for name in self.suite.backend_names:
            yield BackendChecks.make(self, name, checks)


class BackendChecks(pytest.Collector):
    """The checks of one file, to be run against one backend."""

    checks: Iterable[Check]

    @classmethod
    def make(cls, parent: CheckFile, name: str, checks: Iterable[Check]) -> BackendChecks:
        """A node below a file."""
        node: BackendChecks = cls.from_parent(parent, name=name)
        node.checks = checks
        return node

    def collect(self) -> Iterator[CheckItem]:
        catalogue = self.parent.suite.catalogue  # type: ignore[union-attr]  # of CheckFile
        for check in self.checks:
            yield CheckItem.make(self, check, catalogue)


class CheckItem(pytest.Item):
    """One check against one backend."""

    check: Check

    @classmethod
    def make(
        cls, parent: BackendChecks, check: Check, catalogue: dict[str, Requirement]
    ) -> CheckItem:
        """A node below a backend.

        Requirements, tiers and levels are keywords (-k), the last two also marks (-m).
        """
        node: CheckItem = cls.from_parent(parent, name=check.id)
        node.check = check
        for id in check.requirements:
            node.extra_keyword_matches.update((id, catalogue[id].tier, catalogue[id].level))
            node.add_marker(catalogue[id].tier)
            node.add_marker(catalogue[id].level)
        return node

    @property
    def backend(self) -> str:
        """The name of the backend."""
        assert self.parent is not None
        return self.parent.name

    def runtest(self) -> None:
        raise RuntimeError("checks run through the suite's own runner")

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.check.file, self.check.line - 1, f"{self.backend} {self.check.id}"
