# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci results export`: the store for other programs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import duckdb

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.output import say
from torch_backend_ci.results import duck
from torch_backend_ci.results.export import folder, tables
from torch_backend_ci.results.export.tables import Table
from torch_backend_ci.results.store import Store

DESCRIPTION = """
Write runs and results into a new directory, for programs that read Parquet, CSV or NDJSON, or as
tables of ClickHouse with the schema of RFC-0054. The directory appears when all files are written.
The same store gives the same bytes.
"""
EXAMPLES = """
examples:
  torch-backend-ci results export --store D --format csv -o for-a-spreadsheet
  torch-backend-ci results export --store D --format clickhouse --repository me/torch-mychip \\
      --since 2026-11-15 -o tables

docs/ci/results-export.md describes each file, and how to load them into ClickHouse.
Exit status: 0 written; 2 the store cannot be read, or the directory exists and has files.
"""
FORMATS = ("parquet", "csv", "ndjson", "clickhouse")
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--store, -o, --format, --since; of ClickHouse also --repository."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add = parser.add_argument
    add("--store", type=Path, required=True, metavar="D", help="made by `results add`")
    add("-o", "--output", type=Path, required=True, metavar="OUT", help="a new directory")
    add("--format", choices=FORMATS, default="parquet", help="default: %(default)s")
    add(
        "--since", type=_day, metavar="DATE", help="only runs that began on this day (UTC) or later"
    )
    add("--repository", type=_repository, metavar="OWNER/NAME", help="repository of the "
        "backend; required by ClickHouse, as a part of its keys")  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write all files or none."""
    of_clickhouse = args.format == "clickhouse"
    if of_clickhouse and not args.repository:
        raise CiError(
            "--format clickhouse needs --repository OWNER/NAME: it is in the tables' keys"
        )
    wanted = [*(tables.clickhouse() if of_clickhouse else tables.plain(args.format))]
    try:
        Store(args.store).read(lambda database: _write(database, args, wanted))
    except duckdb.Error as error:
        raise CiError(f"cannot write {args.output}: {error}") from None
    return Exit.OK


def _write(
    database: duckdb.DuckDBPyConnection, args: argparse.Namespace, wanted: Iterable[Table]
) -> None:
    """Fill the directory from the views `runs` and `results`."""
    _prepare(database, args)
    with folder.new(args.output) as part:
        for table in wanted:
            to = duck.literal(str(part / table.file))
            written = database.execute(f"COPY ({table.query}) TO {to} ({table.options})").fetchone()
            say(f"{table.file}: {written[0] if written else 0:,} rows")
        if args.repository:
            (part / "schema.sql").write_bytes(tables.SCHEMA.read_bytes())
            (part / "load.sql").write_text(tables.loading(), encoding="utf-8")


def _prepare(database: duckdb.DuckDBPyConnection, args: argparse.Namespace) -> None:
    """Narrow the views to what was asked for, and give the queries what they call."""
    for macro in tables.macros(args.repository or ""):
        database.execute(macro)
    if args.since:
        for name in ("runs", "results"):
            database.execute(f"ALTER VIEW {name} RENAME TO all_{name}")
        asked = f"started >= DATE {duck.literal(args.since.isoformat())}"
        database.execute(f"CREATE VIEW runs AS SELECT * FROM all_runs WHERE {asked}")
        mine = "run IN (SELECT id FROM runs)"
        database.execute(f"CREATE VIEW results AS SELECT * FROM all_results WHERE {mine}")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2026-11-22") from None


def _repository(text: str) -> str:
    if not _REPOSITORY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not OWNER/NAME")
    return text
