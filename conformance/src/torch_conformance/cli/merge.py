# SPDX-License-Identifier: BSD-3-Clause
"""Merge the reports of the shards of a run, and verify that each check appears exactly once.

The shards must belong to one run: same backend, torch, suite, seed, options, capabilities and
selection, each shard from 1/N to N/N present once and complete. Each report has the number of
selected checks and a digest of their ids; together the shards must have exactly these checks. With
--shard-by they must use the same durations. Platforms may differ, and are listed. Every record of
the merged report has the number of its shard.

  python -m torch_conformance merge shard-*.json -o whole.json

Exit code 0: merged, no outcome is unexpected; 1: merged, some are, or nothing was executed; 4: the
reports are not the shards of one run, and nothing was written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli import CommandError
from torch_conformance.cli.inputs import load, write
from torch_conformance.results import reader
from torch_conformance.results.junit import junit
from torch_conformance.results.merging import MergeError, merge
from torch_conformance.results.writing import dumps

SUMMARY = "merge the reports of the shards of a run"


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
    """Merge, validate the result with the strict reader, write it."""
    documents = [load(file) for file in arguments.shards]
    try:
        data = dumps(merge(documents))
        merged = reader.parse(data, str(arguments.output))
    except (MergeError, reader.ReportError) as error:
        raise CommandError(reader.plain(str(error))) from None
    write(arguments.output, data)
    write(
        arguments.output.with_suffix(".xml"),
        junit(merged.run.backend, merged.run.started, merged.checks),
    )
    bad = "" if merged.state == "green" else f", {merged.state}"
    print(f"{len(merged.checks)} checks of {len(documents)} shards, each exactly once{bad}")
    return 0 if merged.state == "green" else 1
