# SPDX-License-Identifier: BSD-3-Clause
"""Compare two runs: what regressed, what improved, which checks are missing.

A check regressed when its outcome is worse than before (a wrong result is worse than none that is
promised, and better than a crash: crash -> fail is an improvement), when it newly runs by CPU
fallback, or when it is new and unexpected. Runs with other options, selections or suites are not
compared, unless --across names the difference. Runs with different versions of torch are always
compared.

  python -m torch_conformance compare old.json new.json --across suite

Exit code 0: no regression; 1: a regression, a missing check or an incomplete run; 4: the reports
are unusable or cannot be compared.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from torch_conformance.cli import CommandError
from torch_conformance.cli.inputs import load
from torch_conformance.results.comparison import (
    ALIKE,
    Comparison,
    IncomparableError,
    compare,
    side_of,
)
from torch_conformance.results.reader import plain

SUMMARY = "compare two reports: regressions, improvements, missing checks"
MAX_SHOWN = 40

SECTIONS = (
    ("lost", "LOST: this comparison is not of all there should be"),
    ("regressions", "regressions"),
    ("removed", "checks that are gone (--allow-removed if that is meant)"),
    ("improvements", "improvements"),
    ("withdrawn", "bad before, not asked any more"),
    ("capabilities", "capabilities"),
    ("added", "new checks"),
    ("changed", "other changes"),
    ("notes", "differences between the runs"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The reports, and what may differ."""
    parser.add_argument("old", type=Path, metavar="OLD", help="report of the earlier run (JSON)")
    parser.add_argument("new", type=Path, metavar="NEW", help="report of the later run (JSON)")
    parser.add_argument(
        "--across",
        action="append",
        choices=tuple(ALIKE),
        default=[],
        metavar="WHAT",
        help=f"accept this difference; repeatable: {', '.join(ALIKE)}",
    )
    parser.add_argument(
        "--allow-removed", action="store_true", help="missing checks are not a regression"
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    old, new = (side_of(load(file)) for file in (arguments.old, arguments.new))
    try:
        made = compare(old, new, frozenset(arguments.across), arguments.allow_removed)
    except IncomparableError as error:
        names = " ".join(f"--across {name}" for name in error.names)
        hint = f"\n  if that is meant: {names}" if names else ""
        raise CommandError(plain(f"{error}{hint}")) from None
    if arguments.json:
        print(json.dumps(made.to_json(), indent=1))
    else:
        print(plain("\n".join(_lines(made))))
    return 0 if made.good else 1


def _lines(made: Comparison) -> Iterator[str]:
    counts = [f"{len(made.regressions)} regressions", f"{len(made.improvements)} improvements"]
    counts += [f"{len(made.removed)} gone", f"{len(made.added)} new"]
    yield f"{made.old.name} -> {made.new.name}: {', '.join(counts)}"
    for name, title in SECTIONS:
        entries = getattr(made, name)
        if entries:
            yield f"{title}:"
            yield from (f"  {_line(entry)}" for entry in entries[:MAX_SHOWN])
        if len(entries) > MAX_SHOWN:
            yield f"  ... and {len(entries) - MAX_SHOWN} more (all with --json)"


def _line(entry: object) -> str:
    return str(entry).replace("\n", " ")
