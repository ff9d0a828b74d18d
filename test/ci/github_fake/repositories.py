# SPDX-License-Identifier: BSD-3-Clause
"""Repositories, their commits, branches and contents."""

from __future__ import annotations

from typing import Any

from github_fake.handling import Call, Listing, Reply, handles
from github_fake.world import Refusal


@handles("repos/get", "metadata=read")
def _get(call: Call) -> Any:
    return call.render.repository(call.repository, "full-repository")


@handles("users/get-authenticated", "metadata=read")
def _me(call: Call) -> Any:
    if call.actor.endswith("[bot]"):
        raise Refusal(403, "Resource not accessible by integration")
    return call.render.me(call.actor)


@handles("users/get-by-username", "metadata=read")
def _user(call: Call) -> Any:
    return call.render.me(call.path["username"])


@handles("rate-limit/get")
def _rate_limit(call: Call) -> Any:
    return call.render.rate_limit()


def commit_of(call: Call, name: str) -> str:
    """The commit of a sha, branch, or ref."""
    refs = call.repository.refs
    for ref in (name, f"refs/{name}", f"refs/heads/{name}", f"refs/tags/{name}"):
        if ref in refs:
            return refs[ref]
    if name in call.world.objects.commits:
        return name
    raise Refusal(422, f"No commit found for SHA: {name}")


@handles("repos/create-dispatch-event", "contents=write")
def _dispatch(call: Call) -> Reply:
    payload = call.body.get("client_payload", {})
    if len(payload) > 10:
        raise Refusal(422, "No more than 10 properties are allowed; see client_payload")
    call.repository.dispatches.append((call.body["event_type"], payload))
    return Reply(204)


@handles("repos/list-commits", "contents=read")
def _commits(call: Call) -> Listing:
    start = call.query.get("sha", call.repository.default_branch)
    history = call.world.objects.history(commit_of(call, start))
    return Listing(history, lambda sha: call.render.commit(call.repository, sha))


@handles("repos/get-commit", "contents=read")
def _commit(call: Call) -> Any:
    return call.render.commit(call.repository, commit_of(call, call.path["ref"]), files=True)
