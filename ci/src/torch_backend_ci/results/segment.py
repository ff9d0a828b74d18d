# SPDX-License-Identifier: BSD-3-Clause
"""Committing a segment: the results first, then the runs, whose file makes them count."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb

from torch_backend_ci.errors import CiError
from torch_backend_ci.results import duck, layout
from torch_backend_ci.results.layout import Segment


def commit(
    database: duckdb.DuckDBPyConnection,
    folder: Path,
    stored: Mapping[str, int],
    runs: str,
    results: str,
) -> Segment:
    """Write what two queries give into a directory of the store; errors are for `writing`.

    `stored` are the ids of the runs, and how many results of each the query gives.
    """
    made = Segment(folder, layout.segment_name(stored))
    if any(stored.values()):
        layout.put(made.results, lambda part: duck.copy(database, results, "check_id, run", part))
    layout.put(made.runs, lambda part: duck.copy(database, runs, "id", part))
    return made


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say of an error of the disk what it means, as a CiError."""
    try:
        yield
    except OSError as error:
        raise CiError(_told(folder, error.strerror or str(error))) from error
    except duckdb.IOException as error:
        raise CiError(_told(folder, str(error).partition("\n")[0])) from error


def _told(folder: Path, why: str) -> str:
    return f"cannot write into {folder}: {why}. What is stored stays; again goes on from there"
