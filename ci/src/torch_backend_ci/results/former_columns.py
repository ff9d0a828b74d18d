# SPDX-License-Identifier: BSD-3-Clause
"""The rows of Parquet files, whatever suite wrote them, with today's columns.

This is the one place that reads an issue or a mismatch off a text: earlier suites stored no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import duckdb

from torch_backend_ci.results import duck
from torch_backend_ci.results.schema import Column
from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import Outcome

_VALUES = r"^[^\n]*\b(\d+) of (\d+) elements differ; first at "
_WRONG, _OF = (f"regexp_extract(message, {duck.literal(_VALUES)}, {group})" for group in (1, 2))

#: A column that earlier suites did not write, from those that they wrote.
_MADE = {
    "broken": "MAP {}::MAP(VARCHAR, VARCHAR)",
    "issue": f"CASE outcome WHEN '{Outcome.BLOCKED_UPSTREAM}' THEN split_part(reason, '; ', 1) END",
    "mismatch": (
        f"CASE WHEN coalesce({_WRONG}, '') = '' THEN NULL WHEN {_WRONG} = {_OF} "
        f"THEN '{Mismatch.ALL_VALUES}' ELSE '{Mismatch.SOME_VALUES}' END"
    ),
}


def query(
    database: duckdb.DuckDBPyConnection, files: Iterable[Path], columns: dict[str, Column]
) -> str:
    """A query for the rows; the files must be there."""
    files = list(files)
    if not _MADE.keys() & columns.keys():
        return duck.of_parquet(files, columns)
    alike: dict[frozenset[str], list[Path]] = defaultdict(list)
    for file in files:
        alike[frozenset(_MADE.keys() - _written(database, file))].append(file)
    queries = [_filled(some, columns, lacking) for lacking, some in alike.items()]
    return " UNION ALL ".join(queries) or duck.of_parquet([], columns)


def _written(database: duckdb.DuckDBPyConnection, file: Path) -> set[str]:
    """The names in the schema of a file."""
    rows = database.execute(f"SELECT name FROM parquet_schema({duck.pattern(file)})").fetchall()
    return {name for (name,) in rows}


def _filled(files: list[Path], columns: dict[str, Column], lacking: frozenset[str]) -> str:
    kept = {name: column for name, column in columns.items() if name not in lacking}
    rows = duck.of_parquet(files, kept)
    if not lacking:
        return rows
    listed = ", ".join(
        f'{_MADE[name]} AS "{name}"' if name in lacking else f'"{name}"' for name in columns
    )
    return f"SELECT {listed} FROM ({rows})"
