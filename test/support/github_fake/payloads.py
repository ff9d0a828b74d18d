# SPDX-License-Identifier: BSD-3-Clause
"""The events that start workflows: GitHub's own examples, about the fake's repositories."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from github_fake.render import Answer, Render
from github_fake.world import Repository

FILE = (
    Path(__file__).parents[2]
    / "ci"
    / "node/node_modules/@octokit/webhooks-examples/api.github.com/index.json"
)


@functools.cache
def _examples() -> dict[str, list[Answer]]:
    if not FILE.is_file():
        pytest.fail(f"{FILE} is missing: `make test` installs it")
    return {event["name"]: event["examples"] for event in json.loads(FILE.read_bytes())}


def all_examples(event: str) -> list[Answer]:
    """Every example of that event, copies."""
    return copy.deepcopy(_examples()[event])


def example(event: str, action: str | None = None) -> Answer:
    """The first of that event and action, a copy."""
    event = "pull_request" if event == "pull_request_target" else event
    for found in _examples()[event]:
        if action is None or found["action"] == action:
            return copy.deepcopy(found)
    pytest.fail(f"there is no example of {event} with action {action}")


def payload(
    render: Render,
    repository: Repository,
    event: str,
    action: str | None,
    number: int | None,
    given: Mapping[str, Any],
) -> Answer:
    """An example in which the repository, and what else is told, are the fake's.

    `number`: the pull request or issue. For workflow_run, `run`: a Run. For push, `before`, `after`
    and `ref`. Anything else in `given` replaces what the example has at the top.
    """
    if event == "repository_dispatch":  # its action is whatever the sender says
        found = example(event) | {"action": action}
    else:
        found = example(event, action)
    found.pop("organization", None)
    found.pop("installation", None)
    found["repository"] = render.repository(repository, "full-repository")
    given = dict(given)
    if number is not None:
        issue = repository.issue(number)
        if "pull_request" in found:
            found["pull_request"] |= render.pull(repository, issue, full=True)
            found["number"] = number
        if "issue" in found:
            found["issue"] |= render.issue(repository, issue)
        found["sender"] = render.user(issue.author)
    if event == "workflow_run":
        run = given.pop("run")
        found["workflow_run"] |= render.run(repository, run)
        found["workflow"] |= {"name": run.name, "path": run.path}
        found["sender"] = render.user(run.actor)
    if event == "push":
        given = _pushed(render, repository, given) | given
    return found | given


def _pushed(render: Render, repository: Repository, given: Mapping[str, Any]) -> Answer:
    objects = render.world.objects
    ref = given.get("ref", f"refs/heads/{repository.default_branch}")
    after = given.get("after", repository.refs[ref])
    before = given.get("before", (*objects.commits[after].parents, "0" * 40)[0])
    known = set(objects.history(before))
    commits = [
        _commit(render, repository, sha)
        for sha in reversed(objects.history(after))
        if sha not in known
    ]
    return {
        "ref": ref,
        "before": before,
        "after": after,
        "created": before == "0" * 40,
        "deleted": False,
        "forced": False,
        "commits": commits,
        "head_commit": _commit(render, repository, after),
        "compare": f"https://github.com/{repository.full_name}/compare/{before}...{after}",
    }


def _commit(render: Render, repository: Repository, sha: str) -> Answer:
    commit = render.world.objects.commits[sha]
    person = {"name": commit.author[0], "email": commit.author[1], "username": commit.author[0]}
    return {
        "id": sha,
        "tree_id": commit.tree,
        "distinct": True,
        "message": commit.message,
        "timestamp": commit.date,
        "url": f"https://github.com/{repository.full_name}/commit/{sha}",
        "author": person,
        "committer": person,
        "added": [],
        "removed": [],
        "modified": [],
    }
