# SPDX-License-Identifier: BSD-3-Clause
"""Rewrite an expectations file from a report.

Checks that pass are removed, new failures are added as xfail, to be reviewed within 30 days. The
option --update-expectations does the same after a run; this verb is for reports that were merged or
come from another machine.

  python -m torch_conformance update-expectations whole.json known.yaml

Exit code 0: written, or nothing to change; 4: the report is incomplete or unusable.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from torch_conformance.authoring import discovery
from torch_conformance.cli import CommandError
from torch_conformance.cli.inputs import load
from torch_conformance.expectations import ExpectationsError
from torch_conformance.expectations.update import update

SUMMARY = "rewrite an expectations file from a report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report and the file."""
    parser.add_argument("report", type=Path, help="report of a complete run")
    parser.add_argument("expectations", type=Path, help="file to rewrite; created if missing")


def run(arguments: argparse.Namespace) -> int:
    """Rewrite the file; print a line for each change."""
    document = load(arguments.report)
    if not document.complete:
        raise CommandError(f"{arguments.report} is of a run that is not complete: run it again")
    results = {result.id: result for result in document.checks}
    known = {check.id for check in discovery.all_checks()} | set(results)
    surfaces = {id.partition("/")[0] for id in known}
    try:
        changes = update(arguments.expectations, results, known, surfaces, datetime.date.today())
    except ExpectationsError as error:
        raise CommandError(str(error)) from None
    print("\n".join(changes.lines() or [f"{arguments.expectations} says what happened"]))
    return 0
