# SPDX-License-Identifier: BSD-3-Clause
"""What happens on GitHub, and which workflows it starts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from workflow_runner.mistakes import Mistake


@dataclass(frozen=True)
class Event:
    """One event, as a workflow run sees it."""

    name: str
    payload: Mapping[str, Any]
    repository: str  # owner/name
    sha: str  # what `github.sha` is: of a PR, the commit that merges it
    ref: str
    actor: str = "octocat"
    head_ref: str = ""
    base_ref: str = ""
    changed: tuple[str, ...] = ()  # paths, of a push or PR
    from_fork: bool = False
    inputs: Mapping[str, Any] = field(default_factory=dict)
    schedule: str = ""

    @property
    def is_untrusted(self) -> bool:
        """A PR from a fork: its workflows get no secrets, and read only."""
        return self.from_fork and self.name == "pull_request"


# What `types:` means where it is left out.
DEFAULT_TYPES = {
    "pull_request": ("opened", "synchronize", "reopened"),
    "pull_request_target": ("opened", "synchronize", "reopened"),
}
# What is understood of `on:`; anything else would be left out silently.
_FILTERS = {"types", "branches", "branches-ignore", "paths", "paths-ignore", "tags", "tags-ignore"}
_UNFILTERED = {"workflow_dispatch", "workflow_call", "schedule"}


def starts(on: str | Sequence[str] | Mapping[str, Any], event: Event, name: str = "") -> bool:
    """Whether a workflow with this `on:` is run; `name`: that of the run, of a workflow_run."""
    triggers: Mapping[str, Any]
    if isinstance(on, str):
        triggers = {on: None}
    elif isinstance(on, Mapping):
        triggers = on
    else:
        triggers = dict.fromkeys(on)
    if event.name not in triggers:
        return False
    if event.name == "schedule":
        return event.schedule in {entry["cron"] for entry in triggers["schedule"] or []}
    if event.name in _UNFILTERED:
        return True
    filters = dict(triggers[event.name] or {})
    if event.name == "workflow_run" and name not in filters.pop("workflows", []):
        return False
    if unknown := filters.keys() - _FILTERS:
        raise Mistake(f"on.{event.name}: {', '.join(sorted(unknown))} is not understood here")
    return _type(filters, event) and _reference(filters, event) and _paths(filters, event)


def _type(filters: Mapping[str, Any], event: Event) -> bool:
    wanted = _words(filters.get("types", DEFAULT_TYPES.get(event.name, ())))
    return not wanted or event.payload.get("action") in wanted


def _reference(filters: Mapping[str, Any], event: Event) -> bool:
    """branches: and tags:; a push of the kind that is not named is left out if the other one is."""
    is_tag = event.ref.startswith("refs/tags/")
    kind, other = ("tags", "branches") if is_tag else ("branches", "tags")
    named = {key.partition("-")[0] for key in filters} & {"tags", "branches"}
    if kind not in named:
        return other not in named or event.name != "push"
    reference = event.base_ref or _branch(event)
    return _passes(filters, kind, [reference])


def _branch(event: Event) -> str:
    if event.name == "workflow_run":
        return str(event.payload["workflow_run"]["head_branch"])
    return event.ref.split("/", 2)[2]


def _paths(filters: Mapping[str, Any], event: Event) -> bool:
    return _passes(filters, "paths", event.changed)


def _passes(filters: Mapping[str, Any], kind: str, names: Sequence[str]) -> bool:
    if kind in filters:
        return any(_named(filters[kind], name) for name in names)
    ignored = filters.get(f"{kind}-ignore")
    return ignored is None or any(not _named(ignored, name) for name in names)


def _words(value: Sequence[str] | str) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


def _named(patterns: Sequence[str] | str, name: str) -> bool:
    """The last pattern that matches decides; `!` takes away."""
    result = False
    for pattern in _words(patterns):
        if _pattern(pattern.removeprefix("!")).fullmatch(name):
            result = not pattern.startswith("!")
    return result


@lru_cache
def _pattern(glob: str) -> re.Pattern[str]:
    """GitHub's own globs: `*` stays within a directory, `**` does not, `?` and `+` repeat."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "?", "+": "+"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\+|\[[^]]+\])", glob)
    return re.compile(
        "".join(words.get(p, p if p.startswith("[") else re.escape(p)) for p in parts)
    )
