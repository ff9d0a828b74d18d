# SPDX-License-Identifier: BSD-3-Clause
"""What one merged change is to backends: an entry of the feed, or none. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from torch_backend_ci.changed_files import ChangedFile
from torch_backend_ci.document import UNIQUE, Natural, Part, Positive, Text, Time, once, one_of
from torch_backend_ci.feed import hints
from torch_backend_ci.github.markdown import shorten
from torch_backend_ci.label.plan import PlannedLabel, Touched, plan
from torch_backend_ci.label.rules import Rules
from torch_backend_ci.surface.diff import order
from torch_backend_ci.surface.model import Declaration, Finding, Severity
from torch_backend_ci.torch_tree.layout import to_repository

REFERENCE_BACKEND = "reference-backend: touched"  # of label/labels.yaml
MOST_FINDINGS = 100
MOST_FILES = 200
LONGEST = 1000  # bytes of a declaration or a message
_ID_DIGITS = 12  # of the commit

#: No entry says anything of cosmetic findings.
Severe = Annotated[str, one_of(*(s.value for s in Severity if s is not Severity.COSMETIC))]
_Commit = Annotated[str, Meta(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$", max_length=64)]
_Names = Annotated[tuple[Text, ...], UNIQUE]
_Long = Annotated[str, Meta(max_length=LONGEST)]


class EntryFinding(Part, frozen=True):
    """A finding of the change."""

    identity: Annotated[
        str,
        Meta(pattern="^[0-9a-f]{16}$", max_length=16, description="As in findings.schema.json."),
    ]
    rule: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
    severity: Severe
    surface: Text
    name: Annotated[Text, Meta(description="Of the declaration.")]
    before: Annotated[
        _Long | None, Meta(description="The declaration as it was written; null if it is new.")
    ]
    after: Annotated[
        _Long | None,
        Meta(description="The declaration as it is written now; null if it is gone."),
    ]
    message: Text
    hint: Annotated[str | None, Meta(description="What the owner of a backend does about it.")]
    used_by: Annotated[_Names, Meta(description="Known backends that use the declaration.")]

    def __post_init__(self) -> None:
        once("used_by", self.used_by)


class Entry(Part, frozen=True):
    """What one merged change is to backends."""

    id: Annotated[
        str,
        Meta(
            pattern="^[1-9][0-9]*-[0-9a-f]{12}$",
            description="The PR and the first digits of the commit: the same change, the same id.",
        ),
    ]
    pr: Positive
    title: _Long
    url: Annotated[str, Meta(pattern="^https?://[!-~]+$", description="Of the PR.")]
    commit: _Commit
    merged_at: Time
    reverts: Annotated[_Commit | None, Meta(description="The commit that this one takes back.")]
    surfaces: _Names
    labels: _Names
    severity: Annotated[
        Severe | None, Meta(description="Of the worst finding; null if there is none.")
    ]
    judged: Annotated[
        bool,
        Meta(
            description="Whether findings were looked for; if not, that there are none says "
            "nothing."
        ),
    ]
    findings: Annotated[
        tuple[EntryFinding, ...], Meta(max_length=MOST_FINDINGS, description="Worst first.")
    ]
    findings_left_out: Natural
    reference_backend: Annotated[
        tuple[Text, ...],
        Meta(
            max_length=MOST_FILES,
            description="The files of the reference backend that changed.",
        ),
    ]
    reference_backend_left_out: Natural

    def __post_init__(self) -> None:
        once("surfaces", self.surfaces)
        once("labels", self.labels)


@dataclass(frozen=True)
class Merged:
    """A pull request as it came to the default branch, or the revert of one."""

    pr: int
    title: str
    url: str
    commit: str
    merged_at: str  # "2026-11-21T01:02:03Z"
    reverts: str | None  # the commit that this one takes back
    files: tuple[ChangedFile, ...]

    @property
    def id(self) -> str:
        """Of its entry."""
        return f"{self.pr}-{self.commit[:_ID_DIGITS]}"


def make(
    merged: Merged,
    findings: Sequence[Finding] | None,
    rules: Rules,
    not_covered: Iterable[str] = (),
) -> tuple[Entry | None, tuple[PlannedLabel, ...]]:
    """The entry, if there is anything to tell backends, and the labels that go with it.

    Without `findings` (nobody looked for any) the entry says so. `not_covered` are files of the
    push of which having no findings says nothing.
    """
    own = {name for file in merged.files for name in file.names}
    planned = plan(merged.files, findings, rules, own & set(not_covered))
    surfaces = _surfaces(planned, rules)
    backend = _reference_backend(planned)
    if not surfaces and not backend:
        return None, ()
    told = sorted((f for f in findings or () if f.severity is not Severity.COSMETIC), key=order)
    entry = Entry(
        id=merged.id,
        pr=merged.pr,
        title=shorten(merged.title, LONGEST),
        url=merged.url,
        commit=merged.commit,
        merged_at=merged.merged_at,
        reverts=merged.reverts,
        surfaces=surfaces,
        labels=tuple(label.name for label in planned),
        severity=told[0].severity.value if told else None,
        judged=findings is not None,
        findings=tuple(map(_finding, told[:MOST_FINDINGS])),
        findings_left_out=max(0, len(told) - MOST_FINDINGS),
        reference_backend=backend[:MOST_FILES],
        reference_backend_left_out=max(0, len(backend) - MOST_FILES),
    )
    return entry, planned


def attributed(
    findings: Sequence[Finding] | None, merged: Sequence[Merged]
) -> list[Sequence[Finding] | None]:
    """The findings of a push, for each of the changes that it brought.

    A finding belongs to the change of whose files one holds its declaration; one that is in no
    file of any (a macro elsewhere made it) goes to each: better twice than not at all.
    """
    if findings is None or len(merged) == 1:
        return [findings] * len(merged)
    names = [{name for file in change.files for name in file.names} for change in merged]
    claimed = set().union(*names)
    located = [(finding, _places(finding) & claimed) for finding in findings]
    return [[f for f, where in located if where & own or not where] for own in names]


def _places(finding: Finding) -> set[str]:
    """The files of the repository in which the declaration stands and stood."""
    declarations = filter(None, (finding.before, finding.after))
    paths = (to_repository(declaration.file) for declaration in declarations)
    return {path for path in paths if path}


def _surfaces(planned: Iterable[PlannedLabel], rules: Rules) -> tuple[str, ...]:
    names = {label.name for label in planned}
    return tuple(label.surface for label in rules.labels if label.surface and label.name in names)


def _reference_backend(planned: Iterable[PlannedLabel]) -> tuple[str, ...]:
    reasons = [reason for p in planned if p.name == REFERENCE_BACKEND for reason in p.reasons]
    return tuple(reason.file for reason in reasons if isinstance(reason, Touched))


def _finding(finding: Finding) -> EntryFinding:
    return EntryFinding(
        identity=finding.identity,
        rule=finding.rule,
        severity=finding.severity.value,
        surface=finding.surface,
        name=shorten(finding.name, LONGEST),
        before=_text(finding.before),
        after=_text(finding.after),
        message=shorten(finding.message, LONGEST),
        hint=hints.of(finding),
        used_by=finding.used_by,
    )


def _text(declaration: Declaration | None) -> str | None:
    return shorten(declaration.text, LONGEST) if declaration else None
