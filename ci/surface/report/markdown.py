# SPDX-License-Identifier: BSD-3-Clause
"""The report for a comment on a pull request.

Names and texts come from a pull request, which anybody can write: nothing in them may become a
mention, a link, a heading or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci.surface.model import Finding
from ci.surface.report.report import (
    Report,
    by_surface,
    place,
    plain,
    remarks,
    summary,
    users,
    words_of,
)

LIMIT = 65_000  # characters; GitHub takes 65,536 in a comment, and others add a line or two
ROOM_FOR_REST = 200  # of them, for the line that says what did not fit
LONGEST = 1_000  # of a declaration or a message
MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-!|~$^])")
ZERO_WIDTH_SPACE = "\u200b"


def render(report: Report, limit: int = LIMIT) -> str:
    """The report as Markdown of at most `limit` characters; the worst findings have precedence."""
    verdict = [f"**{text(report.verdict)}**"] if report.verdict else []
    head = "\n\n".join(
        [f"## {text(report.title)}", *verdict, text(summary(report)), *map(text, remarks(report))]
    )
    kept, room = [], limit - len(head) - ROOM_FOR_REST
    for finding in report.findings:
        room -= len(_finding(finding)) + len(_surface(finding.surface))
        if room < 0:
            break
        kept.append(finding)
    parts = [head, *_sections(kept)]
    if rest := len(report.findings) - len(kept):
        parts.append(f"**{rest} more** did not fit; all are in the report as JSON.")
    return "\n\n".join(parts) + "\n"


def text(words: str) -> str:
    """Text in which nothing is markup, with what stands between backticks as code."""
    pieces = shortened(plain(words)).split("`")
    return "".join(code(p) if i % 2 and p else _escaped(p) for i, p in enumerate(pieces))


def code(words: str) -> str:
    """Text as a code span, whatever backticks it has of its own."""
    words = shortened(plain(words))
    fence = "`" * (_longest_run(words) + 1)
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def shortened(words: str) -> str:
    """Text that is not longer than a report bears."""
    return words if len(words) <= LONGEST else words[: LONGEST - 4] + " ..."


def _sections(findings: list[Finding]) -> Iterator[str]:
    for surface, group in by_surface(findings):
        yield "\n\n".join([_surface(surface), *map(_finding, group)])


def _surface(surface: str) -> str:
    return f"### {text(surface)}"


def _finding(finding: Finding) -> str:
    lines = [f"**{words_of(finding.severity)}** {code(finding.name)} - {text(finding.message)}"]
    if block := _declarations(finding):
        lines.append(block)
    about = filter(
        None, (f"concerns {', '.join(finding.concerns)}", users(finding), _probe(finding))
    )
    lines.append(f"<sub>{text(finding.rule)}; {text('; '.join(about))}</sub>")
    if finding.hint:
        lines.append(f"{text(finding.hint)}")
    return "\n\n".join(lines)


def _declarations(finding: Finding) -> str:
    lines = []
    for sign, declaration in (("-", finding.before), ("+", finding.after)):
        if declaration:
            lines.append(f"{sign} {shortened(plain(declaration.text))}")
            lines.append(f"  // {shortened(plain(place(declaration)))}")
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return "\n".join([f"{fence}diff", *lines, fence])


def _probe(finding: Finding) -> str:
    return f"probe: {finding.probe.replace('_', ' ')}" if finding.probe else ""


def _escaped(words: str) -> str:
    """No markup, no HTML; no mention, reference or link, which GitHub finds in plain text too."""
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    words = MARKUP.sub(r"\\\1", words)
    words = re.sub(r"(@|\\#|://|\bGH\\-|\bwww\.)", rf"\1{ZERO_WIDTH_SPACE}", words)
    return words.replace("://" + ZERO_WIDTH_SPACE, f":{ZERO_WIDTH_SPACE}//")


def _longest_run(words: str) -> int:
    return max((len(run) for run in re.findall("`+", words)), default=0)
