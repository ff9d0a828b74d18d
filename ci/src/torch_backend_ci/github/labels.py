# SPDX-License-Identifier: BSD-3-Clause
"""Labels on GitHub: their definitions in a repository, those of a PR, and who gave or took them.

GitHub sees no case in their names. Every write is what another run may be doing at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import github
from github.Issue import Issue
from github.Label import Label
from github.Repository import Repository

from torch_backend_ci.github.change import Change, unless_gone


@dataclass(frozen=True)
class Definition:
    """A label as a repository has it."""

    name: str
    colour: str  # six hexadecimal digits
    description: str


@dataclass(frozen=True)
class Event:
    """Somebody gave a PR a label, or took it away."""

    label: str
    given: bool
    actor: str | None  # None: the account is gone
    by_person: bool


def define(repo: Repository, wanted: Definition) -> Change:
    """Define a label that is not there."""
    return Change(f'define the label "{wanted.name}"', partial(_create, repo, wanted))


def redefine(there: Label, wanted: Definition) -> Change:
    """Change a label that is there."""
    return Change(f'redefine the label "{wanted.name}"', partial(_edit, there, wanted))


def definition(label: Label) -> Definition:
    """What GitHub says of a label."""
    return Definition(label.name, label.color.lower(), label.description or "")


def history(issue: Issue) -> list[Event]:
    """Oldest first."""
    return [event for entry in issue.get_timeline() for event in _event(entry.raw_data)]


def remove(issue: Issue, name: str, why: str) -> Change:
    """Take a label away; it may be gone already."""
    send = unless_gone(partial(_remove, issue, name))
    return Change(f'take "{name}" away from #{issue.number}: {why}', send)


def add(issue: Issue, names: tuple[str, ...]) -> Change:
    """Give labels, all at once; those that are there stay."""
    shown = ", ".join(f'"{name}"' for name in names)
    return Change(f"label #{issue.number} with {shown}", partial(issue.add_to_labels, *names))


def _create(repo: Repository, wanted: Definition) -> None:
    try:
        repo.create_label(wanted.name, wanted.colour, wanted.description)
    except github.GithubException as error:
        if not _exists_already(error):
            raise
        _edit(repo.get_label(wanted.name), wanted)  # another run was faster


def _edit(there: Label, wanted: Definition) -> None:
    there.edit(wanted.name, wanted.colour, wanted.description)


def _exists_already(error: github.GithubException) -> bool:
    errors = error.data.get("errors") if isinstance(error.data, dict) else None
    return error.status == 422 and any(
        isinstance(one, dict) and one.get("code") == "already_exists" for one in errors or ()
    )


def _event(entry: dict[str, Any]) -> Iterator[Event]:
    """An entry of the timeline, if it is about a label; an account that is gone was a person's."""
    kind, label, actor = entry.get("event"), entry.get("label"), entry.get("actor")
    if kind in ("labeled", "unlabeled") and label:
        login, is_bot = (actor["login"], actor["type"] == "Bot") if actor else (None, False)
        yield Event(label["name"], kind == "labeled", login, not is_bot)


def _remove(issue: Issue, name: str) -> None:
    """Not by PyGithub's own method, which lets a / through."""
    issue.requester.requestJsonAndCheck("DELETE", f"{issue.url}/labels/{quote(name, safe='')}")
