# SPDX-License-Identifier: BSD-3-Clause
"""What a PR does to the backends that were built on a pinned torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import usage
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.check import broken, coverage, opinion, reach, stakes
from torch_backend_ci.surface.check.change import Change
from torch_backend_ci.surface.check.reading import (
    ALL_HEADERS,
    Reader,
    Reading,
    still_read,
    unconfirmed,
    worth_trying,
)
from torch_backend_ci.surface.check.wrapping import lines_before
from torch_backend_ci.surface.diff import diff, order
from torch_backend_ci.surface.extract.cpp.compiler import PROFILES
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity, Snapshot, Torch
from torch_backend_ci.surface.probe import agreement
from torch_backend_ci.surface.report import Report
from torch_backend_ci.torch_tree import TorchTree, layout, linked

Progress = Callable[[str], None]

CONFIRMED = 8  # headers that are tried one by one, 2 s each


@dataclass(frozen=True)
class Base:
    """The pinned torch: where it lies, and what it declares."""

    tree: TorchTree
    snapshot: Callable[[], Snapshot]  # asked for only if something is to be judged
    cache: Path  # where what the probe says of it is kept


def judge(
    base: Base, change: Change, name: str, catalogue: Catalogue, progress: Progress
) -> Report:
    """The report on a change called `name`.

    An error in what the base declares is a CiError; one that the change brings is a finding.
    """
    touched = {**change.files, **dict.fromkeys(change.conflicts)}
    graph = reach.includes(base.tree, touched, catalogue)
    read_by = {path: reach.domains(path, graph) for path in touched}
    for path, after in change.files.items():
        if after is None and path.endswith(layout.HEADERS):
            read_by[path].add(Domain.HEADER)
    change = _sorted_out(base.tree, change, read_by)
    missed = coverage.missed(base.tree, change.files, catalogue, graph.edges)
    not_covered = coverage.not_covered(change.unjudged, missed)
    domains = {domain for path in change.files for domain in read_by[path]}
    torch = Torch(base.tree.version, base.tree.git_version)
    patched = Torch(f"{torch.version} with {name}", None)
    findings: list[Finding] = []
    reading, remark = Reading(), ""
    if domains:
        before = restricted(base.snapshot(), domains)
        moved = reach.rearranged(base.tree, change.files)
        alone = worth_trying(before, change.files, moved, graph)
        tree = linked(base.tree, dict(change.files))
        plain = not reach.asks(base.tree, change.files, PROFILES[1:])
        second = opinion.Opinion(base.tree, tree, base.cache) if Domain.CPP in domains else None
        reader = Reader(
            *(tree, catalogue, graph, alone, bool(moved), plain),
            frozenset(change.files),
            progress,
            before,
            second,
        )
        at_stake = None
        if plain and second is not None:
            at_stake = stakes.at_stake(base.tree, change.files, moved, before, graph)
        reading = reader.read(before.domains, at_stake)
        findings, remark = _findings(before, reading, reader)
        if not reading.whole and any(f.rule == agreement.RULE for f in findings):
            progress(f"  a line of the probe breaks without a finding: {ALL_HEADERS}")
            reading = reader.read(before.domains, None)
            findings, remark = _findings(before, reading, reader)
        findings = [_at_lines_of_repository(finding, base.tree, tree) for finding in findings]
    judged = sum(1 for path in change.files if _shown(path) not in not_covered)
    return Report(
        before=torch,
        after=patched,
        findings=tuple(findings),
        not_compared=tuple(domain for domain in Domain if domain in reading.lost),
        verdict=verdict(findings, judged, not_covered),
        notes=tuple(filter(None, [*_notes(change, judged, missed, reading), remark])),
        not_covered=tuple(not_covered),
    )


def restricted(whole: Snapshot, domains: Collection[Domain]) -> Snapshot:
    """What a snapshot says about some domains."""
    kept = tuple(d for d in whole.declarations if d.domain in domains)
    return replace(whole, domains=whole.domains & set(domains), declarations=kept)


def verdict(findings: Collection[Finding], judged: int, not_covered: Collection[str]) -> str:
    """The worst, in a line: "compile_break: 2 findings in allocator"."""
    counted = [f for f in findings if f.severity is not Severity.COSMETIC]
    if not counted and not_covered:
        beside = f", and none in {_files(judged)} judged" if judged else ""
        return f"not_covered: {_files(len(not_covered))} not looked at{beside}"
    if not counted:
        if not judged:
            return "none: nothing to judge"
        return f"none: {_files(judged)} judged, no declaration that a backend is built on changes"
    worst = min((f.severity for f in counted), key=lambda severity: severity.rank)
    those = [f for f in counted if f.severity is worst]
    surfaces = ", ".join(dict.fromkeys(f.surface for f in those))
    return f"{worst.value}: {len(those)} finding{'s' * (len(those) != 1)} in {surfaces}"


def _sorted_out(tree: TorchTree, change: Change, read_by: dict[str, set[Domain]]) -> Change:
    """The change without the conflicts that do not matter; CiError if some do."""
    fatal = {path: why for path, why in change.conflicts.items() if read_by[path]}
    if fatal:
        lines = "".join(f"\n  {_shown(path)}: {why}" for path, why in sorted(fatal.items()))
        raise CiError(
            f"the patch does not apply on torch {tree.version}:{lines}\n"
            "take a base nearer to the PR"
        )
    aside = {_shown(path): f"{why}; no surface reads it" for path, why in change.conflicts.items()}
    return replace(change, conflicts={}, unjudged=change.unjudged | aside)


def _files(count: int) -> str:
    return f"{count} file{'s' * (count != 1)}"


def _shown(path: str) -> str:
    return layout.to_repository(path) or path


def _findings(before: Snapshot, reading: Reading, reader: Reader) -> tuple[list[Finding], str]:
    """What the change does, also by making something unreadable; and a remark about it."""
    known = still_read(before, reading, reader)
    differences = diff(known, replace(known, declarations=reading.declarations))
    doubted = {f.name for f in differences if f.rule == "header_not_alone"}
    wrong = unconfirmed(reader.tree, doubted) if len(doubted) <= CONFIRMED else set()
    found = [f for f in differences if f.rule != "header_not_alone" or f.name not in wrong]
    remark = ""
    if Domain.CPP in known.domains and not reading.left_out:
        found, remark = opinion.weighed(found, reading.parts)
    found += [broken.finding(fault, before, reader.catalogue) for fault in reading.faults]
    return sorted(usage.weigh(found, usage.load()), key=order), remark


def _at_lines_of_repository(finding: Finding, base: TorchTree, tree: TorchTree) -> Finding:
    """With the lines that the PR's author sees: in a wheel, a guard comes before each header."""
    return replace(
        finding,
        before=finding.before and _at_line_of_repository(finding.before, base),
        after=finding.after and _at_line_of_repository(finding.after, tree),
    )


def _at_line_of_repository(declaration: Declaration, tree: TorchTree) -> Declaration:
    path = tree.root / declaration.file
    if not declaration.file.startswith("torch/include/") or not declaration.line > 1:
        return declaration
    offset = lines_before(path.read_bytes()) if path.is_file() else 0
    return replace(declaration, line=declaration.line - offset)


def _notes(change: Change, judged: int, missed: Mapping[str, str], reading: Reading) -> list[str]:
    """What the reader has to know of the files that were not judged."""
    notes = [f"{_files(judged)} judged."] if judged else []
    notes += [f"Not covered, {why}: {_some(paths)}." for why, paths in _by_reason(missed)]
    notes += [f"Not judged, {why}: {_some(paths)}." for why, paths in _by_reason(change.unjudged)]
    if reading.left_out and Domain.CPP not in reading.lost:
        left_out = _some(sorted(reading.left_out))
        notes.append(f"Only their compiling was judged, not what they declare: {left_out}.")
    return notes


def _by_reason(reasons: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    by_reason: dict[str, list[str]] = {}
    for path, why in sorted(reasons.items()):
        by_reason.setdefault(why, []).append(path)
    return sorted(by_reason.items())


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return f"{', '.join(paths[:5])}{more}"
