# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci pin`: the exact torches that the CI runs against."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from torch_backend_ci.checkout import ROOT

DESCRIPTION = """
A pin names one exact torch: version, upstream commit, wheels with their hashes. Each is a file
ci/pins/NAME.yaml; a configuration of the CI is a pin with a driver.
"""
SUBVERBS = {  # each a module pin/verbs/NAME.py with HELP, EXAMPLES, add_arguments, run
    "show": "print pins as text, JSON or pip requirements",
    "check": "compare pins with the package index and PyTorch's repository",
    "update": "move pins to the newest suitable torch",
    "open-pr": "open one pull request per pin that can move",
    "findings": "list surface changes of the pins that a commit moves, for the gate",
    "steps": "list surface changes from pin to pin, for the dashboard",
    "matrix": "print the matrix of a workflow: a job per pin, driver and shard",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sub-verbs, and what they share."""
    parser.description = DESCRIPTION
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    for name, line in SUBVERBS.items():
        module = importlib.import_module(f"torch_backend_ci.pin.verbs.{name.replace('-', '_')}")
        sub = subverbs.add_parser(
            name,
            help=line,
            description=module.__doc__,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("pins", nargs="*", metavar="NAME", help="default: all pins")
        sub.add_argument(
            "--root", type=Path, default=ROOT, metavar="DIR", help="default: %(default)s"
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
