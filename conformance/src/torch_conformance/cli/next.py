# SPDX-License-Identifier: BSD-3-Clause
"""List what to implement next, ranked by the number of checks that need it.

Missing operators, data types, functions of the device module, hooks, methods of the guard and
capabilities are extracted from PyTorch's error messages. Capabilities that the descriptor declares
false are left out. The option --next of pytest prints the same list after a run.

  python -m torch_conformance next build/conformance/mychip.json -n 50

Exit code 0: printed; 4: the report is unusable.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.bringup import todo
from torch_conformance.cli.inputs import load_one
from torch_conformance.results.reader import plain
from torch_conformance.spec import catalogue

SUMMARY = "list what to implement next, by the number of checks that need it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report, and how many steps."""
    parser.add_argument("report", type=Path, metavar="REPORT", help="report of a run (JSON)")
    parser.add_argument(
        "-n",
        "--steps",
        type=int,
        default=todo.MAX_STEPS,
        metavar="N",
        help=f"steps to print (default: {todo.MAX_STEPS})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the list; it judges nothing, so the exit code is 0."""
    document = load_one(arguments.report)
    for line in todo.lines(document.report, catalogue.load(), max(arguments.steps, 1)):
        print(plain(line))
    return 0
