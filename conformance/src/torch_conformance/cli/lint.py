# SPDX-License-Identifier: BSD-3-Clause
"""Examine expectations files as a reviewer would.

Objections: an entry that matches no check or that an earlier one makes superfluous, a reason that
explains nothing, a link that is no address, an expiry that is over or too far away, a pattern for
whole surfaces, an entry that --update-expectations wrote and nobody reviewed. Exit code 0: none,
1: some, 4: a file cannot be read.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from torch_conformance.authoring.discovery import all_checks
from torch_conformance.cli import CommandError
from torch_conformance.expectations import ExpectationsError
from torch_conformance.expectations.file import read
from torch_conformance.expectations.lint import findings

SUMMARY = "examine expectations files: dead entries, empty reasons, expiry"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="expectations file")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each objection."""
    known = {check.id for check in all_checks()}
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
