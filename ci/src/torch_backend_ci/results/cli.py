# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci results`: what was measured, kept for years."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.output import printable, say, show
from torch_backend_ci.results import compact, layout
from torch_backend_ci.results.add import Fate, add
from torch_backend_ci.results.export import cli as export
from torch_backend_ci.results.list import SHOWN, Wanted, as_json, as_table, select
from torch_backend_ci.results.schema import RUNS
from torch_backend_ci.results.store import Store

MAX_DAYS = 36_500
DESCRIPTION = """
Keep reports of the suite and findings on the surface in a store: a directory of Parquet files by
date. It can be on a git branch or in a bucket; the dashboard is built from it. Its files never
change, so any number of processes can add at once, and the union of two stores is a store
(docs/ci/results.md).
"""
ADD = """
Add reports (.json, .json.gz) of whole runs, findings of `surface diff` and `surface check`, and
directories of them. A missing store is created. A report is stored once, so the same command can be
repeated after an interruption. A rejected file does not affect the others.
"""
ADD_EXAMPLES = """
examples:
  torch-backend-ci results add --store results report.json.gz
  torch-backend-ci results add --store results nightly/2026-11-22 findings-2.12-2.13.json

Exit status: 0 everything is in the store; 1 some files were rejected, each with a reason; 2 the
store cannot be read or written.
"""


LIST = """
List the runs of a store, newest first. `checks` is the number of checks in the run, `bad` the
number of those that make it red. Incomplete runs and runs of selected checks have no level.
"""
LIST_EXAMPLES = """
examples:
  torch-backend-ci results list --store results --backend puone-sim --torch 2.13
  torch-backend-ci results list --store results --since 2026-11-01 --json | jq -r '.runs[].id'

Exit status: 0 success, also if no run is found; 2 the store cannot be read.
"""
COMPACT = """
Merge the files of each month into one segment, and delete files that interrupted commands left more
than a day ago. With --keep-results also drop the results of old runs; the rows of the runs, with
their levels and totals, stay. Other processes can read and add at the same time.
"""
COMPACT_EXAMPLES = """
examples:
  torch-backend-ci results compact --store results --dry-run
  torch-backend-ci results compact --store results --keep-results 400

Dropped results do not come back when their report is added again.
Exit status: 0 done, or nothing to do; 2 the store cannot be read or written.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A sub-verb for each operation on a store."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = DESCRIPTION
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    sub = _subverb(subverbs, "add", "add reports and findings", ADD, ADD_EXAMPLES, _add)
    sub.add_argument("--store", type=Path, required=True, metavar="D", help="created if missing")
    sub.add_argument("files", type=Path, nargs="+", metavar="FILE", help="or a directory of files")
    sub = _subverb(subverbs, "list", "list the runs", LIST, LIST_EXAMPLES, _list)
    sub.add_argument("--store", type=Path, required=True, metavar="D", help="the store")
    several: dict[str, Any] = {"action": "append", "default": []}
    sub.add_argument(
        "--backend", **several, metavar="B", help="name of the backend; may be repeated"
    )
    sub.add_argument(
        "--torch", **several, metavar="V", help="release line or version; may be repeated"
    )
    sub.add_argument("--since", type=_date, metavar="DATE", help="runs since this day (UTC)")
    sub.add_argument(
        "--aligned", action="store_true", help="only complete runs of the standard checks"
    )
    sub.add_argument("--json", action="store_true", help="print all columns as JSON")
    sub.add_argument("-o", dest="out", type=Path, metavar="FILE", help="default: the terminal")
    export.add_arguments(
        subverbs.add_parser("export", help="write runs and results for other programs")
    )
    sub = _subverb(
        subverbs, "compact", "merge files, drop old results", COMPACT, COMPACT_EXAMPLES, _compact
    )
    sub.add_argument("--store", type=Path, required=True, metavar="D", help="the store")
    sub.add_argument(
        "--keep-results",
        type=_days,
        metavar="DAYS",
        help="counted back from the newest run of the store (default: keep all)",
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="print what would be done, and change nothing"
    )


def _subverb(
    subverbs: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    line: str,
    description: str,
    examples: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    sub = subverbs.add_parser(
        name,
        help=line,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.set_defaults(run=run)
    return sub


def _add(args: argparse.Namespace) -> int:
    fates: Counter[Fate] = Counter()
    for told in add(args.store, args.files, datetime.now(timezone.utc)):
        fates[told.fate] += 1
        say(f"{told.fate.value}: {told.file}: {printable(told.detail)}")
    if not fates:
        raise CiError("there are no reports in what was given")
    say(", ".join(f"{fates[fate]} {fate.value}" for fate in Fate if fates[fate]))
    return Exit.FINDINGS if fates[Fate.REFUSED] else Exit.OK


def _list(args: argparse.Namespace) -> int:
    wanted = Wanted(args.backend, args.torch, args.since, args.aligned)
    store = Store(args.store)
    columns = tuple(RUNS) if args.json else SHOWN
    rows = store.read(lambda database: select(database, wanted, columns))
    show(as_json(rows) if args.json else as_table(rows), args.out)
    documents = sum(1 for _ in layout.findings(args.store))
    snapshot = store.snapshot()
    say(
        f"{len(rows)} of {len(snapshot.runs)} runs; documents of findings: {documents}; "
        f"segments: {len(snapshot.segments)}"
    )
    return Exit.OK


def _compact(args: argparse.Namespace) -> int:
    store, would = Store(args.store), "would be " if args.dry_run else ""
    merged = False
    for merge in compact.compact(store, args.keep_results, args.dry_run):
        merged = True
        dropped = f", {merge.dropped:,} results {would}dropped" if merge.dropped else ""
        count = len(merge.old)
        say(f"{merge.month}: {merge.runs} runs, {count} segments {would}replaced{dropped}")
    remains = compact.remains(store)
    for file in remains:
        say(f"{file.relative_to(args.store)}: left behind, {would}deleted")
        if not args.dry_run:
            compact.sweep(file)
    if not merged and not remains:
        say("there is nothing to do")
    return Exit.OK


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2026-11-22") from None


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days from 1 to {MAX_DAYS}")
    return int(text)
