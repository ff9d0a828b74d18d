# SPDX-License-Identifier: BSD-3-Clause
"""A check run on a commit: one per name and `external_id`, which says what it reports on.

Its annotations go in batches, and GitHub only ever adds to them: a repeated command sends those
that are missing. (A batch is there twice if GitHub took it, lost its answer, and was asked again.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import github
from github.Repository import Repository

from torch_backend_ci.github.change import Change
from torch_backend_ci.github.markdown import cut, shorten, visible

_BATCH = 50  # annotations in one request
_TEXT_LIMIT = 65_535  # bytes of the summary, and of the details
_MESSAGE_LIMIT = 64_000  # bytes of an annotation's message
_TITLE_LIMIT = 255

Conclusion = Literal["success", "failure", "neutral", "action_required"]


class Annotation(NamedTuple):
    """A remark on a line of a file; its texts are shown as they are, not as markdown."""

    path: str
    line: int
    level: Literal["notice", "warning", "failure"]
    title: str
    message: str


@dataclass(frozen=True)
class CheckRun:
    """A check that has ended."""

    name: str
    head_sha: str
    external_id: str
    conclusion: Conclusion
    title: str
    summary: str  # trusted markdown
    text: str = ""  # trusted markdown: the details
    annotations: Sequence[Annotation] = ()
    details_url: str | None = None


def changes(repo: Repository, wanted: CheckRun) -> Iterator[Change]:
    """What makes the commit have this check run."""
    annotations = [_shortened(annotation) for annotation in wanted.annotations]
    known = _known(repo, wanted)
    where = f"on {wanted.head_sha[:12]}"
    says = f"the check {wanted.name} {where}: {wanted.conclusion}"
    if known is None:
        first, rest = annotations[:_BATCH], annotations[_BATCH:]
        run = _Made(repo)
        yield Change(f"report {says}", partial(run.make, _fields(wanted, first), wanted.head_sha))
    else:
        first, rest = [], _missing(known, annotations)
        run = _Made(repo, known)
        if _differs(known, wanted):
            yield Change(f"change {says}", partial(run.edit, _fields(wanted, [])))
    for start in range(0, len(rest), _BATCH):
        batch = rest[start : start + _BATCH]
        fields = {"output": _output(wanted, batch)}
        yield Change(f"annotate {len(batch)} lines {where}", partial(run.edit, fields))


class _Made:
    """The check run that an earlier change has made, or that was there."""

    def __init__(self, repo: Repository, run: github.CheckRun.CheckRun | None = None) -> None:
        self._repo, self._run = repo, run

    def make(self, fields: dict[str, Any], head_sha: str) -> None:
        self._run = self._repo.create_check_run(head_sha=head_sha, **fields)

    def edit(self, fields: dict[str, Any]) -> None:
        assert self._run is not None, "changes are done in their order"
        self._run.edit(**fields)


def _known(repo: Repository, wanted: CheckRun) -> github.CheckRun.CheckRun | None:
    runs = repo.get_commit(wanted.head_sha).get_check_runs(check_name=wanted.name, filter="all")
    ours = [run for run in runs if run.external_id == wanted.external_id]
    return max(ours, key=lambda run: run.id, default=None)  # the one that GitHub shows


def _fields(wanted: CheckRun, annotations: Sequence[Annotation]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": wanted.name,
        "external_id": wanted.external_id,
        "status": "completed",
        "conclusion": wanted.conclusion,
        "output": _output(wanted, annotations),
    }
    return fields | ({"details_url": wanted.details_url} if wanted.details_url else {})


def _output(wanted: CheckRun, annotations: Sequence[Annotation]) -> dict[str, Any]:
    output: dict[str, Any] = _texts(wanted)
    if annotations:
        output["annotations"] = [_annotation(annotation) for annotation in annotations]
    return output


def _texts(wanted: CheckRun) -> dict[str, str]:
    return {
        "title": shorten(visible(wanted.title), _TITLE_LIMIT),
        "summary": cut(wanted.summary, _TEXT_LIMIT),
        "text": cut(wanted.text, _TEXT_LIMIT),
    }


def _annotation(annotation: Annotation) -> dict[str, str | int]:
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": annotation.level,
        "title": annotation.title,
        "message": annotation.message,
    }


def _shortened(annotation: Annotation) -> Annotation:
    message = visible(annotation.message, keep="\n\t")
    return annotation._replace(
        title=shorten(visible(annotation.title), _TITLE_LIMIT),
        message=shorten(message, _MESSAGE_LIMIT),
    )


def _differs(known: github.CheckRun.CheckRun, wanted: CheckRun) -> bool:
    texts = {name: getattr(known.output, name) or "" for name in ("title", "summary", "text")}
    return known.conclusion != wanted.conclusion or texts != _texts(wanted)


def _missing(
    known: github.CheckRun.CheckRun, annotations: Sequence[Annotation]
) -> list[Annotation]:
    there = Counter(
        (a.path, a.start_line, a.annotation_level, a.title, a.message)
        for a in known.get_annotations()
    )
    missing = []
    for annotation in annotations:
        if there[annotation]:
            there[annotation] -= 1
        else:
            missing.append(annotation)
    return missing
