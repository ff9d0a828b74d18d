# SPDX-License-Identifier: BSD-3-Clause
"""pytest nodes of the suite: a file of checks, a backend in it, one check.

The node id of a check is ``<file>::<backend>::<check id>``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import pytest

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.discovery import import_checks
from torch_conformance.authoring.tolerances import TolerancesError
from torch_conformance.judging.judge import Judged
from torch_conformance.spec.catalogue import LEVELS, TIERS, Requirement

if TYPE_CHECKING:
    from torch_conformance.pytest_plugin.suite import Suite

# What -m can select by.
MARKS = (*TIERS, *LEVELS)


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
    requirements: tuple[Requirement, ...]
    """What it verifies."""
    in_process: Callable[[], None] | None = None
    """Runs the check in this process, with --isolate=none."""
    ended: Judged | None = None

    @classmethod
    def make(
        cls, parent: BackendChecks, check: Check, catalogue: dict[str, Requirement]
    ) -> CheckItem:
        """A node below a backend.

        Requirements, tiers and levels are keywords (-k), the last two also marks (-m).
        """
        node: CheckItem = cls.from_parent(parent, name=check.id)
        node.check = check
        node.requirements = tuple(catalogue[id] for id in check.requirements)
        for id in check.requirements:
            node.extra_keyword_matches.update((id, catalogue[id].tier, catalogue[id].level))
            node.add_marker(catalogue[id].tier)
            node.add_marker(catalogue[id].level)
            node.user_properties.append(("requirement", id))
        return node

    @cached_property
    def names(self) -> Mapping[str, Literal[1]]:
        """What -k selects it by, as reports of pytest have it."""
        return dict.fromkeys((*self.keywords, *self.extra_keyword_matches), 1)

    @property
    def backend(self) -> str:
        """The name of the backend."""
        assert self.parent is not None
        return self.parent.name

    def runtest(self) -> None:
        if self.in_process is None:
            raise RuntimeError("checks run in worker processes, except with --isolate=none")
        self.in_process()

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.check.file, self.check.line - 1, f"{self.backend} {self.check.id}"
