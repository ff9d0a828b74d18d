# SPDX-License-Identifier: BSD-3-Clause
"""What a pull request gets: a check run on its head commit, and a comment. Pure.

Every text of the evidence goes through github/markdown.py, here or where it is rendered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch_backend_ci.gate.report import markdown as gate_markdown
from torch_backend_ci.gate.verdict import Outcome
from torch_backend_ci.github import markdown
from torch_backend_ci.github.check_run import Annotation, CheckRun, Conclusion
from torch_backend_ci.report.evidence import Evidence
from torch_backend_ci.surface.diff import order
from torch_backend_ci.surface.model import Declaration, Finding, Severity
from torch_backend_ci.surface.report import markdown as surface_markdown
from torch_backend_ci.surface.report.report import summary
from torch_backend_ci.torch_tree.layout import to_repository

CHECK = "verdict"
MARKER = "gate"
MOST_ANNOTATIONS = 100
_LONGEST_WHY = 2000  # bytes
_MOST_LINES = 1_000_000  # of a file
_GATE_LIMIT = 40_000  # bytes; the comment has 65,536
_SURFACE_LIMIT = 20_000  # characters
_INFRASTRUCTURE = f"## {gate_markdown.MARKS[Outcome.INFRASTRUCTURE]}"
_LEVELS: Mapping[Severity, Literal["failure", "warning", "notice"]] = {
    Severity.COMPILE_BREAK: "failure",
    Severity.SILENT_BREAK: "failure",
    Severity.REBUILD: "warning",
    Severity.SEMANTIC: "warning",
    Severity.NEW_CAPABILITY: "notice",
    Severity.DEPRECATED: "notice",
}


@dataclass(frozen=True)
class Run:
    """The run, as GitHub describes it."""

    id: int
    head_sha: str
    conclusion: str
    url: str


class Told(NamedTuple):
    """Check run and comment; without `news` no comment is created."""

    check: CheckRun
    comment: str
    news: bool


def told(run: Run, evidence: Evidence, files: Collection[str]) -> Told:
    """What a run found; annotations are only made in `files`, those that changed."""
    conclusion, title = _conclusion(run, evidence)
    body = "\n\n".join(_sections(evidence))
    annotations = tuple(_annotations(evidence, files))
    check = _check(run, conclusion, title, body, annotations)
    clean = evidence.findings is not None and not _of_concern(evidence)
    return Told(check, f"{_about(run)}\n\n{body}", conclusion != "success" or not clean)


def told_without(run: Run, why: str) -> Told:
    """The same for a run without valid data."""
    shown = markdown.block(markdown.shorten(why, _LONGEST_WHY))
    body = (
        f"{_INFRASTRUCTURE}\n\nThe run ended as {markdown.code(run.conclusion)} and left no "
        f"verdict that can be used. The change is not to blame; run it again.\n\n{shown}"
    )
    title = f"infrastructure: no verdict of a run that ended as {run.conclusion}"
    check = _check(run, "action_required", title, body, ())
    return Told(check, f"{_about(run)}\n\n{body}", news=True)


def _check(
    run: Run, conclusion: Conclusion, title: str, body: str, annotations: tuple[Annotation, ...]
) -> CheckRun:
    return CheckRun(
        name=CHECK,
        head_sha=run.head_sha,
        external_id=str(run.id),
        conclusion=conclusion,
        title=title,
        summary=body,
        annotations=annotations,
        details_url=run.url,
    )


def _conclusion(run: Run, evidence: Evidence) -> tuple[Conclusion, str]:
    """Never better than the run: a job of it may have failed that the gate knows nothing of."""
    outcome = evidence.verdict.outcome
    found = summary(evidence.findings) if evidence.findings else "surface not examined"
    if outcome is Outcome.INFRASTRUCTURE:
        return "action_required", f"infrastructure; {found}"
    if outcome is Outcome.REGRESSION:
        return "failure", f"regression; {found}"
    if run.conclusion != "success":
        return "failure", f"the gate is ok, but the run ended as {run.conclusion}; {found}"
    return "success", f"ok; {found}"


def _about(run: Run) -> str:
    shown = markdown.link(f"run {run.id}", run.url)
    return f"Of commit {markdown.code(run.head_sha[:12])}, by {shown}."


def _sections(evidence: Evidence) -> Iterator[str]:
    yield gate_markdown.render(evidence.verdict, _GATE_LIMIT)
    if evidence.findings is None:
        yield "The surface was not examined: the run left no findings."
    else:
        yield surface_markdown.render(evidence.findings, _SURFACE_LIMIT).strip()


def _annotations(evidence: Evidence, files: Collection[str]) -> Iterator[Annotation]:
    placed = ((finding, _place(finding)) for finding in _of_concern(evidence))
    kept = [(finding, place) for finding, place in placed if place and place[0] in files]
    for finding, (path, line) in kept[:MOST_ANNOTATIONS]:
        yield Annotation(path, line, _LEVELS[finding.severity], _title(finding), _message(finding))


def _of_concern(evidence: Evidence) -> list[Finding]:
    """The findings that are not cosmetic, worst first."""
    findings = evidence.findings.findings if evidence.findings else ()
    return sorted((f for f in findings if f.severity in _LEVELS), key=order)


def _place(finding: Finding) -> tuple[str, int] | None:
    """File of the repository and line, as they are now; line 1 of a file that lost something."""
    declaration = finding.after or finding.before
    path = to_repository(declaration.file) if declaration else None
    return (path, _line(finding.after)) if path else None


def _line(declaration: Declaration | None) -> int:
    return declaration.line if declaration and 0 < declaration.line < _MOST_LINES else 1


def _title(finding: Finding) -> str:
    return f"{finding.severity.value.replace('_', ' ')}: {finding.name}"


def _message(finding: Finding) -> str:
    return f"{finding.message}\n{finding.hint}" if finding.hint else finding.message
