# SPDX-License-Identifier: BSD-3-Clause
"""Steps from one torch to another: what changed in PyTorch, and which checks began to fail.

Torch is suspected only where nothing else is known to have changed: of two runs that asked the
same. If the suite or its options differ too, the page says so, and names no finding.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from torch_backend_ci.dashboard import pairs
from torch_backend_ci.dashboard.model import NIGHTLY, Findings, Key, Result, Run
from torch_backend_ci.dashboard.pairs import Pair
from torch_backend_ci.gate import since
from torch_backend_ci.results import accept
from torch_backend_ci.surface.model import Torch
from torch_backend_ci.surface.report.json import parse
from torch_backend_ci.surface.report.report import Report
from torch_conformance.results.comparison import Change

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

NIGHTS = 30
"""So many steps between nightly builds are shown."""


@dataclass(frozen=True)
class Failing:
    """A check that is bad with the newer torch and was not with the older one."""

    change: Change
    result: Result
    """With the newer torch."""
    named: tuple[str, ...]
    """Identities of the findings that its message names: it fails perhaps since these."""
    parts: tuple[str, ...]
    """If it names none, the parts of PyTorch that it stands on and that changed: where to look."""
    is_mended: bool
    """Whether the newest run with the newer torch does not say it any more."""


@dataclass(frozen=True)
class OnBackend:
    """The changes of one backend."""

    backend: str
    pair: Pair
    unlike: tuple[str, ...]
    """What the runs did not ask alike, in sentences: torch is then not suspected."""
    besides: tuple[str, ...]
    """What differs besides torch and may, by the names of comparison.NOTED."""
    failing: tuple[Failing, ...]

    @property
    def lasting(self) -> int:
        """How many are bad in the newest run, too."""
        return sum(not one.is_mended for one in self.failing)

    @property
    def naming(self) -> int:
        """How many of those name a finding."""
        return sum(bool(one.named) for one in self.failing)

    @property
    def standing(self) -> int:
        """How many of those name none, and stand on a part of PyTorch that changed."""
        return sum(bool(one.parts) for one in self.failing)


@dataclass(frozen=True)
class TorchStep:
    """From one torch to another."""

    before: str
    after: str
    report: Report | None
    """What changed in PyTorch's surface; None if nobody looked."""
    backends: tuple[OnBackend, ...]

    @property
    def is_nightly(self) -> bool:
        """Whether it is from or to a nightly build."""
        return NIGHTLY in (_line(self.before), _line(self.after))

    @functools.cached_property
    def suspected(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """By identity of a finding and by backend the checks that name it."""
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for one in self.backends:
            for failing in one.failing:
                for identity in failing.named:
                    found[identity][one.backend].append(failing.change.id)
        return found


def between(model: Model) -> Iterator[TorchStep]:
    """The steps of which there are findings, newest first."""
    for findings in _read(model):
        report = _report(findings)
        backends = _on_backends(model, _pairs(model, report), since.Findings(report.findings))
        yield TorchStep(findings.before, findings.after, report, backends)


def compared(model: Model) -> Iterator[Pair]:
    """The runs that the steps go by."""
    for findings in _read(model):
        yield from _pairs(model, _report(findings))


def unread(model: Model) -> Iterator[TorchStep]:
    """The steps between neighbouring lines of backends of which there are no findings, newest
    first.
    """
    read = {(_line(one.before), _line(one.after)) for one in model.findings}
    by_lines: dict[tuple[str, str], list[Pair]] = {}
    for backend in model.backends:
        for pair in pairs.neighbours(model, backend):
            by_lines.setdefault((pair.old.key.line, pair.new.key.line), []).append(pair)
    for step in sorted(by_lines.keys() - read, key=lambda step: newest_first(*step), reverse=True):
        yield TorchStep(*step, None, _on_backends(model, by_lines[step], None))


def newest_first(before: str, after: str) -> tuple[object, ...]:
    """Sorts steps, in reverse: by version; a name that is not a version comes last."""
    return tuple((torch == NIGHTLY, _version(torch), torch) for torch in (after, before))


def _line(torch: str) -> str:
    """Of a version, or of a line itself."""
    return NIGHTLY if torch == NIGHTLY else accept.line(torch)


def _version(torch: str) -> Version:
    try:
        return Version(torch)
    except InvalidVersion:
        return Version("0")


def _read(model: Model) -> list[Findings]:
    """The findings to show: of one step one document, of nightly builds the newest steps."""
    by_step = {(one.before, one.after): one for one in sorted(model.findings, key=attrgetter("id"))}
    ordered = sorted(by_step, key=lambda step: newest_first(*step), reverse=True)
    nightly = [step for step in ordered if NIGHTLY in map(_line, step)]
    return [by_step[step] for step in ordered if step not in nightly[NIGHTS:]]


def _report(findings: Findings) -> Report:
    return parse(dict(findings.document), f"findings {findings.id[:12]}")


def _pairs(model: Model, report: Report) -> Iterator[Pair]:
    """For each backend the newest runs with the same selection; else the newest, with a note."""
    for backend in model.backends:
        old, new = (_runs(model, backend, torch) for torch in (report.before, report.after))
        if old and new:
            yield pairs.alike(old, new) or Pair(old[-1], new[-1])


def _runs(model: Model, backend: str, torch: Torch) -> Sequence[Run]:
    """The runs with a release's line; of nightly builds only those with this very one."""
    key = Key(backend, _line(torch.version))
    runs = model.series[key].runs if key in model.series else ()
    return [run for run in runs if _is(run, torch)] if key.line == NIGHTLY else runs


def _is(run: Run, torch: Torch) -> bool:
    if run.torch_git and torch.git_version:
        return run.torch_git == torch.git_version
    return run.torch.partition("+")[0] == torch.version.partition("+")[0]


def _on_backends(
    model: Model, found: Iterable[Pair], findings: since.Findings | None
) -> tuple[OnBackend, ...]:
    kept = [pair for pair in found if not pairs.missing(pair)]
    model.read_ahead([run for pair in kept for run in pair])
    return tuple(_on_backend(model, pair, findings) for pair in kept)


def _on_backend(model: Model, pair: Pair, findings: since.Findings | None) -> OnBackend:
    across = frozenset(pairs.unlike(*pair))
    compared = pairs.compared(model, pair, across)
    results = model.results(pair.new)
    suspects = None if across else findings
    column = model.series[pair.new.key].column
    still = model.bad(column) if column else {}
    failing = (
        _failing(change, results[change.id], suspects, change.id not in still)
        for change in compared.regressions
        if _began(change, results[change.id])
    )
    return OnBackend(
        pair.new.key.backend,
        pair,
        unlike=tuple(pairs.refusal(pair)),
        besides=tuple(name for name in pairs.besides(pair) if name != "torch"),
        failing=tuple(failing),
    )


def _began(change: Change, result: Result) -> bool:
    """Whether a regression is a check that was there and is bad now; not one of its evidence."""
    return result.unexpected and change.old != "new" and change.new == result.outcome


def _failing(
    change: Change, result: Result, findings: since.Findings | None, is_mended: bool
) -> Failing:
    if findings is None:
        return Failing(change, result, (), (), is_mended)
    surface = change.id.partition("/")[0]
    causes = findings.since(surface, result.text)
    named = tuple(cause.finding for cause in causes if cause.by == "name")
    return Failing(change, result, named, () if named else findings.parts(surface), is_mended)
