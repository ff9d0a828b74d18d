# SPDX-License-Identifier: BSD-3-Clause
"""The verdict as GitHub's markdown, for the summary of a step and for the comment on a PR."""

from __future__ import annotations

from collections.abc import Iterator

from torch_backend_ci.gate.report.words import (
    TITLES,
    Told,
    about,
    causes,
    change,
    changes,
    counted,
    first_line,
    headline,
    is_decided_by,
    told,
)
from torch_backend_ci.gate.verdict import Check, Class, Lane, Means, Outcome, Verdict
from torch_backend_ci.github.markdown import block, code, cut, fit, shorten, size, table, text

LIMIT = 60_000  # bytes; GitHub takes 65,536 in a comment, and others add to it
MARKS = {
    Outcome.OK: "\u2705 ok",
    Outcome.REGRESSION: "\u274c regression",
    Outcome.INFRASTRUCTURE: "\u26a0\ufe0f infrastructure",
}
HEADINGS = {Means.INFRASTRUCTURE: "Lost", Means.REGRESSION: "Regressions"}
LONGEST_LINE = 300
LONGEST_BLOCK = 2_000
NAMED = 30  # checks of a class that decides nothing


def render(verdict: Verdict, limit: int = LIMIT) -> str:
    """At most `limit` bytes; what decides has precedence."""
    head = [f"## {MARKS[verdict.outcome]}", "", text(headline(verdict)), ""]
    head += [f"- {_problem(problem)}" for problem in verdict.problems]
    head += ["", _lanes(verdict), "", *_of_lanes(verdict)]
    tail = "\n".join(["", *_also(verdict), *_footer(verdict)])
    begin = cut("\n".join(head), limit // 2)
    tail = cut(tail, limit // 4)
    room = limit - size(begin) - size(tail) - 2
    decisive = fit(list(_decisive(verdict)), room, "checks; all are in the verdict")
    return "\n".join([begin, decisive, tail]).rstrip("\n") + "\n"


def _lanes(verdict: Verdict) -> str:
    rows = [_row(lane) for lane in verdict.lanes]
    return table(["lane", "outcome", "torch", "compared with", "checks", "what changed"], rows)


def _row(lane: Lane) -> list[str]:
    return [
        code(lane.name) + ("" if lane.required else " (decides nothing)"),
        MARKS[lane.outcome],
        text(lane.torch or "unknown"),
        text(lane.baseline or "nothing"),
        str(sum(lane.counts.values())),
        changes(lane) or "nothing",
    ]


def _of_lanes(verdict: Verdict) -> Iterator[str]:
    """Why lanes are worth nothing, and what else there is to know of them."""
    for lane in verdict.lanes:
        for problem in lane.problems:
            yield f"- {code(lane.name)}: {_problem(problem)}"
    for lane in verdict.lanes:
        for note in lane.notes:
            yield f"- {code(lane.name)}: {text(shorten(note, LONGEST_LINE))}"
    for note in verdict.notes:
        yield f"- {text(shorten(note, LONGEST_LINE))}"


def _problem(problem: str) -> str:
    return f"**{text(shorten(problem, LONGEST_LINE * 3))}**"


def _decisive(verdict: Verdict) -> Iterator[str]:
    """A piece for each check that is lost or regressed, where it decides first, with its message
    and how to repeat it."""
    for decides, where in ((True, ""), (False, " that decide nothing")):
        for means, title in HEADINGS.items():
            heading = f"\n### {title}{where}\n\n"
            for one in told(verdict.of(means)):
                if decides == is_decided_by(verdict, one):
                    yield heading + _check(verdict, one)
                    heading = ""


def _check(verdict: Verdict, one: Told) -> str:
    check = one.check
    what = f"{TITLES[check.kind][0]}, {change(check).replace('->', chr(0x2192))}"
    lanes = ", ".join(map(code, one.lanes))
    needs = f" ({', '.join(check.requirements)})" if check.requirements else ""
    lines = [f"- {code(check.id)}{needs} on {lanes}: {what}"]
    if said := first_line(check.message):
        lines.append(f"  {code(shorten(said, LONGEST_LINE))}")
    for word, cause in causes(verdict, check):
        told_of = text(shorten(about(cause), LONGEST_LINE))
        lines.append(f"  fails {word} {code(cause.name)} {told_of}")
    return "  \n".join(lines) + _details(check)


def _details(check: Check) -> str:
    more = "\n".join(filter(None, (check.message, check.repro)))
    if more == first_line(check.message):
        return ""
    quoted = block(shorten(more, LONGEST_BLOCK))
    return "\n\n" + _folded("message and how to repeat it", quoted)


def _folded(summary: str, markdown: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{markdown}\n\n</details>\n"


def _also(verdict: Verdict) -> Iterator[str]:
    """What decides nothing: the classes, each with some names."""
    notes = verdict.of(Means.NOTE)
    for kind in Class:
        found = list(told(check for check in notes if check.kind is kind))
        if found:
            names = [code(one.check.id) for one in found[:NAMED]]
            more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
            listed = f"{', '.join(names)}{more}"
            yield _folded(counted(kind, len(found)), listed)


def _footer(verdict: Verdict) -> Iterator[str]:
    if verdict.left_out:
        yield f"{verdict.left_out} more checks are not in the verdict.\n"
    if verdict.head_sha:
        yield f"<sub>Judged: {verdict.head_sha}</sub>"
