# SPDX-License-Identifier: BSD-3-Clause
"""What several verbs take and write: reports and output files."""

from __future__ import annotations

import sys
from pathlib import Path

from torch_conformance.cli import CommandError
from torch_conformance.judging import verification
from torch_conformance.results import reader
from torch_conformance.results.writing import replace
from torch_conformance.spec import strict
from torch_conformance.spec.outcome import CannotLoad

MAX_PROBLEMS = 50


def load(file: Path) -> reader.Document:
    """A report that may be relied on."""
    try:
        return reader.load(file)
    except reader.ReportError as error:
        raise CommandError(str(error)) from None


def load_one(file: Path) -> reader.Document:
    """As `load`; on stderr, which report it is: a part is easily taken for the whole."""
    document = load(file)
    run = document.run
    differs_by = run.selection.differs_by if run.selection else ()
    what = f"a part: {', '.join(differs_by)}" if differs_by else "the standard selection"
    line = f"{file}: {len(document.checks)} checks of {run.backend}, {what}, {run.started}"
    print(reader.plain(line), file=sys.stderr)
    return document


def read(file: Path, limit: int = strict.MAX_BYTES) -> bytes:
    """The content of a file of bounded size."""
    try:
        return strict.read(file, limit)
    except strict.Malformed as error:
        raise CommandError(f"{file}: {error}") from None


def own_suite(without_list: bool) -> verification.Own | None:
    """The suite to compare with, unless that is to be left out."""
    if without_list:
        return None
    try:
        return verification.own()
    except CannotLoad as error:
        raise CommandError(f"{error}, or use --without-list") from None


def listed(problems: list[str]) -> str:
    """Problems as lines for people, the first of many."""
    shown = [f"  {problem}" for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        shown.append(f"  ... and {len(problems) - MAX_PROBLEMS} more")
    return reader.plain("\n".join(shown))


def write(file: Path, content: str | bytes) -> None:
    """Write a file as a whole, and say so."""
    try:
        replace(file, content)
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot write {file}: {error}") from None
    print(f"wrote {file}")
