# SPDX-License-Identifier: BSD-3-Clause
"""Repositories, their commits, branches and contents."""

from __future__ import annotations

from typing import Any

from github_fake.git_data import decoded
from github_fake.handling import Call, Listing, Reply, handles
from github_fake.render import pull_commits
from github_fake.world import Refusal

LARGEST_FILE = 100 << 20


@handles("repos/get", "metadata=read")
def _get(call: Call) -> Any:
    return call.render.repository(call.repository, "full-repository")


@handles("users/get-by-username", "metadata=read")
def _user(call: Call) -> Any:
    return call.render.me(call.path["username"])


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


def _head(call: Call, branch: str) -> str:
    ref = f"refs/heads/{branch}"
    if ref not in call.repository.refs:
        raise Refusal(404, "Branch not found")
    return call.repository.refs[ref]


@handles("repos/get-branch", "contents=read")
def _branch(call: Call) -> Any:
    name = call.path["branch"]
    return call.render.branch(call.repository, name, _head(call, name))


@handles("repos/list-branches", "contents=read")
def _branches(call: Call) -> Listing:
    heads = sorted(
        (ref.removeprefix("refs/heads/"), sha)
        for ref, sha in call.repository.refs.items()
        if ref.startswith("refs/heads/")
    )
    render, repository = call.render, call.repository
    return Listing(heads, lambda head: render.short_branch(repository, *head))


@handles("repos/list-pull-requests-associated-with-commit", "pull_requests=read")
def _pulls_of_commit(call: Call) -> Listing:
    """The merged one that brought the commit, else those open with it; often none for forks."""
    repository, objects = call.repository, call.world.objects
    sha = commit_of(call, call.path["commit_sha"])
    merged, others = [], []
    for issue, pull in repository.pulls():
        if pull.merged_at and (sha == pull.merge_commit or sha in pull_commits(objects, pull)):
            merged.append(issue)
        elif sha in pull_commits(objects, pull):
            own = pull.head_repository == repository.full_name
            others += [issue] if own or call.fork_commits_list_pulls else []
    return Listing(merged or others, lambda x: call.render.pull(repository, x, full=False))


@handles("repos/compare-commits-with-basehead", "contents=read")
def _compare(call: Call) -> Any:
    names = call.path["basehead"].split("...")
    if len(names) != 2:
        raise Refusal(404, "Not Found")
    try:
        base, head = (_elsewhere(call, name) for name in names)
    except Refusal:
        raise Refusal(404, "Not Found") from None
    return call.render.comparison(call.repository, base, head, call.query)


def _elsewhere(call: Call, name: str) -> str:
    """A commit that may be named OWNER:BRANCH."""
    owner, _, branch = name.rpartition(":")
    for repository in call.world.repositories.values():
        if owner == repository.owner and f"refs/heads/{branch}" in repository.refs:
            return repository.refs[f"refs/heads/{branch}"]
    return commit_of(call, branch)


@handles("repos/get-content", "contents=read")
def _content(call: Call) -> Any:
    try:
        commit = commit_of(call, call.query.get("ref", call.repository.default_branch))
    except Refusal:
        raise Refusal(404, f"No commit found for the ref {call.query.get('ref')}") from None
    objects, path = call.world.objects, call.path["path"].strip("/")
    files = objects.files(objects.commits[commit].tree)
    if path in files:
        data = objects.blobs[files[path].sha]
        if len(data) > LARGEST_FILE:
            raise Refusal(403, "This API returns blobs up to 100 MB in size.")
        return call.render.content(call.repository, path, files[path].sha, data)
    below = [name for name in files if not path or name.startswith(f"{path}/")]
    if not below:
        raise Refusal(404, "Not Found")
    names = {name[len(path) :].lstrip("/").partition("/")[0] for name in below}
    whole = sorted(f"{path}/{name}".lstrip("/") for name in names)
    return [call.render.listed(call.repository, name, files.get(name)) for name in whole]


@handles("repos/create-or-update-file-contents", "contents=write")
def _put_content(call: Call) -> Reply:
    return _change_content(call, decoded(call.body["content"], "base64"))


@handles("repos/delete-file", "contents=write")
def _delete_content(call: Call) -> Reply:
    return _change_content(call, None)


def _change_content(call: Call, data: bytes | None) -> Reply:
    repository, body, path = call.repository, call.body, call.path["path"]
    branch = body.get("branch", repository.default_branch)
    head = _head(call, branch)
    files = call.world.objects.files(call.world.objects.commits[head].tree)
    old = files.get(path)
    if data is None and old is None:
        raise Refusal(404, "Not Found")
    if old and "sha" not in body:
        raise Refusal(422, 'Invalid request. "sha" wasn\'t supplied.')
    if "sha" in body and (old is None or old.sha != body["sha"]):
        raise Refusal(409, f"{path} does not match {body['sha']}")
    sha = call.world.push(
        repository, {path: data}, branch, message=body["message"], author=call.actor
    )
    entry = call.world.objects.files(call.world.objects.commits[sha].tree).get(path)
    content = call.render.listed(repository, path, entry) if entry else None
    commit = call.render.git_commit(repository, sha)
    return Reply(200 if old else 201, {"content": content, "commit": commit})
