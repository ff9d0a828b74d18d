# SPDX-License-Identifier: BSD-3-Clause
"""What several verbs take and write: reports and output files."""

from __future__ import annotations

from pathlib import Path

from conformance.cli import CommandError
from conformance.report import replace
from conformance.results import reader


def load(file: Path) -> reader.Document:
    """A report that may be relied on."""
    try:
        return reader.load(file)
    except reader.ReportError as error:
        raise CommandError(str(error)) from None


def write(file: Path, content: str) -> None:
    """Write a file as a whole, and say so."""
    try:
        replace(file, content)
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot write {file}: {error}") from None
    print(f"wrote {file}")
