# SPDX-License-Identifier: BSD-3-Clause
"""A sticky comment: one per marker, made once and edited ever after.

It is found by its first line, an HTML comment that GitHub hides, and by its author: anybody can
copy a marker. Two runs at once may both make one; a command that finds several keeps the
oldest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from github.Issue import Issue
from github.IssueComment import IssueComment

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import access, markdown
from torch_backend_ci.github.change import Change, unless_gone
from torch_backend_ci.output import say

_LIMIT = 65_536  # what GitHub takes
_MARKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def changes(
    issue: Issue, marker: str, body: str, author: str = access.ACTOR, *, begin: bool = True
) -> Iterator[Change]:
    """What makes the author's comment with this marker say `body`, which is trusted markdown.

    Without `begin` an existing comment is edited, but none is created.
    """
    text = _text(marker, body)
    if issue.locked:  # by a person, who wants no more said
        say(f"#{issue.number} is locked: no comment is made")
        return
    ours = _ours(issue, marker, author)
    if not ours and begin:
        make = partial(_make, issue, marker, text, author)
        yield Change(f"comment on #{issue.number} ({marker})", make)
    elif ours:
        yield from _settle(issue.number, ours, text)


def _text(marker: str, body: str) -> str:
    if not _MARKER.fullmatch(marker):
        raise CiError(f"a marker is made of letters, digits, '.', '_' and '-', not {marker!r}")
    if not body.strip():
        raise CiError("GitHub takes no empty comment")
    head = _head(marker)
    return f"{head}\n{markdown.cut(body.strip(), _LIMIT - len(head) - 1)}"


def _head(marker: str) -> str:
    return f"<!-- puone-ci: {marker} -->"


def _ours(issue: Issue, marker: str, author: str) -> list[IssueComment]:
    """Oldest first."""
    head = _head(marker)
    found = [
        comment
        for comment in issue.get_comments()
        if comment.user is not None
        and comment.user.login == author
        and (comment.body or "").split("\n", 1)[0].strip() == head
    ]
    return sorted(found, key=lambda comment: comment.id)


def _settle(number: int, ours: list[IssueComment], text: str) -> Iterator[Change]:
    """The oldest says the text, and is the only one."""
    oldest, *others = ours
    if _plain(oldest.body) != _plain(text):
        yield Change(f"edit the comment {oldest.id} on #{number}", partial(oldest.edit, text))
    for other in others:
        says = f"delete the second comment {other.id} on #{number}"
        yield Change(says, unless_gone(other.delete))


def _make(issue: Issue, marker: str, text: str, author: str) -> None:
    made = issue.create_comment(text)
    if made.user.login != author:
        raise CiError(
            f"the comment {made.id} was written by {made.user.login}, not by {author}: "
            f"say --author={made.user.login}, or the next run will not find it"
        )
    for change in _settle(issue.number, _ours(issue, marker, author) or [made], text):
        change.send()


def _plain(body: str) -> str:
    return body.replace("\r\n", "\n").strip()
