# SPDX-License-Identifier: BSD-3-Clause
"""Make one report of the shards of a run, and prove that each check appears in it exactly once.

The shards have to be of one run: same backend, torch, suite, seed, options, capabilities and
selection, every shard of 1/N to N/N there once and complete. Each says how many checks the whole
run selected and carries a digest of their ids; together they must have exactly these. Those cut by
durations (--shard-by) must have been cut by the same ones. Platforms may differ, and are listed.
Every record of the merged report says which shard it is from.

Exit code 0: merged, no outcome is bad; 1: merged, some are bad or nothing was executed; 4: these
are not the shards of one run, and nothing was written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli import CommandError
from torch_conformance.cli.inputs import load, write
from torch_conformance.results import reader, report
from torch_conformance.results.merging import MergeError, merge

SUMMARY = "make one report of the shards of a run; prove that each check is there once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shards and the result."""
    parser.add_argument("shards", type=Path, nargs="+", metavar="REPORT", help="report of a shard")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the merged report; JUnit is written beside it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Merge, read what came of it through the strict reader, write it."""
    documents = [load(file) for file in arguments.shards]
    try:
        text = report.dumps(merge(documents))
        merged = reader.parse(text.encode(), str(arguments.output))
    except (MergeError, reader.ReportError) as error:
        raise CommandError(reader.plain(str(error))) from None
    write(arguments.output, text)
    write(arguments.output.with_suffix(".xml"), report.junit(merged.run["backend"], merged.checks))
    bad = "" if merged.state == "green" else f", {merged.state}"
    print(f"{len(merged.checks)} checks of {len(documents)} shards, each exactly once{bad}")
    return 0 if merged.state == "green" else 1
