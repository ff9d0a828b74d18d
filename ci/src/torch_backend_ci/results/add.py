# SPDX-License-Identifier: BSD-3-Clause
"""`results add`: files in, segments out; what is there already is not added again."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from torch_backend_ci import untrusted
from torch_backend_ci.errors import CiError
from torch_backend_ci.results import accept, duck, findings, layout, rows
from torch_backend_ci.results.accept import Refused
from torch_backend_ci.results.schema import RESULTS, RUNS
from torch_backend_ci.results.segment import commit, writing
from torch_backend_ci.results.store import Store
from torch_backend_ci.untrusted import spoken
from torch_conformance.results.reader import Document
from torch_conformance.spec import strict

SUFFIXES = (".json", ".json.gz")
MAX_DEPTH = 8
"""Directories below the one that was named."""
TOO_DEEP = f"directories deeper than {MAX_DEPTH}"
BATCH = 2_000_000
"""Results that are gathered before they are written."""


class Fate(str, Enum):
    """The result for a file."""

    ADDED = "added"
    KNOWN = "already there"
    REFUSED = "refused"


@dataclass(frozen=True)
class Told:
    """The result for one file, with a message."""

    file: str
    fate: Fate
    detail: str
    """What it is, or why it was refused."""


def add(path: Path, files: Iterable[Path], now: datetime) -> Iterator[Told]:
    """Add files and directories of files to the store at a path; a reported file is durable.

    The store is made if it is not there. CiError if it cannot be written; reported files stay.
    """
    layout.create(path)
    try:
        yield from _added(path, files, now)
    except OSError as error:
        raise CiError(f"cannot add to {path}: {error.strerror or error}") from error


def _added(path: Path, files: Iterable[Path], now: datetime) -> Iterator[Told]:
    adding = _Adding(path, Store(path).known(), now)
    with tempfile.TemporaryDirectory(prefix="results-add-") as scratch:
        batch = _Batch(path, Path(scratch))
        for entry in _found(files):
            yield from [entry] if isinstance(entry, Told) else adding.take(entry, batch)
            if batch.results >= BATCH:
                yield from batch.written()
        yield from batch.written()


def _found(paths: Iterable[Path]) -> Iterator[Path | Told]:
    """The files that are meant, and what is wrong with others."""
    for path in paths:
        if path.is_dir():
            yield from _below(path, MAX_DEPTH)
        elif path.name.endswith(".xml"):
            yield _refused(path, "JUnit does not say enough: give the report, which is JSON")
        elif not path.name.endswith(SUFFIXES):
            yield _refused(path, f"reports end with {' or '.join(SUFFIXES)}")
        else:
            # A link that was named is meant.
            yield Path(os.path.realpath(path)) if path.is_symlink() else path


def _below(folder: Path, depth: int) -> Iterator[Path | Told]:
    """The reports in a directory; there are other files beside them."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield _refused(folder, error.strerror or str(error))
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.is_symlink():
            yield _refused(path, "a link, which is not followed")
        elif entry.is_dir(follow_symlinks=False):
            yield from _below(path, depth - 1) if depth else [_refused(path, TOO_DEEP)]
        elif entry.name.endswith(SUFFIXES):
            yield path


def _refused(file: Path, why: str) -> Told:
    return Told(spoken(str(file)), Fate.REFUSED, why)


@dataclass
class _Adding:
    store: Path
    known: frozenset[str]
    now: datetime
    taken: set[str] = field(default_factory=set)

    def take(self, file: Path, batch: _Batch) -> Iterator[Told]:
        """Read one file; the result, unless the batch reports it later."""
        name = spoken(str(file))
        try:
            data = untrusted.read(file, strict.MAX_BYTES)
            digest = hashlib.sha256(data).hexdigest()
            if digest in self.known or digest in self.taken:
                yield Told(name, Fate.KNOWN, f"run {digest[:12]}")
                return
            document = strict.loads(data)
            if findings.are_meant(document):
                yield self._findings(name, data, document)
                return
            report = accept.read(document, name, digest, self.now)
            self._require_own_name(digest)
        except (Refused, strict.Malformed) as error:
            yield Told(name, Fate.REFUSED, str(error))
            return
        self.taken.add(digest)
        batch.take(name, report)

    def _findings(self, name: str, data: bytes, document: Any) -> Told:
        what = findings.verified(document, name)
        is_new = findings.put(self.store, data)
        return Told(name, Fate.ADDED if is_new else Fate.KNOWN, what)

    def _require_own_name(self, digest: str) -> None:
        """Addresses have only the first digits of an id; equal ones are rejected."""
        for other in (*self.known, *self.taken):
            if other[: accept.NAME] == digest[: accept.NAME]:
                raise Refused(f"its name {digest[: accept.NAME]} is that of another run, {other}")


@dataclass
class _Night:
    """Reports of one day: the number of results of each, and its message."""

    stored: dict[str, int] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)


@dataclass
class _Batch:
    """Reports to be added: JSON lines for each day."""

    store: Path
    scratch: Path
    results: int = 0
    nights: dict[str, _Night] = field(default_factory=dict)

    def take(self, name: str, report: Document) -> None:
        run = rows.run(report)
        night = run["started"][: len("2026-11-22")]
        with self._lines(night, "runs").open("a", encoding="ascii") as stream:
            stream.write(json.dumps(run) + "\n")
        with self._lines(night, "results").open("a", encoding="ascii") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows.results(report))
        self.results += run["stored"]
        mine = self.nights.setdefault(night, _Night())
        mine.stored[report.sha256] = run["stored"]
        of = f"{run['backend']}, torch {run['torch']}, {night}"
        mine.told.append(Told(name, Fate.ADDED, f"{of}, run {report.sha256[: accept.NAME]}"))

    def written(self) -> Iterator[Told]:
        """Commit what was gathered, night by night; the batch is empty then."""
        with duck.connected() as database:
            for night, mine in self.nights.items():
                runs, results = self._lines(night, "runs"), self._lines(night, "results")
                folder = self.store / night
                with writing(folder):
                    rows_of = duck.of_json(runs, RUNS), duck.of_json(results, RESULTS)
                    commit(database, folder, mine.stored, *rows_of)
                runs.unlink()
                results.unlink()
                yield from mine.told
        self.nights, self.results = {}, 0

    def _lines(self, night: str, what: str) -> Path:
        return self.scratch / f"{night}.{what}.ndjson"
