# SPDX-License-Identifier: BSD-3-Clause
"""DuckDB as it is used here: in memory, offline, with files of exactly the columns we name."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from torch_backend_ci.results.schema import Column, as_struct, empty, names

MEMORY = "2GB"
"""What DuckDB may use; a sort that needs more goes through files."""
_OFFLINE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
# Zstandard, and groups small enough that reading one check reads little.
_FORMAT = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880, USE_TMP_FILE false"


@contextlib.contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection, and a place for what does not fit into memory."""
    with tempfile.TemporaryDirectory(prefix="results-") as scratch:
        config = _OFFLINE | {"memory_limit": MEMORY, "temp_directory": scratch}
        with duckdb.connect(config=config) as database:
            yield database


def of_parquet(files: Iterable[Path], columns: dict[str, Column]) -> str:
    """A query for the rows of Parquet files."""
    paths = ", ".join(map(pattern, files))
    if not paths:
        return empty(columns)
    return f"SELECT {names(columns)} FROM read_parquet([{paths}])"


def of_json(file: Path, columns: dict[str, Column]) -> str:
    """A query for the rows of a file of JSON lines."""
    given = f"format = 'newline_delimited', columns = {as_struct(columns)}"
    return f"SELECT {names(columns)} FROM read_json({pattern(file)}, {given})"


def copy(database: duckdb.DuckDBPyConnection, query: str, order: str, file: Path) -> None:
    """Write what a query gives as Parquet. Equal rows make equal bytes."""
    database.execute(f"COPY ({query} ORDER BY {order}) TO {literal(str(file))} ({_FORMAT})")


def literal(text: str) -> str:
    """A string in SQL."""
    return "'" + text.replace("'", "''") + "'"


def pattern(file: Path) -> str:
    """A string in SQL that DuckDB's readers take for this file, and not for a pattern of names."""
    return literal("".join(f"[{char}]" if char in "*?[" else char for char in str(file)))
