# SPDX-License-Identifier: BSD-3-Clause
"""Labels, comments and the timeline."""

from __future__ import annotations

from typing import Any

from github_fake.handling import Call, Listing, Reply, handles
from github_fake.world import Comment, Issue, Refusal, check_body, check_label, invalid

READ = ("issues=read", "pull_requests=read")
WRITE = ("issues=write", "pull_requests=write")


@handles("issues/list-labels-for-repo", *READ)
def _labels(call: Call) -> Listing:
    repository = call.repository
    return Listing(repository.labels, lambda label: call.render.label(repository, label))


@handles("issues/get-label", *READ)
def _label(call: Call) -> Any:
    label = call.repository.label(call.path["name"])
    if label is None:
        raise Refusal(404, "Not Found")
    return call.render.label(call.repository, label)


@handles("issues/create-label", *WRITE)
def _create_label(call: Call) -> Reply:
    body = call.body
    colour = body.get("color", "ededed")
    label = call.world.define_label(call.repository, body["name"], colour, body.get("description"))
    return Reply(201, call.render.label(call.repository, label))


@handles("issues/update-label", *WRITE)
def _update_label(call: Call) -> Any:
    repository = call.repository
    label = repository.label(call.path["name"])
    if label is None:
        raise Refusal(404, "Not Found")
    name = call.body.get("new_name", label.name)
    other = repository.label(name)
    if other not in (None, label):
        raise invalid("Label", "name", "already_exists")
    colour = call.body.get("color", label.color)
    description = call.body.get("description", label.description)
    check_label(name, colour, description)
    for issue in repository.issues.values():
        issue.labels = [name if used == label.name else used for used in issue.labels]
    label.name, label.color, label.description = name, colour, description
    return call.render.label(repository, label)


@handles("issues/delete-label", *WRITE)
def _delete_label(call: Call) -> Reply:
    repository = call.repository
    label = repository.label(call.path["name"])
    if label is None:
        raise Refusal(404, "Not Found")
    repository.labels.remove(label)
    for issue in repository.issues.values():
        issue.labels = [used for used in issue.labels if used != label.name]
    return Reply(204)


def _issue(call: Call) -> Issue:
    return call.repository.issue(call.number("issue_number"))


@handles("issues/get", *READ)
def _get(call: Call) -> Any:
    return call.render.issue(call.repository, _issue(call))


@handles("issues/update", *WRITE)
def _update(call: Call) -> Any:
    issue = _issue(call)
    issue.title = str(call.body.get("title", issue.title))
    issue.body = call.body.get("body", issue.body)
    call.world.set_state(issue, call.body.get("state", issue.state), call.actor)
    if "labels" in call.body:
        _set(call, issue, _names(call.body))
    return call.render.issue(call.repository, issue)


@handles("issues/create", "issues=write")
def _create(call: Call) -> Reply:
    body = call.body
    issue = call.world.open_issue(call.repository, call.actor, str(body["title"]), body.get("body"))
    for name in _names(body):
        call.world.add_label(call.repository, issue, name, call.actor)
    return Reply(201, call.render.issue(call.repository, issue))


@handles("issues/list-for-repo", *READ)
def _list(call: Call) -> Listing:
    repository = call.repository
    state = call.query.get("state", "open")
    wanted = [name.lower() for name in call.query.get("labels", "").split(",") if name]
    found = [
        issue
        for _, issue in sorted(repository.issues.items(), reverse=True)
        if state in (issue.state, "all")
        and set(wanted) <= {name.lower() for name in issue.labels}
        and call.query.get("creator", issue.author) == issue.author
    ]
    return Listing(found, lambda issue: call.render.issue(repository, issue))


@handles("issues/list-labels-on-issue", *READ)
def _labels_on_issue(call: Call) -> Listing:
    return Listing(call.render.labels(call.repository, _issue(call)), lambda label: label)


def _names(body: Any) -> list[str]:
    labels = body if isinstance(body, list) else body.get("labels", [])
    return [label if isinstance(label, str) else label["name"] for label in labels]


@handles("issues/add-labels", *WRITE)
def _add_labels(call: Call) -> Any:
    issue, names = _issue(call), _names(call.body)
    for name in names:  # all or none
        check_label(name, "ededed", None)
    for name in names:
        call.world.add_label(call.repository, issue, name, call.actor)
    return call.render.labels(call.repository, issue)


def _set(call: Call, issue: Issue, names: list[str]) -> None:
    kept = {name.lower() for name in names}
    for name in [used for used in issue.labels if used.lower() not in kept]:
        call.world.remove_label(call.repository, issue, name, call.actor)
    for name in names:
        call.world.add_label(call.repository, issue, name, call.actor)


@handles("issues/set-labels", *WRITE)
def _set_labels(call: Call) -> Any:
    issue = _issue(call)
    _set(call, issue, _names(call.body))
    return call.render.labels(call.repository, issue)


@handles("issues/remove-label", *WRITE)
def _remove_label(call: Call) -> Any:
    issue = _issue(call)
    call.world.remove_label(call.repository, issue, call.path["name"], call.actor)
    return call.render.labels(call.repository, issue)


@handles("issues/list-events-for-timeline", *READ)
def _timeline(call: Call) -> Listing:
    issue = _issue(call)
    return Listing(issue.events, lambda event: call.render.event(call.repository, issue, event))


@handles("issues/list-comments", *READ)
def _comments(call: Call) -> Listing:
    issue = _issue(call)
    return Listing(
        issue.comments, lambda comment: call.render.comment(call.repository, issue, comment)
    )


@handles("issues/create-comment", *WRITE)
def _create_comment(call: Call) -> Reply:
    issue = _issue(call)
    if issue.locked:
        raise Refusal(403, "Unable to create comment because issue is locked.")
    comment = call.world.comment(issue, call.actor, call.body["body"])
    return Reply(201, call.render.comment(call.repository, issue, comment))


def _comment(call: Call) -> tuple[Issue, Comment]:
    for issue in call.repository.issues.values():
        for comment in issue.comments:
            if comment.id == call.number("comment_id"):
                return issue, comment
    raise Refusal(404, "Not Found")


@handles("issues/get-comment", *READ)
def _get_comment(call: Call) -> Any:
    return call.render.comment(call.repository, *_comment(call))


@handles("issues/update-comment", *WRITE)
def _update_comment(call: Call) -> Any:
    issue, comment = _comment(call)
    check_body(call.body["body"])
    comment.body, comment.updated_at = call.body["body"], call.world.tick()
    return call.render.comment(call.repository, issue, comment)


@handles("issues/delete-comment", *WRITE)
def _delete_comment(call: Call) -> Reply:
    issue, comment = _comment(call)
    issue.comments.remove(comment)
    issue.events = [event for event in issue.events if event.comment is not comment]
    return Reply(204)
