# SPDX-License-Identifier: BSD-3-Clause
"""Pull requests and what they change."""

from __future__ import annotations

from typing import Any

from github_fake.handling import Call, Listing, Reply, handles
from github_fake.render import pull_changes, pull_commits
from github_fake.world import Issue, Pull, Refusal, invalid

MOST_FILES = 3000  # the REST API stops here without a word
MOST_COMMITS = 250


def _pull(call: Call) -> tuple[Issue, Pull]:
    issue = call.repository.issue(call.number("pull_number"))
    if issue.pull is None:
        raise Refusal(404, "Not Found")
    return issue, issue.pull


@handles("pulls/get", "pull_requests=read")
def _get(call: Call) -> Any:
    return call.render.pull(call.repository, _pull(call)[0], full=True)


@handles("pulls/list-files", "pull_requests=read")
def _files(call: Call) -> Listing:
    _, pull = _pull(call)
    changes = pull_changes(call.world.objects, pull)[:MOST_FILES]
    render, repository = call.render, call.repository
    return Listing(changes, lambda change: render.change(repository, change, pull.head_sha))


@handles("pulls/list-commits", "pull_requests=read")
def _commits(call: Call) -> Listing:
    commits = pull_commits(call.world.objects, _pull(call)[1])[:MOST_COMMITS]
    return Listing(commits, lambda sha: call.render.commit(call.repository, sha))


@handles("pulls/list", "pull_requests=read")
def _list(call: Call) -> Listing:
    state, head = call.query.get("state", "open"), call.query.get("head")
    base = call.query.get("base")
    found = []
    for issue, pull in call.repository.pulls():
        owner = (pull.head_repository or "").partition("/")[0]
        # A head that does not name its owner is ignored, and everything is listed.
        ours = head is None or ":" not in head or head == f"{owner}:{pull.head_branch}"
        if state in (issue.state, "all") and ours and base in (None, pull.base_branch):
            found.append(issue)
    if call.query.get("direction") == "asc":
        found.reverse()
    return Listing(found, lambda issue: call.render.pull(call.repository, issue, full=False))


@handles("pulls/create", "pull_requests=write")
def _create(call: Call) -> Reply:
    body = call.body
    owner, _, branch = body["head"].rpartition(":")
    head = call.repository
    if owner and owner != head.owner:
        forks = [r for r in call.world.repositories.values() if r.owner == owner]
        head = next((r for r in forks if r.fork_of == call.repository.full_name), head)
        if head is call.repository:
            raise invalid("PullRequest", "head", "invalid")
    issue = call.world.open_pull(
        call.repository,
        head,
        branch,
        call.actor,
        body.get("title", ""),
        body.get("body"),
        body["base"],
    )
    assert issue.pull
    issue.pull.draft = body.get("draft", False)
    return Reply(201, call.render.pull(call.repository, issue, full=True))


@handles("pulls/update", "pull_requests=write")
def _update(call: Call) -> Any:
    issue, pull = _pull(call)
    issue.title = call.body.get("title", issue.title)
    issue.body = call.body.get("body", issue.body)
    pull.base_branch = call.body.get("base", pull.base_branch)
    call.world.set_state(issue, call.body.get("state", issue.state), call.actor)
    issue.updated_at = call.world.tick()
    return call.render.pull(call.repository, issue, full=True)
