# SPDX-License-Identifier: BSD-3-Clause
"""Check expectations files as a reviewer would.

Reported are: an entry that matches no check or repeats an earlier one, a reason without content, a
link that is not an address, an expiry in the past or too far in the future, a pattern for whole
chapters, an entry that --update-expectations wrote and that was not reviewed.

  python -m torch_conformance lint known.yaml

Exit code 0: no problem; 1: problems were found; 4: a file cannot be read.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from torch_conformance.authoring import discovery
from torch_conformance.cli import CommandError
from torch_conformance.expectations import ExpectationsError
from torch_conformance.expectations.file import read
from torch_conformance.expectations.lint import findings

SUMMARY = "check expectations files: dead entries, empty reasons, expiry"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="expectations file")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each objection."""
    known = {check.id for check in discovery.all_checks()}
    found = 0
    for file in arguments.files:
        try:
            content = read(file)
        except ExpectationsError as error:
            raise CommandError(str(error)) from None
        lines = [*content.problems, *findings(content.entries, known, datetime.date.today())]
        print("\n".join(lines) or f"{file}: {len(content.entries)} entries, nothing to object to")
        found += len(lines)
    return 1 if found else 0
