# SPDX-License-Identifier: BSD-3-Clause
"""`results list`: which runs are in a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb

from torch_backend_ci.output import printable
from torch_backend_ci.results.accept import NAME

SCHEMA = "urn:torch-conformance:runs:1"
HEAD: tuple[str, ...] = (
    "started (UTC)",
    "backend",
    "torch",
    "level",
    "checks",
    "bad",
    "run",
    "",
)
SHOWN = ("started", "backend", "torch", "title", "totals", "bad", "id", "why_not", "stored")
"""The columns that the table needs."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """Which runs are wanted; all by default."""

    backends: Sequence[str] = ()
    """Labels."""
    torches: Sequence[str] = ()
    """Lines or versions."""
    since: date | None = None
    """A day in UTC."""
    aligned: bool = False
    """Only complete runs of the standard checks."""


def select(
    database: duckdb.DuckDBPyConnection, wanted: Wanted, columns: Sequence[str]
) -> list[Row]:
    """These columns of the runs that are wanted, newest first."""
    conditions = {
        "backend IN (SELECT unnest(?))": list(wanted.backends),
        "(line IN (SELECT unnest(?)) OR torch IN (SELECT unnest(?)))": list(wanted.torches),
        "started >= ?": wanted.since,
        "why_not IS NULL AND ?": wanted.aligned,
    }
    given = {text: value for text, value in conditions.items() if value}
    where = " AND ".join(given) or "true"
    parameters = [value for text, value in given.items() for _ in range(text.count("?"))]
    chosen = ", ".join(f'"{column}"' for column in columns)
    query = f"SELECT {chosen} FROM runs WHERE {where} ORDER BY started DESC, id"
    found = database.execute(query, parameters).fetchall()
    return [dict(zip(columns, row, strict=True)) for row in found]


def as_json(rows: Sequence[Row]) -> str:
    """All columns (schema.py), for programs; times are in UTC."""
    plain = [
        row
        | {"started": row["started"].isoformat() + "Z", "options": json.loads(row["options"])}
        | {"driver": row["driver"] and json.loads(row["driver"])}
        for row in rows
    ]
    return json.dumps({"schema": SCHEMA, "runs": plain}, indent=1) + "\n"


def as_table(rows: Sequence[Row]) -> str:
    """A line for each run, for people."""
    table = [HEAD, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(map(_aligned, line, widths, range(len(HEAD)))).rstrip() for line in table)
    return "".join(f"{line}\n" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    notes = [f"not assessed: {row['why_not']}"] if row["why_not"] else []
    notes += [] if row["stored"] else ["without results"]
    level = "" if row["why_not"] else row["title"]
    counts = (f"{sum(row['totals'].values()):,}", f"{row['bad']:,}")
    started = row["started"].strftime("%Y-%m-%d %H:%M")
    cells = (started, row["backend"], row["torch"], level, *counts, row["id"][:NAME])
    return (*map(printable, cells), printable("; ".join(notes))[:100])


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column in (4, 5) else cell.ljust(width)
