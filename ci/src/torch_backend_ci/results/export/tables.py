# SPDX-License-Identifier: BSD-3-Clause
"""What an export consists of: files, and DuckDB's queries for what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from torch_backend_ci.results import duck
from torch_backend_ci.results.schema import IS_BAD, RESULTS, RUNS, Column
from torch_conformance.spec.outcome import EXECUTED

SQL = Path(__file__).parent / "sql"
SCHEMA = Path(__file__).parent / "clickhouse.sql"
CLICKHOUSE = ("crcr_workflow_job", "conformance_run", "conformance_check")
_NESTED = ("MAP(", "STRUCT(")
_PARQUET = "FORMAT parquet, COMPRESSION zstd"
_ORDER_OF_RUNS = "ORDER BY runs.started, runs.id"


class Table(NamedTuple):
    """A file of an export."""

    file: str
    query: str
    options: str
    """Of DuckDB's COPY."""


def plain(kind: str) -> Iterator[Table]:
    """The store's two relations as `parquet`, `csv` or `ndjson`."""
    options, columns = {
        "parquet": (_PARQUET, _as_they_are),
        "csv": ("FORMAT csv, HEADER", _flat),
        "ndjson": ("FORMAT json", _as_they_are),
    }[kind]
    runs, results = columns("runs", RUNS), columns("results", RESULTS)
    yield Table(f"runs.{kind}", f"SELECT {runs} FROM runs {_ORDER_OF_RUNS}", options)
    joined = "results JOIN runs ON results.run = runs.id"
    query = f"SELECT {results} FROM {joined} {_ORDER_OF_RUNS}, results.check_id"
    yield Table(f"results.{kind}", query, options)


def clickhouse() -> Iterator[Table]:
    """The tables of clickhouse.sql."""
    for name in CLICKHOUSE:
        query = (SQL / f"{name}.sql").read_text(encoding="utf-8")
        yield Table(f"{name}.parquet", query, _PARQUET)


def macros(repository: str) -> Iterator[str]:
    """What the queries of clickhouse() call, in SQL."""
    yield f"CREATE TEMP MACRO repository() AS {duck.literal(repository)}"
    executed = ", ".join(sorted(f"'{outcome}'" for outcome in EXECUTED))
    yield f"CREATE TEMP MACRO is_bad(outcome, waiver_list) AS {IS_BAD}"
    yield (
        "CREATE TEMP MACRO is_green(complete, bad, totals) AS "
        f"complete AND bad = 0 AND list_sum(list_transform([{executed}], o -> totals[o])) > 0"
    )


def loading() -> str:
    """SQL by which ClickHouse's client reads the files of clickhouse(), where they are."""
    lines = [f"INSERT INTO {t} FROM INFILE '{t}.parquet' FORMAT Parquet;\n" for t in CLICKHOUSE]
    return f"-- SPDX-License-Identifier: BSD-3-Clause\n{''.join(lines)}"


def _as_they_are(relation: str, columns: Mapping[str, Column]) -> str:
    return ", ".join(f'{relation}."{name}"' for name in columns)


def _flat(relation: str, columns: Mapping[str, Column]) -> str:
    """With JSON where a cell would have to hold more than one value."""
    return ", ".join(
        f'to_json({relation}."{name}")::VARCHAR AS "{name}"'
        if column.type.startswith(_NESTED) or column.type.endswith("[]")
        else f'{relation}."{name}"'
        for name, column in columns.items()
    )
