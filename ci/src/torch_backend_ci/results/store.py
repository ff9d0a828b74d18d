# SPDX-License-Identifier: BSD-3-Clause
"""Reading a store: `Store(path).reading()` gives the relations `runs` and `results` in DuckDB.

Each run is in them once, whatever segments it is in. Nothing is locked: a reader sees the store as
it was when it listed it, and gets `VanishedError` if a compaction deleted a file meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from torch_backend_ci import untrusted
from torch_backend_ci.errors import CiError
from torch_backend_ci.results import duck, former_columns, former_names, layout
from torch_backend_ci.results.layout import Segment
from torch_backend_ci.results.schema import RESULTS, RUNS, Column
from torch_conformance.spec import strict

T = TypeVar("T")
ATTEMPTS = 10
"""How often a reader lists again; compactions are rare."""


class VanishedError(CiError):
    """A compaction replaced files that were being read: list again. Nothing is lost."""


@dataclass(frozen=True)
class Part:
    """The runs that are read from one segment."""

    segment: Segment
    stored: Mapping[str, int]
    """Their ids, and how many results of each there are."""
    whole: bool
    """Whether these are all runs of the segment."""


@dataclass(frozen=True)
class Snapshot:
    """A store as it was when it was listed; can be handed to other processes."""

    segments: tuple[Segment, ...]
    """All of them, also those whose runs are read from others."""
    parts: tuple[Part, ...]

    @property
    def runs(self) -> frozenset[str]:
        """The ids of all runs."""
        return frozenset(id for part in self.parts for id in part.stored)

    @contextlib.contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own with the views `runs` and `results` (schema.py).

        An error of DuckDB in the block becomes a CiError if a file is to blame.
        """
        with duck.connected() as database, _blaming(part.segment for part in self.parts):
            runs = former_names.runs(self._query(database, RUNS))
            database.execute(f"CREATE VIEW runs AS {runs}")
            results = former_names.results(self._query(database, RESULTS))
            database.execute(f"CREATE VIEW results AS {results}")
            yield database

    def _query(self, database: duckdb.DuckDBPyConnection, columns: dict[str, Column]) -> str:
        id, parts = ("id", self.parts) if columns is RUNS else ("run", _with_results(self.parts))
        whole = [_file(part.segment, columns) for part in parts if part.whole]
        queries = [former_columns.query(database, whole, columns)]
        for part in parts:
            if not part.whole:
                rows = former_columns.query(database, [_file(part.segment, columns)], columns)
                mine = ", ".join(map(duck.literal, sorted(part.stored)))
                queries.append(f"FROM ({rows}) WHERE {id} IN ({mine})")
        return " UNION ALL ".join(queries)


class Store:
    """A store that is there."""

    def __init__(self, path: Path) -> None:
        """CiError if there is no store at the path that this code can read."""
        layout.require(path)
        self.path = path

    def snapshot(self) -> Snapshot:
        """What is in the store now; CiError if a file is damaged."""
        return again(lambda: snapshot_of(layout.segments(self.path)))

    def known(self) -> frozenset[str]:
        """The ids of all runs."""
        return self.snapshot().runs

    @contextlib.contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection with `runs` and `results`; VanishedError if a compaction interfered."""
        with self.snapshot().reading() as database:
            yield database

    def read(self, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """What `work` makes of a connection with `runs` and `results`.

        It is called again if a compaction interfered.
        """

        def attempt() -> T:
            with self.reading() as database:
                return work(database)

        return again(attempt)

    def findings(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The findings documents (schema/findings.schema.json) by their SHA-256."""
        for file in layout.findings(self.path):
            digest = file.name.partition(".")[0]
            try:
                data = untrusted.read(file, strict.MAX_BYTES)
                document = strict.loads(data)
            except strict.Malformed as error:
                raise CiError(_damaged(file, str(error))) from None
            if hashlib.sha256(data).hexdigest() != digest:
                raise CiError(_damaged(file, "its content is not what its name says"))
            yield digest, document


def again(work: Callable[[], T]) -> T:
    """What `work` gives; it is called again if a compaction interfered."""
    for _ in range(ATTEMPTS):
        with contextlib.suppress(VanishedError):
            return work()
    return work()


def snapshot_of(segments: tuple[Segment, ...]) -> Snapshot:
    """Which runs are read from which of these segments.

    Of a run that is in several, from the one with the most runs; of equal ones from that with the
    fewest results, as its results were dropped later.
    """
    inside = _inside(segments)
    ranked = sorted(
        inside, key=lambda s: (-len(inside[s]), sum(inside[s].values()), s.folder.name, s.name)
    )
    owner: dict[str, Segment] = {}
    for segment in ranked:
        for id in inside[segment]:
            owner.setdefault(id, segment)
    parts = []
    for segment in segments:
        mine = {id: count for id, count in inside[segment].items() if owner[id] == segment}
        if mine:
            parts.append(Part(segment, mine, len(mine) == len(inside[segment])))
    return Snapshot(segments, tuple(parts))


def _inside(segments: tuple[Segment, ...]) -> dict[Segment, dict[str, int]]:
    """The runs of each segment, and how many results of each it has."""
    inside: dict[Segment, dict[str, int]] = {segment: {} for segment in segments}
    if not segments:
        return inside
    by_name = {str(segment.runs): segment for segment in segments}
    files = ", ".join(duck.pattern(segment.runs) for segment in segments)
    query = f"SELECT filename, id, stored FROM read_parquet([{files}], filename = true)"
    with duck.connected() as database, _blaming(segments):
        for name, id, stored in database.execute(query).fetchall():
            inside[by_name[name]][id] = stored
    return inside


def _with_results(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if any(part.stored.values()))


def _file(segment: Segment, columns: dict[str, Column]) -> Path:
    return segment.runs if columns is RUNS else segment.results


@contextlib.contextmanager
def _blaming(segments: Iterable[Segment]) -> Iterator[None]:
    """Say which file is to blame for an error of DuckDB, if one is."""
    try:
        yield
    except duckdb.Error:
        for segment in segments:
            _blame(segment)
        raise


def _blame(segment: Segment) -> None:
    """Read a segment as a whole, and say what is wrong with it."""
    stored = _count(segment.runs, RUNS, "sum(stored)", segment)
    if stored and stored != _count(segment.results, RESULTS, "count(*)", segment):
        raise CiError(_damaged(segment.results, "it does not have the results of its runs"))


def _count(file: Path, columns: dict[str, Column], what: str, segment: Segment) -> int:
    # The hash has DuckDB read every column.
    try:
        with duck.connected() as database:
            rows = former_columns.query(database, [file], columns)
            query = f"SELECT {what}, bit_xor(hash(row)) FROM ({rows}) AS row"
            (count, _) = database.execute(query).fetchall()[0]
    except duckdb.Error as error:
        if not segment.runs.exists():
            raise VanishedError(
                f"{segment.runs} went while it was read, as the store was compacted: run it again"
            ) from None
        why = "it is not there" if not file.exists() else str(error).partition("\n")[0]
        raise CiError(_damaged(file, why)) from None
    return int(count or 0)


def _damaged(file: Path, why: str) -> str:
    return (
        f"{file} is damaged ({why}). Put it back from a copy of the store; without one, delete it"
        f"{_partner(file)} and add what it was made from again"
    )


def _partner(file: Path) -> str:
    if file.name.endswith(layout.RESULTS):
        return f" and {file.name.removesuffix(layout.RESULTS)}{layout.RUNS} beside it"
    return ""
