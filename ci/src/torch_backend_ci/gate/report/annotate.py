# SPDX-License-Identifier: BSD-3-Clause
"""The verdict as annotations of a workflow run."""

from __future__ import annotations

from collections.abc import Iterator

from torch_backend_ci.gate.report.words import (
    TITLES,
    about,
    causes,
    change,
    first_line,
    headline,
    is_decided_by,
    told,
)
from torch_backend_ci.gate.verdict import Check, Means, Outcome, Verdict
from torch_backend_ci.github.actions import Level, annotation
from torch_backend_ci.github.markdown import visible

MOST = 9  # GitHub shows ten of a level for each step


def show(verdict: Verdict) -> None:
    """Print them, if this is a step of a workflow."""
    for level, title, message in remarks(verdict):
        annotation(level, message, title=title)


def remarks(verdict: Verdict) -> Iterator[tuple[Level, str, str]]:
    """Level, title and message of each."""
    if verdict.outcome is not Outcome.OK:
        yield "error", f"gate: {verdict.outcome.value}", headline(verdict)
    found = list(told([*verdict.of(Means.INFRASTRUCTURE), *verdict.of(Means.REGRESSION)]))
    for one in found[:MOST]:
        check, lanes = one
        level: Level = "error" if is_decided_by(verdict, one) else "warning"
        title = f"{TITLES[check.kind][0]}: {check.id}"
        yield level, visible(title), visible(_message(verdict, check, lanes))


def _message(verdict: Verdict, check: Check, lanes: tuple[str, ...]) -> str:
    said = [f"{change(check)} on {', '.join(lanes)}", first_line(check.message)]
    said += [f"{word} {cause.name} {about(cause)}" for word, cause in causes(verdict, check)]
    return "; ".join(filter(None, said))
