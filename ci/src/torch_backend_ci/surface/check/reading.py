# SPDX-License-Identifier: BSD-3-Clause
"""Read a changed torch, and where the change makes something unreadable, read the rest."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import snapshot
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.check import broken
from torch_backend_ci.surface.check.abridged import Abridged, abridged
from torch_backend_ci.surface.check.opinion import Opinion
from torch_backend_ci.surface.check.reach import Includes
from torch_backend_ci.surface.check.stakes import Stakes, covering
from torch_backend_ci.surface.extract import cpp
from torch_backend_ci.surface.extract.cpp import PROFILES, parse
from torch_backend_ci.surface.model import Declaration, Domain, Snapshot
from torch_backend_ci.torch_tree import TorchTree

Progress = Callable[[str], None]
Tasks = Mapping[str, Callable[[], Any]]

_CPP = "C++"  # the name of the task
HEADERS = {Domain.CPP, Domain.HEADER}
# Without the headers that do not compile, others may turn out not to either.
ATTEMPTS = 3
_QUALIFIED = re.compile(r"(\w+(?:::\w+)*)::(\w+)")
ALL_HEADERS = "reading all headers"  # what progress says where the part at stake is not enough


@dataclass
class Reading:
    """What could be read, and what not."""

    declarations: tuple[Declaration, ...] = ()
    faults: list[broken.Fault] = field(default_factory=list)
    lost: set[Domain] = field(default_factory=set)  # of which nothing could be read
    left_out: set[str] = field(default_factory=set)  # headers that do not compile any more
    parts: dict[str, Any] = field(default_factory=dict)  # what each task gave
    whole: bool = True  # not only what was at stake


@dataclass(frozen=True)
class Reader:
    """Reads a tree that came of a change to a base that could be read."""

    tree: TorchTree
    catalogue: Catalogue
    graph: Includes
    alone: frozenset[str]  # the headers to try alone
    language: bool  # whether they tell all of the language
    plain: bool  # whether no changed file asks for what only another profile defines
    changed: frozenset[str]  # the changed files
    progress: Progress
    before: Snapshot  # of the base
    opinion: Opinion | None  # the probe's, if there are changes of C++

    def read(self, domains: Collection[Domain], stakes: Stakes | None) -> Reading:
        """Read some domains, and what the probe says beside, in the same two processes; of C++
        only what is at stake, if that is known and turns out to be all."""
        reading = Reading(parts=dict(self.opinion.known) if self.opinion else {})
        if stakes is None or not self._read_part(domains, stakes, reading):
            self._read_whole(domains, reading)
        read = set(domains) - reading.lost
        names = snapshot.tasks(self.tree, self.catalogue, read).keys() & reading.parts.keys()
        parts = {name: reading.parts[name] for name in names}
        taken = snapshot.assemble(self.tree, read, parts).declarations
        reading.declarations = tuple(d for d in taken if self.language or d.kind != "language")
        return reading

    def _read_whole(self, domains: Collection[Domain], reading: Reading) -> None:
        """Read what is not read yet, and without headers that turn out not to compile."""
        tasks = self._tasks(domains, reading)
        tasks = {name: task for name, task in tasks.items() if name not in reading.parts}
        if self.opinion is not None:
            tasks = {**tasks, **self.opinion.whole()}
        for _ in range(ATTEMPTS):
            failed = self._run(tasks, reading)
            self._book(failed, reading)
            again = set(domains) & HEADERS - reading.lost if reading.left_out else set()
            if not failed or not again:
                break
            tasks = self._tasks(again, reading)
        else:
            reading.lost |= set(domains) & HEADERS

    def _read_part(self, domains: Collection[Domain], stakes: Stakes, reading: Reading) -> bool:
        """Read what is at stake of C++, and all of the other domains; False if that is not enough.

        It is enough if nothing fails, and what differs from the base stands in a changed file and
        was at stake. What a name means may depend on the headers that came before: a difference
        elsewhere, or of scopes, may be due to the company.
        """
        assert self.opinion is not None
        of_cpp = [d for d in self.before.declarations if d.domain is Domain.CPP]
        kept = [d for d in of_cpp if not d.facts.get("requires")]
        files = stakes.files & {d.file for d in kept}
        headers = covering(self.graph, files, self.graph.listed)
        shorter = abridged(self.graph.reached(headers), stakes.files)
        read = partial(_extracted, self.tree, self.catalogue, headers, files, shorter)
        asked, known = self.opinion.part(stakes, self.graph)
        # The probe takes longest, and begins first.
        tasks: Tasks = {**asked, **self._tasks(domains, reading), _CPP: read}
        failed = self._run(tasks, reading)
        now = reading.parts.pop(_CPP, [])
        if not failed:
            was = [d for d in kept if d.file in files]
            elsewhere = [d for d in kept if d.file not in files]
            now = _without_copies(now, elsewhere, stakes)
            different = list(_different(was, now))
            expected = all(d.file in self.changed and stakes.has(d) for d in different)
            if expected and not _resolved_anew(different):
                reading.parts[_CPP] = [*elsewhere, *now]
                reading.parts.update(known)
                reading.whole = False
                return True
        self.progress(f"  more than that is different: {ALL_HEADERS}")
        return False

    def _tasks(self, domains: Collection[Domain], reading: Reading) -> Tasks:
        catalogue = _without(self.catalogue, reading.left_out)
        alone = [header for header in sorted(self.alone - reading.left_out) if self._has(header)]
        tasks = snapshot.tasks(self.tree, catalogue, domains, alone, plain=self.plain)
        return tasks if alone else {n: task for n, task in tasks.items() if n != "headers"}

    def _has(self, header: str) -> bool:
        return any((folder / header).is_file() for folder in self.tree.include)

    def _run(self, tasks: Tasks, reading: Reading) -> dict[str, CiError]:
        """The tasks that failed; what the others gave is in the reading."""
        failed: dict[str, CiError] = {}
        begun = time.monotonic()
        self.progress(f"the change on torch {self.tree.version}: reading {', '.join(tasks)}")
        guarded = {name: partial(_attempted, task) for name, task in tasks.items()}
        for name, part in snapshot.in_processes(guarded):
            if isinstance(part, CiError):
                failed[name] = part
            else:
                reading.parts[name] = part
            self.progress(f"  {time.monotonic() - begun:5.1f} s  {name}")
        return failed

    def _book(self, failed: Mapping[str, CiError], reading: Reading) -> None:
        """What failed takes its domain with it, or, of the headers, those that do not compile."""
        for name, error in failed.items():
            faults = broken.faults(error, self.tree)
            if not faults:  # of the environment
                raise error
            reading.faults += [fault for fault in faults if fault not in reading.faults]
            of = {d for d in Domain if name in snapshot.tasks(self.tree, self.catalogue, [d])}
            if not of <= HEADERS:
                reading.lost |= of
                continue
            reading.parts = {n: p for n, p in reading.parts.items() if not _of_headers(n)}
            reading.left_out |= self.graph.including(fault.file for fault in faults)
            rest = self.graph.listed.keys() - reading.left_out
            if not reading.left_out or not any(map(self._has, rest)):
                reading.lost |= HEADERS


def _extracted(
    tree: TorchTree,
    catalogue: Catalogue,
    headers: Sequence[str],
    files: Collection[str],
    shorter: Abridged,
) -> list[Declaration]:
    return cpp.extract_part(tree, catalogue, headers, files, shorter.overlay(tree))


def _without_copies(
    now: Collection[Declaration], elsewhere: Collection[Declaration], stakes: Stakes
) -> list[Declaration]:
    """What is not declared by a file that was not read too, and counted there when all are read:
    the first of some declarations, the last definition of a macro."""
    known = {_identity(d) for d in elsewhere}
    macros = {d.name for d in elsewhere if d.kind == "macro"}
    return [
        d
        for d in now
        if _identity(d) not in known
        and not (d.kind == "macro" and d.name in macros and not stakes.has(d))
    ]


def _identity(declaration: Declaration) -> tuple[str, str, str]:
    facts = json.dumps(declaration.facts, sort_keys=True)
    return declaration.kind, declaration.name, facts


def _different(was: Collection[Declaration], now: Collection[Declaration]) -> Iterator[Declaration]:
    """The declarations of one side that the other one has not, wherever in its file they stand."""

    def by_text(declarations: Collection[Declaration]) -> dict[str, Declaration]:
        return {json.dumps(vars(replace(d, line=0)), sort_keys=True): d for d in declarations}

    before, after = by_text(was), by_text(now)
    yield from (before[key] for key in before.keys() - after.keys())
    yield from (after[key] for key in after.keys() - before.keys())


def _resolved_anew(different: Collection[Declaration]) -> bool:
    """Whether a declaration has a type that has the same name as before in another scope."""
    scopes: dict[tuple[str, str, str], set[str]] = {}
    for declaration in different:
        own: dict[str, set[str]] = {}
        for scope, last in _QUALIFIED.findall(json.dumps(declaration.facts)):
            own.setdefault(last, set()).add(scope)
        for last, found in own.items():
            known = scopes.setdefault((declaration.kind, declaration.name, last), found)
            if known != found:
                return True
    return False


def unconfirmed(tree: TorchTree, headers: Collection[str]) -> set[str]:
    """Of headers that seem not to compile alone those that do, tried one by one: what seems so
    for all of them read together may be due to the company."""
    tasks = {header: partial(_attempted, partial(_alone, tree, header)) for header in headers}
    return {header for header, part in snapshot.in_processes(tasks) if part is True}


def _alone(tree: TorchTree, header: str) -> bool:
    parse.parse(tree, [header], PROFILES[0], {}, bodies=True)
    return True


def _of_headers(task: str) -> bool:
    return task == "headers" or task.startswith("C++")


def still_read(before: Snapshot, reading: Reading, reader: Reader) -> Snapshot:
    """The base's snapshot without what was not, or could not be, read again: that is not gone."""
    # Where an #include stands in a file does not say that it is followed: what was read is what
    # declares something now, and of the changed files those that still compile.
    files = {d.file for d in reading.declarations if d.domain is Domain.CPP}
    files |= reader.changed & reader.graph.reached(reader.graph.listed.keys() - reading.left_out)

    def is_read(declaration: Declaration) -> bool:
        if declaration.domain in reading.lost:
            return False
        if declaration.facts.get("unread"):  # of such a header only its removal is seen
            return not (reader.tree.root / declaration.file).exists()
        if declaration.kind == "header":
            return declaration.name in reader.alone - reading.left_out
        if reader.plain and declaration.facts.get("requires"):
            return False
        if declaration.kind == "language":
            return any(d.kind == "language" for d in reading.declarations)
        return declaration.domain not in HEADERS or declaration.file in files

    kept = tuple(d for d in before.declarations if is_read(d))
    return replace(before, domains=before.domains - reading.lost, declarations=kept)


def worth_trying(
    before: Snapshot, changed: Collection[str], rearranged: Collection[str], graph: Includes
) -> frozenset[str]:
    """The headers that may not compile alone any more: the changed ones, and those that include one
    that brings other headers along; if they did before. With
    these one that tells the language, which nothing else can change."""
    headers = [d for d in before.declarations if d.domain is Domain.HEADER]
    fragile = {d.name for d in headers if d.kind == "header" and not d.facts.get("alone")}
    itself = {h for h, paths in graph.listed.items() if not set(changed).isdisjoint(paths)}
    tried = itself | graph.including(rearranged)
    if rearranged:  # an #error is a directive too
        tellers = (graph.including([d.file]) - fragile for d in headers if d.kind == "language")
        tried |= {min(t, key=lambda h: len(graph.reached([h]))) for t in tellers if t}
    return frozenset(tried - fragile)


def _attempted(task: Callable[[], Any]) -> Any:
    try:
        return task()
    except CiError as error:
        return error


def _without(catalogue: Catalogue, headers: Collection[str]) -> Catalogue:
    surfaces = (
        replace(surface, headers=tuple(h for h in surface.headers if h not in headers))
        for surface in catalogue.surfaces
    )
    return Catalogue(tuple(surfaces)) if headers else catalogue
