# SPDX-License-Identifier: BSD-3-Clause
"""The planned labels on a PR, without touching what a person decided.

A label that a person took away is never put back, one that a person gave is never taken away. Of
the impacts a PR has one: what we said of an earlier version of the PR goes when it is no longer so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from torch_backend_ci.github import access, labels
from torch_backend_ci.github.access import Repository
from torch_backend_ci.github.change import Change
from torch_backend_ci.github.labels import Event
from torch_backend_ci.github.pull_request import files_of
from torch_backend_ci.label import sync
from torch_backend_ci.label.plan import PlannedLabel, plan
from torch_backend_ci.label.rules import Rules
from torch_backend_ci.output import printable, say
from torch_backend_ci.surface.model import Finding


@dataclass(frozen=True)
class Decision:
    """What is to be done about the labels of a PR, and what is left as people want it."""

    add: tuple[str, ...]
    remove: tuple[str, ...]
    refused: tuple[str, ...]  # a person took it away


def decide(
    planned: Sequence[str],
    present: Collection[str],
    history: Iterable[Event],
    impacts: Collection[str],
    author: str,
) -> Decision:
    """Pure. `history` is oldest first; GitHub sees no case in the names of labels."""
    history = list(history)
    wanted, there = _folded(planned), _folded(present)
    last_given = {event.label.lower(): event for event in history if event.given}
    by_people = {event.label.lower(): event for event in history if event.by_person}
    off = {label for label, event in by_people.items() if not event.given}
    missing = [name for name in planned if name.lower() not in there]
    outdated = [name for name in impacts if name.lower() in there - wanted]
    judged = not _folded(impacts).isdisjoint(wanted)
    ours = {label for label, event in last_given.items() if event.actor == author}
    return Decision(
        add=tuple(name for name in missing if name.lower() not in off),
        remove=tuple(name for name in outdated if judged and name.lower() in ours),
        refused=tuple(name for name in missing if name.lower() in off),
    )


def planned_labels(
    repo: Repository,
    number: int,
    findings: Sequence[Finding] | None,
    rules: Rules,
    not_covered: Iterable[str] = (),
) -> tuple[PlannedLabel, ...]:
    """The labels for the files that the PR changes now; none where it was closed unmerged."""
    pull = repo.get_pull(number)
    if pull.state == "closed" and not pull.merged:
        say(f"#{number} is closed: it needs no labels")
        return ()
    changed = files_of(pull)
    if changed.truncated:
        say(f"warning: #{number} has {len(changed.files)} files or more: GitHub lists no further")
    return plan(changed.files, findings, rules, not_covered)


def changes(
    repo: Repository,
    number: int,
    planned: Sequence[PlannedLabel],
    rules: Rules,
    author: str = access.ACTOR,
) -> Iterator[Change]:
    """What gives the PR its planned labels; `author` is who we are on GitHub."""
    if not planned:
        return
    issue = repo.get_issue(number)
    present = [label.name for label in issue.labels]
    # After the labels: one that a person takes away meanwhile is still among those present.
    history = labels.history(issue)
    impacts = [label.name for label in rules.labels if label.is_impact]
    decision = decide([label.name for label in planned], present, history, impacts, author)
    for name in decision.refused:
        say(f'a person took "{printable(name)}" away from #{number}: it is not put back')
    if decision.add:
        yield from sync.missing(repo, rules.labels, decision.add)  # else GitHub makes them up, grey
        yield labels.add(issue, decision.add)
    for name in decision.remove:
        yield labels.remove(issue, name, "it is no longer so")


def _folded(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}
