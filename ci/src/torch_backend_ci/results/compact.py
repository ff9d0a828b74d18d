# SPDX-License-Identifier: BSD-3-Clause
"""`results compact`: the segments of a month become one, and old results go if that is wanted.

The new segment is written before the old ones are deleted, so no run is ever missing: not after an
interruption, and not for concurrent readers and writers.
"""

from __future__ import annotations

import functools
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

from torch_backend_ci.errors import CiError
from torch_backend_ci.results import layout
from torch_backend_ci.results.layout import Segment
from torch_backend_ci.results.segment import commit, writing
from torch_backend_ci.results.store import Store, again, snapshot_of

ALONE = 24 * 3600.0
"""Seconds after which nobody is still writing a file that is not committed."""
_EVER = datetime.min


@dataclass(frozen=True)
class Merge:
    """What becomes, or became, of one month."""

    month: str
    old: tuple[Segment, ...]
    """That are replaced by one other; of a single one old results go."""
    runs: int
    dropped: int
    """How many results go."""


def compact(store: Store, keep_days: int | None, dry_run: bool = False) -> Iterator[Merge]:
    """Merge what can be merged, and drop the results of runs that started `keep_days` days before
    the newest of the store; None keeps all. The rows of the runs stay for ever.

    CiError if the store is damaged or cannot be written; the months reported before are done.
    """
    horizon = _EVER if keep_days is None else store.read(_newest) - timedelta(days=keep_days)
    for month in sorted({segment.month for segment in layout.segments(store.path)}):
        done = again(functools.partial(_month, store, month, horizon, dry_run))
        if done.old:
            yield done


def _newest(database: duckdb.DuckDBPyConnection) -> datetime:
    (newest,) = database.execute("SELECT max(started) FROM runs").fetchall()[0]
    return newest or datetime.max  # Without runs nothing is older than any time.


def _month(store: Store, month: str, horizon: datetime, dry_run: bool) -> Merge:
    found = tuple(s for s in layout.segments(store.path) if s.month == month)
    kept = f"started >= TIMESTAMP {horizon.isoformat(' ')!r}"
    with writing(store.path / month), snapshot_of(found).reading() as database:
        database.execute(f"CREATE VIEW kept AS SELECT id FROM runs WHERE {kept}")
        counts = f"SELECT id, stored, IF({kept}, stored, 0) FROM runs"
        rows = database.execute(counts).fetchall()
        stored = {id: after for id, _, after in rows}
        merged = next((s for s in found if s.name == layout.segment_name(stored)), None)
        old = tuple(s for s in found if s != merged)
        if old and not dry_run and merged is None:
            runs = f"SELECT * REPLACE (IF({kept}, stored, 0)::INTEGER AS stored) FROM runs"
            results = "SELECT * FROM results WHERE run IN (FROM kept)"
            commit(database, store.path / month, stored, runs, results)
    if not dry_run:
        _remove(old)
    return Merge(month, old, len(rows), sum(before - after for _, before, after in rows))


def _remove(segments: tuple[Segment, ...]) -> None:
    for segment in segments:
        for file in (segment.runs, segment.results):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise CiError(
                    f"cannot delete {file}: {error.strerror}. It was merged into another file "
                    "and counts no more"
                ) from error


def remains(store: Store) -> list[Path]:
    """Files that an interrupted `add` or `compact` left behind, and that nobody reads."""
    folders = [store.path, store.path / layout.FINDINGS, *layout.periods(store.path)]
    return [file for folder in folders for file in _remains_in(folder) if _is_old(file)]


def _remains_in(folder: Path) -> Iterator[Path]:
    names = layout.listed(folder) if folder.is_dir() else []
    for name in names:
        is_results = name.endswith(layout.RESULTS)
        runs = name.removesuffix(layout.RESULTS) + layout.RUNS
        if layout.is_part(name) or (is_results and runs not in names):
            yield folder / name


def sweep(file: Path) -> None:
    """Delete what was left behind, unless somebody puts a new file in its place just now."""
    aside = file.with_name(f".{secrets.token_hex(8)}{layout.PART}")
    try:
        os.rename(file, aside)
        if not _is_old(aside):
            os.rename(aside, file)
        aside.unlink(missing_ok=True)
    except FileNotFoundError:
        return  # Somebody else swept it.
    except OSError as error:
        raise CiError(f"cannot delete {file}: {error.strerror}") from error


def _is_old(file: Path) -> bool:
    try:
        return time.time() - file.stat().st_mtime > ALONE
    except FileNotFoundError:
        return False
