# SPDX-License-Identifier: BSD-3-Clause
"""Write a report as one HTML file, to attach to an issue and read in any browser.

It has the verdict and the level, what was run, outcomes by chapter, causes of failure with a
command that repeats each, checks that were not run and why, the expectations used, the ranking of
CPU fallbacks, and every check. It loads no other file, runs no script, and supports light and dark
themes.

  python -m torch_conformance report build/conformance/mychip.json -o mychip.html

Exit code 0: written, and the run is green; 1: written, and the run is red; 4: the report is
unusable.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli.inputs import load_one, write
from torch_conformance.results import page

SUMMARY = "write a report as one HTML file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report and where to."""
    parser.add_argument("report", type=Path, metavar="REPORT", help="report of a run (JSON)")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the page (default: REPORT.html)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    document = load_one(arguments.report)
    write(arguments.output or arguments.report.with_suffix(".html"), page.render(document))
    print(f"the run is {document.state}")
    return 0 if document.state == "green" else 1
