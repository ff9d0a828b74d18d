# SPDX-License-Identifier: BSD-3-Clause
"""The report for a comment on a pull request.

Names and texts come from a pull request, which anybody can write: nothing in them may become a
mention, a link, a heading or HTML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from torch_backend_ci.surface.model import Finding
from torch_backend_ci.surface.report.report import (
    Report,
    about,
    place,
    plain,
    probe,
    remarks,
    summary,
    words_of,
)

LIMIT = 65_000  # characters; GitHub takes 65,536 in a comment, and others add a line or two
ROOM_FOR_REST = 200  # of them, for the line that says what did not fit
LONGEST = 1_000  # of a declaration or a message
MANY = 8  # more changes of one kind than this are listed by name only
NAMED = 150  # of them
MARKUP = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
ZERO_WIDTH_SPACE = "\u200b"


class Block(NamedTuple):
    """A paragraph about one finding, or about many of a kind."""

    surface: str
    findings: list[Finding]
    rendered: str


def render(report: Report, limit: int = LIMIT) -> str:
    """The report as Markdown of at most `limit` characters; the worst findings have precedence."""
    verdict = [f"**{text(report.verdict)}**"] if report.verdict else []
    said = map(text, (summary(report), *remarks(report)))
    head = [f"## {text(report.title)}", *verdict, *said]
    kept, room = [], limit - sum(map(len, head)) - ROOM_FOR_REST
    for block in _blocks(report.findings):
        room -= len(block.rendered) + len(_heading(block.surface)) + 4
        if room < 0:
            break
        kept.append(block)
    parts = [*head, *_sections(kept)]
    if rest := len(report.findings) - sum(len(block.findings) for block in kept):
        parts.append(f"**{rest} more** did not fit; all are in the report as JSON.")
    return "\n\n".join(parts) + "\n"


def text(words: str) -> str:
    """Text in which nothing is markup, with what stands between backticks as code."""
    pieces = shortened(plain(words)).split("`")
    return "".join(code(p) if i % 2 and plain(p) else _escaped(p) for i, p in enumerate(pieces))


def code(words: str) -> str:
    """Text as a code span, whatever backticks it has of its own."""
    words = shortened(plain(words))
    fence = "`" * (_longest_run(words) + 1)
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def shortened(words: str) -> str:
    """Text that is not longer than a report bears."""
    return words if len(words) <= LONGEST else words[: LONGEST - 4] + " ..."


def _blocks(findings: tuple[Finding, ...]) -> list[Block]:
    """The findings as paragraphs, in the order of the worst of each."""
    count = Counter(map(_kind, findings))
    blocks: dict[object, Block] = {}
    for number, finding in enumerate(findings):
        kind = _kind(finding)
        alone = count[kind] < MANY or (finding.before and finding.after)
        key = number if alone else kind
        blocks.setdefault(key, Block(finding.surface, [], "")).findings.append(finding)
    return [block._replace(rendered=_paragraph(block.findings)) for block in blocks.values()]


def _kind(finding: Finding) -> tuple[object, ...]:
    return finding.surface, finding.domain, finding.rule, finding.before is None


def _sections(blocks: list[Block]) -> Iterator[str]:
    """The paragraphs under the surfaces; that of the worst finding comes first."""
    order = list(dict.fromkeys(block.surface for block in blocks))
    together = sorted(blocks, key=lambda block: order.index(block.surface))
    for surface, group in groupby(together, lambda block: block.surface):
        yield _heading(surface)
        yield from (block.rendered for block in group)


def _heading(surface: str) -> str:
    return f"### {text(surface)}"


def _paragraph(findings: list[Finding]) -> str:
    if len(findings) < MANY:
        return "\n\n".join(map(_finding, findings))
    one = findings[0]
    count = Counter(finding.name for finding in findings)
    names = [code(name) + (f" ({n})" if n > 1 else "") for name, n in count.items()]
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    shown = ", ".join(names[:NAMED])
    what = text(one.rule.replace("_", " "))
    return f"**{words_of(one.severity)}** {len(findings)} times: {what}: {shown}{rest}"


def _finding(finding: Finding) -> str:
    lines = [
        f"**{words_of(finding.severity)}** {code(finding.name)} {text(about(finding))}",
        _declarations(finding),
        f"<sub>{text('; '.join(_facts(finding)))}</sub>",
    ]
    return "\n\n".join(lines + ([text(finding.hint)] if finding.hint else []))


def _facts(finding: Finding) -> Iterator[str]:
    yield finding.rule
    yield f"concerns {', '.join(finding.concerns)}"
    if finding.used_by:
        yield f"used by {len(finding.used_by)} known backends"
    if finding.probe:
        yield probe(finding)


def _declarations(finding: Finding) -> str:
    lines = []
    for sign, declaration in (("-", finding.before), ("+", finding.after)):
        if declaration:
            lines.append(f"{sign} {shortened(plain(declaration.text))}")
            lines.append(f"  // {shortened(plain(place(declaration)))}")
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return "\n".join([f"{fence}diff", *lines, fence])


def _escaped(words: str) -> str:
    """No markup, no HTML; no mention, reference or link, which GitHub finds in plain text too."""
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    words = MARKUP.sub(r"\\\g<0>", words)
    words = re.sub(r"(@|\\#|://|\bGH-|\bwww\.)", rf"\1{ZERO_WIDTH_SPACE}", words)
    return words.replace("://" + ZERO_WIDTH_SPACE, f":{ZERO_WIDTH_SPACE}//")


def _longest_run(words: str) -> int:
    return max((len(run) for run in re.findall("`+", words)), default=0)
