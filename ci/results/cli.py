# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci results`: what was measured, kept for years."""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from ci.errors import CiError, Exit
from ci.output import printable, say
from ci.results.add import Fate, add
from ci.results.export import cli as export

DESCRIPTION = """
Keep reports of the suite and findings of the surface in a store: a folder of Parquet files by
date, which can live on a git branch or in a bucket, and which the dashboard is built from.
Nothing in it is ever changed, so any number may add to it at once, and the union of two stores
is a store (docs/ci/results.md).
"""
ADD = """
Add reports (.json, .json.gz) of whole runs, findings of `surface diff` and `surface check`, and
folders of them. A store that is not there is made. What is there already is not added again, so
after an interruption the same command can be given again. A file that is refused refuses no other.
"""
ADD_EXAMPLES = """
examples:
  python -m ci results add --store results report.json.gz
  python -m ci results add --store results nightly/2026-11-22 findings-2.12-2.13.json

Exit status: 0 all of it is in the store; 1 some files were refused, and said why; 2 the store
cannot be read or written.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A sub-verb for each thing that can be done with a store."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = DESCRIPTION
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    _add_add(subverbs)
    export.add_arguments(subverbs.add_parser("export", help="write them for other programs"))


def _add_add(subverbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = subverbs.add_parser(
        "add",
        help="add reports and findings",
        description=ADD,
        epilog=ADD_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("--store", type=Path, required=True, metavar="D", help="made if not there")
    sub.add_argument("files", type=Path, nargs="+", metavar="FILE", help="or a folder of them")
    sub.set_defaults(run=_add)


def _add(args: argparse.Namespace) -> int:
    fates: Counter[Fate] = Counter()
    for told in add(args.store, args.files, datetime.now(timezone.utc)):
        fates[told.fate] += 1
        say(f"{told.fate.value}: {told.file}: {printable(told.detail)}")
    if not fates:
        raise CiError("there are no reports in what was given")
    say(", ".join(f"{fates[fate]} {fate.value}" for fate in Fate if fates[fate]))
    return Exit.FINDINGS if fates[Fate.REFUSED] else Exit.OK
