# SPDX-License-Identifier: BSD-3-Clause
"""Which pull requests came to the default branch, and which were taken back, by what GitHub says.

A merge is known in one of three ways: GitHub merged the PR; or a bot pushed its commit, whose
message ends in `Pull Request resolved: URL` as those of PyTorch do; or such a bot reverted one and
says `Reverted URL`. What a message claims counts only where GitHub itself knows of no merge, and
only for PRs of this repository.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from github import UnknownObjectException
from github.Commit import Commit
from github.PullRequest import PullRequest
from github.Repository import Repository

from torch_backend_ci import changed_files
from torch_backend_ci.document import stamp
from torch_backend_ci.feed.entry import Merged
from torch_backend_ci.github.event import PushEvent
from torch_backend_ci.github.pull_request import files_of
from torch_backend_ci.output import say

_MOST_COMMITS = 1000  # of one push
_PULL = r"https?://([^/\s]+/[^/\s]+/[^/\s]+)/pull/(\d{1,9})"
_RESOLVED = re.compile(rf"^Pull Request resolved: {_PULL}$", re.M)
_REVERTED = re.compile(rf"^Reverted {_PULL}\b", re.M)
_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{40})\b", re.M)


def commits_of(repo: Repository, push: PushEvent) -> list[str]:
    """The commits that a push brought to the default branch, oldest first."""
    if not push.to_default_branch or push.deleted:
        say(f"{push.ref} was pushed to, not {push.default_branch}: nothing was merged")
        return []
    if push.created:
        return [push.after]
    try:
        listed = repo.compare(push.before, push.after).get_commits()
        found = [commit.sha for commit in itertools.islice(listed, _MOST_COMMITS)]
    except UnknownObjectException:  # a forced push, and what was there before is gone
        return [push.after]
    if len(found) == _MOST_COMMITS:
        say(f"warning: the push has {_MOST_COMMITS} commits or more: no further ones are looked at")
    return found


def merged_by(repo: Repository, commits: Iterable[str]) -> list[Merged]:
    """The changes that these commits are, each once."""
    found: dict[str, Merged] = {}
    for sha in commits:
        changes = list(_changes(repo, repo.get_commit(sha)))
        if not changes:
            say(f"commit {sha[:12]} is of no pull request")
        found.update((change.id, change) for change in changes)
    return list(found.values())


def _changes(repo: Repository, commit: Commit) -> Iterator[Merged]:
    message = commit.commit.message
    pulls = [pull for pull in commit.get_pulls() if _merged_here(repo, pull)]
    for pull in pulls:
        assert pull.merged_at is not None  # _merged_here()
        merged_at = stamp(pull.merged_at)
        changed = files_of(pull).files
        sha = pull.merge_commit_sha or commit.sha
        reverts = _reverts(message)
        yield Merged(pull.number, pull.title, pull.html_url, sha, merged_at, reverts, changed)
    if not pulls and (claimed := _claimed(repo, message)):
        committed = stamp(commit.commit.committer.date)
        changed = changed_files.from_rest([file.raw_data for file in commit.files])
        title = message.split("\n", 1)[0].strip() or claimed.title
        reverts = _reverts(message)
        yield Merged(
            claimed.number, title, claimed.html_url, commit.sha, committed, reverts, changed
        )


def _merged_here(repo: Repository, pull: PullRequest) -> bool:
    """Whether the PR was merged into the default branch, and not into one that was merged later."""
    base = pull.base
    return (
        pull.merged_at is not None
        and base.ref == repo.default_branch
        and base.repo is not None
        and base.repo.id == repo.id
    )


def _claimed(repo: Repository, message: str) -> PullRequest | None:
    """The PR of this repository that the message of a bot's commit names."""
    here = repo.html_url.partition("://")[2].lower()
    for pattern in (_REVERTED, _RESOLVED):
        named = [number for place, number in pattern.findall(message) if place.lower() == here]
        if named:
            try:
                return repo.get_pull(int(named[-1]))  # what stands before it is the PR's own text
            except UnknownObjectException:
                return None
    return None


def _reverts(message: str) -> str | None:
    found = _REVERTS.search(message)
    return found[1] if found else None
