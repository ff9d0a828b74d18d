# SPDX-License-Identifier: BSD-3-Clause
"""Why does it fail? The findings of the change that a failing check has to do with.

Best is a failure that names the declaration (`c10::Allocator::copy_data`, or
`Allocator::copy_data`). Else a finding in the same part of PyTorch is
a possible cause, and is reported as such.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from torch_backend_ci.gate.verdict import Since
from torch_backend_ci.surface.diff import order
from torch_backend_ci.surface.model import Domain, Finding, Severity
from torch_conformance.spec.chapters import chapters

MOST = 3
LONGEST = 20_000  # characters of a message that are looked through
MOST_PARTS = 12
# Rules that can make a check fail; other findings count only if a message names them.
BREAKING = {Severity.COMPILE_BREAK, Severity.SILENT_BREAK, Severity.REBUILD, Severity.SEMANTIC}

_NAME = re.compile(r"\w+(?:(?:::|\.)~?\w+)*")
_SEPARATOR = re.compile(r"::|\.")


class Findings:
    """The findings of a change, to be asked for those that a failure has to do with."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.by_identity: dict[str, Finding] = {}
        self._by_name: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
        self._by_surface: dict[str, list[Finding]] = defaultdict(list)
        for finding in sorted(findings, key=order):
            if finding.severity is Severity.COSMETIC or finding.identity in self.by_identity:
                continue
            self.by_identity[finding.identity] = finding
            for name in _names(finding):
                self._by_name[name].append(finding)
            if finding.severity in BREAKING:
                self._by_surface[finding.surface].append(finding)

    @property
    def breaks(self) -> list[Finding]:
        """Those that keep a backend from compiling: it then has no results at all."""
        return [f for f in self.by_identity.values() if f.severity is Severity.COMPILE_BREAK]

    def since(self, surface: str, said: str) -> tuple[Since, ...]:
        """Those that the failure of a check has to do with, the most likely one first."""
        if named := dict.fromkeys(self._named(said[:LONGEST])):
            return tuple(Since(identity, "name") for identity in named)[:MOST]
        of_surface = (f for part in _upstream(surface) for f in self._by_surface.get(part, ()))
        worst = sorted(of_surface, key=order)[:MOST]
        return tuple(Since(finding.identity, "surface") for finding in worst)

    def parts(self, surface: str) -> tuple[str, ...]:
        """The parts of PyTorch that changed, of those that a surface of the suite stands on."""
        return tuple(part for part in _upstream(surface) if part in self._by_surface)

    def _named(self, text: str) -> Iterator[str]:
        """The identities of the findings whose declarations are named, longest names first."""
        names = {name for word in _NAME.findall(text) for name in _within(_parts(word))}
        hits = names & self._by_name.keys()
        for name in sorted(hits, key=lambda parts: (-len(parts), parts)):
            yield from (finding.identity for finding in self._by_name[name])


def _upstream(surface: str) -> tuple[str, ...]:
    """The surfaces of PyTorch that a surface of the suite stands on, if that is known."""
    chapter = chapters().get(surface)
    return chapter.upstream if chapter else ()


def _names(finding: Finding) -> Iterator[tuple[str, ...]]:
    """Under which names a declaration is spoken of; none that may be an ordinary word."""
    parts = _parts(finding.name)
    spoken = {parts}
    if finding.domain is Domain.OPERATOR:  # aten::add.Tensor
        spoken.add(parts[:2])
    elif finding.domain is Domain.DEVICE_MODULE:  # no attribute '_is_in_bad_fork'
        spoken.add(parts[-1:])
    else:  # Allocator::copy_data
        spoken.add(parts[-2:])
    yield from (name for name in spoken if len(name) > 1 or "_" in name[0])


def _within(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    parts = parts[:MOST_PARTS]
    for begin in range(len(parts)):
        for end in range(begin + 1, len(parts) + 1):
            yield parts[begin:end]


def _parts(name: str) -> tuple[str, ...]:
    return tuple(_SEPARATOR.split(name))
