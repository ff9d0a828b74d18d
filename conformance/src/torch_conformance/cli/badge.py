# SPDX-License-Identifier: BSD-3-Clause
"""Write the badge of a report: its conformance level as JSON for shields.io and as an SVG.

FILE.json is for https://shields.io/badges/endpoint-badge. FILE.svg needs no other file and has text
for screen readers. A run without a level (see `level --help`) has no badge.

  python -m torch_conformance badge build/conformance/mychip.json -o docs/conformance

Exit code 0: written; 1: the run has no level, and nothing was written; 4: the report is unusable.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from torch_conformance.cli.inputs import load, write
from torch_conformance.results import badge, levels
from torch_conformance.results.reader import plain

SUMMARY = "write the level of a report as a badge: SVG, and JSON for shields.io"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report and where to."""
    parser.add_argument("report", type=Path, metavar="REPORT", help="report of a run (JSON)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="name of the badge; .json and .svg are appended (default: REPORT-badge)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write both forms."""
    document = load(arguments.report)
    verdict = levels.assess(document.report)
    if verdict.name is None:
        reason = verdict.unassessed or f"Core is not reached; see `level {arguments.report}`"
        print(plain(f"no badge: {reason}"))
        return 1
    stem = arguments.output or arguments.report.with_name(f"{arguments.report.stem}-badge")
    endpoint = badge.endpoint(document.run.torch.version, verdict)
    write(stem.with_name(f"{stem.name}.json"), json.dumps(endpoint, indent=1) + "\n")
    run = document.run
    picture = badge.svg(run.backend, run.torch.version, verdict)
    write(stem.with_name(f"{stem.name}.svg"), picture)
    return 0
