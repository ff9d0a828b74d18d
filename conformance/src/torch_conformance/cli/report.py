# SPDX-License-Identifier: BSD-3-Clause
"""Write a report as one HTML file that can be attached to an issue and read in any browser.

It has the verdict and the level, what was run, outcomes by surface, causes of failure with the
command that repeats them, what was not asked and why, the expectations used, the ranking of CPU
fallbacks, and every check. It loads nothing, runs no script, and follows the reader's light or dark
theme.

Exit code 0: written, and the run is green; 1: written, and it is not; 4: the report cannot be used.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli.inputs import load, write
from torch_conformance.results import page

SUMMARY = "write a report as one HTML file that can be attached anywhere"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report and where to."""
    parser.add_argument("report", type=Path, metavar="REPORT", help="report of a run (JSON)")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the page (default: REPORT.html)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    document = load(arguments.report)
    write(arguments.output or arguments.report.with_suffix(".html"), page.render(document))
    print(f"the run is {document.state}")
    return 0 if document.state == "green" else 1
