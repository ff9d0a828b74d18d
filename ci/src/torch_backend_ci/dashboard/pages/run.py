# SPDX-License-Identifier: BSD-3-Clause
"""The page of a run: what was run, how far it came, what was bad and why, what changed.

It is made from the run, its bad results and the run before it in its series, and from nothing
later: the page of a run stays as it is while others are added.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Meta

from torch_backend_ci.dashboard import documents, paths
from torch_backend_ci.dashboard.causes import Failure
from torch_backend_ci.dashboard.model import Change, Result, Run, Step
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.render import seconds
from torch_backend_ci.dashboard.texts import Cut, cut
from torch_backend_ci.dashboard.words import OUTCOMES
from torch_backend_ci.document import Natural, Part, Sha256, Time, one_of
from torch_conformance.results.causes import grouped

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

#: Limits: causes of a run, checks of a cause, changes of a kind, blockers of the next level.
MAX_CAUSES, MAX_NAMED, MAX_CHANGES, MAX_BLOCKERS = 20, 5, 50, 10
#: Characters of all messages and repros of the page, and the least and the most of one of them.
ROOM, LEAST, MOST = 8_000, 300, 4_000
#: Bad checks in the document, and characters of each of their texts.
MAX_BAD, MAX_TEXT = 1000, 600
#: Defaults of the suite: a command that repeats a run leaves these options out.
DEFAULTS = {
    "isolate": "chunk",
    "chunk": 50,
    "dtypes": ["standard"],
    "fallback": "allow",
    "rerun_limit": 40,
    "seed": 0,
}
REPEATED = ("tier", "dtypes", "fallback", "isolate", "chunk", "rerun_limit", "verify", "shard")


class LevelPart(Part, kw_only=True, frozen=True):
    """How far the run is with one level."""

    name: str
    title: str
    verified: Natural
    must: Natural
    should_verified: Natural
    should: Natural
    blockers: Annotated[Natural, Meta(description="How many stand between the run and the level.")]


class ChangePart(Part, frozen=True):
    """A check that came out otherwise than in the run before."""

    check: str
    before: str
    after: str
    kind: Annotated[str, one_of("regression", "improvement", "other")]
    detail: str


class ResultPart(documents.ResultPart, kw_only=True, frozen=True):
    """A bad check."""

    id: str


class Document(
    documents.KeyPart, kw_only=True, tag_field="schema", tag=documents.schema("run"), frozen=True
):
    """One run of the suite: api/run/ID.json."""

    id: Annotated[Sha256, Meta(description="SHA-256 of the report.")]
    started: Time
    duration_s: documents.Seconds
    aligned: Annotated[
        bool,
        Meta(description="Whether it counts: a complete run of the standard selection."),
    ]
    why_not: str | None
    told: Annotated[Mapping[str, Any], Meta(description="The report's `run`.")]
    level: str | None
    title: str
    steps: Annotated[
        tuple[LevelPart, ...],
        Meta(description="For each level, the lowest first; none if the run is not aligned."),
    ]
    in_the_way: Annotated[
        tuple[documents.BlockerPart, ...],
        Meta(
            max_length=MAX_BLOCKERS,
            description="Of the lowest level that is not reached: its first blockers.",
        ),
    ]
    without: Annotated[tuple[str, ...], Meta(description="Capabilities that the backend lacks.")]
    totals: Annotated[documents.Counts, Meta(description="How many checks had each outcome.")]
    evidence: documents.Counts
    surfaces: Mapping[str, documents.Counts]
    standings: Annotated[
        Mapping[documents.Standing, tuple[str, ...]],
        Meta(description="Requirements by what the run says of them; the verified ones left out."),
    ]
    before: Annotated[
        documents.RunPart | None, Meta(description="The aligned run before it in its series.")
    ]
    changes: Annotated[
        tuple[ChangePart, ...], Meta(description="What came out otherwise than in that run.")
    ]
    bad: Annotated[
        tuple[ResultPart, ...],
        Meta(
            max_length=MAX_BAD,
            description="Those that were not so in the run before; "
            f"their texts are cut to {MAX_TEXT} characters.",
        ),
    ]
    still_bad: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MAX_BAD,
            description="Checks that came out as badly in the run before: what they say is in the "
            "document of the first such run.",
        ),
    ]
    bad_left_out: Annotated[Natural, Meta(description="How many bad checks are in neither.")]


class Cause(NamedTuple):
    """Bad checks whose messages agree."""

    text: str
    checks: tuple[str, ...]
    message: Cut | None
    """Of the first of them."""
    repro: Cut | None


def page_of_run(run: Run, model: Model) -> Page:
    """The page of one run, aligned or not."""
    wrong = model.bad(run)
    before, changes = _before(run, model)
    context = {
        "run": run,
        "before": before,
        "changes": {
            kind: [one for one in changes if one.kind == kind]
            for kind in ("regression", "improvement", "other")
        },
        "causes": _causes(wrong),
        "bad": len(wrong),
        "known": model.requirements,
        "commands": commands(run),
        "facts": list(facts(run).items()),
        "next": _next(run),
        "outcomes": [name for name in OUTCOMES if run.totals.get(name)],
        "named": MAX_NAMED,
        "most": MAX_CHANGES,
        "room": MAX_BLOCKERS,
    }
    title = f"{run.key.backend} with torch {run.torch}, {run.started:%Y-%m-%d %H:%M}"
    document = _document(run, before, changes, wrong)
    return Page(paths.of_run(run), title, "run.html", context, document)


def _next(run: Run) -> Step | None:
    """The lowest level that is not reached."""
    return next((step for step in run.steps if step.blockers), None)


def _before(run: Run, model: Model) -> tuple[Run | None, list[Change]]:
    """The aligned run before an aligned one in its series, and what changed since."""
    if run.why_not is not None:
        return None, []
    runs = model.series[run.key].runs
    number = next(index for index, one in enumerate(runs) if one.id == run.id)
    changes = [change for change in model.changes(run.key) if change.run == number]
    return (runs[number - 1] if number else None), changes


def _causes(wrong: Mapping[str, Result]) -> list[Cause]:
    groups = grouped(Failure.of(wrong), MAX_CAUSES)
    limit = min(max(ROOM // max(2 * len(groups), 1), LEAST), MOST)
    return [_cause(text, [one.id for one in group], wrong, limit) for text, group in groups]


def _cause(text: str, ids: Sequence[str], wrong: Mapping[str, Result], limit: int) -> Cause:
    first = wrong[ids[0]]
    return Cause(text, tuple(ids), cut(first.message, limit), cut(first.repro, limit))


def facts(run: Run) -> dict[str, str | None]:
    """What was run, where and how."""
    return {
        "PyTorch": run.torch,
        "Commit of PyTorch": run.torch_git,
        "Suite": run.suite,
        "Commit of the suite": run.suite_commit,
        "Digest of the suite": run.suite_digest,
        "Backend": f"{run.told['backend']}, device type {run.device_type}",
        "Driver": _plainly(run.driver),
        "Devices": _plainly(run.devices),
        "Python": run.python,
        "Platform": run.platform,
        "Seed": str(run.seed),
        "Options": _plainly({name: value for name, value in run.options.items() if value}),
        "Capabilities it lacks": _plainly(run.without),
        "Took": seconds(run.duration_s),
        "Digest of the report": run.id,
    }


def _plainly(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plainly(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plainly, value))
    return "" if value is None else str(value)


def commands(run: Run) -> list[str]:
    """Lines for a shell that run the same again, on a machine with the same backend."""
    name = str(run.told["backend"])
    call = ["pytest", "conformance", f"--backend={name}"]
    call += [f"--check={pattern}" for pattern in run.options.get("checks", ())]
    options = {**run.options, "seed": run.seed}
    for option in (*REPEATED, "seed"):
        value = options.get(option)
        if value is not None and value != DEFAULTS.get(option):
            text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            call.append(f"--{option.replace('_', '-')}={text}")
    suite = (
        ["git", "checkout", run.suite_commit]
        if run.suite_commit
        else ["pip", "install", f"torch-conformance=={run.suite}"]
    )
    return [shlex.join(line) for line in (suite, ["pip", "install", f"torch=={run.torch}"], call)]


def _document(
    run: Run, before: Run | None, changes: Sequence[Change], wrong: Mapping[str, Result]
) -> Document:
    step = _next(run)
    changed = {one.check for one in changes}
    still = [id for id in wrong if before and before.kept and id not in changed]
    new = {id: wrong[id] for id in wrong.keys() - set(still)}
    return Document(
        **documents.of_key(run.key),
        id=run.id,
        started=documents.moment(run),
        duration_s=run.duration_s,
        aligned=run.why_not is None,
        why_not=run.why_not,
        told=dict(run.told),
        level=run.level,
        title=run.title,
        steps=tuple(map(_level, run.steps)),
        in_the_way=documents.of_blockers(step.blockers[:MAX_BLOCKERS]) if step else (),
        without=tuple(run.without),
        totals=dict(run.totals),
        evidence=dict(run.evidence),
        surfaces={name: dict(totals) for name, totals in run.surfaces.items()},
        standings=_by_standing(run.standings),
        before=documents.of_run(before) if before else None,
        changes=tuple(
            ChangePart(one.check, one.before, one.after, one.kind, one.detail) for one in changes
        ),
        bad=tuple(
            ResultPart(id=id, **documents.of_result(result, MAX_TEXT))
            for id, result in sorted(new.items())[:MAX_BAD]
        ),
        still_bad=tuple(still[:MAX_BAD]),
        bad_left_out=max(len(new) - MAX_BAD, 0) + max(len(still) - MAX_BAD, 0),
    )


def _level(step: Step) -> LevelPart:
    told = {**documents.of_level(step), "blockers": len(step.blockers)}
    return LevelPart(title=step.title, **told)


def _by_standing(
    standings: Mapping[str, str],
) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for id, standing in sorted(standings.items()):
        if standing != "verified":
            found[standing].append(id)
    return {standing: tuple(ids) for standing, ids in found.items()}
