# SPDX-License-Identifier: BSD-3-Clause
"""What an operation's handler is given, what it answers, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from github_fake.render import Render
from github_fake.world import Repository, World


@dataclass
class Call:
    """A request that is valid and allowed."""

    world: World
    render: Render
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    actor: str
    storage_url: str
    fork_commits_list_pulls: bool

    @property
    def repository(self) -> Repository:
        """The one in the path."""
        return self.world.repository(f"{self.path['owner']}/{self.path['repo']}")

    def number(self, name: str) -> int:
        """A parameter of the path."""
        return int(self.path[name])


@dataclass
class Listing:
    """Many things, answered a page at a time; `key` for those that come wrapped."""

    things: Sequence[Any]
    render: Callable[[Any], Any]
    key: str | None = None


@dataclass
class Reply:
    """Anything but a 200 with JSON."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Any]


@dataclass(frozen=True)
class Route:
    """A handler and what the token must be allowed: any of the alternatives."""

    handler: Handler
    needs: tuple[tuple[str, str], ...]  # ("issues", "write")


ROUTES: dict[str, Route] = {}


def handles(operation: str, *needs: str) -> Callable[[Handler], Handler]:
    """Into the table. `needs`: "issues=write", as in X-Accepted-GitHub-Permissions."""

    def keep(handler: Handler) -> Handler:
        pairs = (need.split("=") for need in needs)
        ROUTES[operation] = Route(handler, tuple((what, level) for what, level in pairs))
        return handler

    return keep
