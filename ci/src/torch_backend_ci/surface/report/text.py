# SPDX-License-Identifier: BSD-3-Clause
"""The report for a terminal."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from typing import TextIO

from torch_backend_ci.surface.model import Declaration, Finding, Severity
from torch_backend_ci.surface.report.report import (
    Report,
    about,
    by_surface,
    place,
    plain,
    probe,
    remarks,
    summary,
    users,
    words_of,
)

WIDTH = 100
COLOURS = {
    Severity.COMPILE_BREAK: "\033[1;31m",
    Severity.SILENT_BREAK: "\033[1;35m",
    Severity.REBUILD: "\033[33m",
    Severity.SEMANTIC: "\033[33m",
    Severity.NEW_CAPABILITY: "\033[32m",
    Severity.DEPRECATED: "\033[36m",
    Severity.COSMETIC: "\033[2m",
}
RESET = "\033[0m"


def render(report: Report, *, colour: bool = False) -> str:
    """The report as lines of text."""
    lines = [plain(report.verdict)] if report.verdict else []
    lines += [f"{plain(report.title)}: {summary(report)}", *map(plain, remarks(report))]
    for surface, findings in by_surface(report.findings):
        lines += ["", f"== {plain(surface)} =="]
        for finding in findings:
            lines += _finding(finding, colour)
    return "\n".join(lines) + "\n"


def wants_colour(stream: TextIO) -> bool:
    """Whether colour is welcome: a terminal, and nobody said NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def _finding(finding: Finding, colour: bool) -> Iterator[str]:
    severity = words_of(finding.severity)
    if colour:
        severity = f"{COLOURS[finding.severity]}{severity}{RESET}"
    yield f"{severity}: {plain(finding.name)} [{finding.rule}]"
    yield from _wrapped(about(finding))
    for sign, declaration in (("-", finding.before), ("+", finding.after)):
        if declaration:
            yield from _declaration(sign, declaration)
    concerns = f"concerns {', '.join(finding.concerns)}"
    yield from _wrapped("; ".join(filter(None, (concerns, users(finding), probe(finding)))))
    if finding.hint:
        yield from _wrapped(f"hint: {finding.hint}")


def _declaration(sign: str, declaration: Declaration) -> Iterator[str]:
    yield f"    {sign} {plain(declaration.text)}"
    yield f"      at {plain(place(declaration))}"


def _wrapped(text: str) -> list[str]:
    indent = " " * 4
    return textwrap.wrap(
        plain(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
