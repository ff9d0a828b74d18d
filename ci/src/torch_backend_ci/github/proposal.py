# SPDX-License-Identifier: BSD-3-Clause
"""A pull request that this program keeps: at most one per branch, a single commit on its base.

The branch is found again by its name, the pull request by its branch, what it proposes by a key in
its text: nothing is remembered elsewhere. People have the last word: a branch that somebody pushed
to is not touched, and what was declined once is not asked for again. A run that is killed leaves at
worst a branch without its pull request, which the next run opens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import github
from github.GitRef import GitRef
from github.PullRequest import PullRequest
from github.Repository import Repository

from torch_backend_ci.errors import CiError
from torch_backend_ci.github.access import failures
from torch_backend_ci.github.change import Change
from torch_backend_ci.github.markdown import cut, text

BODY_LIMIT = 60_000  # bytes; GitHub takes 65,536 characters
# The account of a workflow's own token. A commit of anybody else is a person's.
NAME, EMAIL = "github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com"

_KEY = re.compile(r"<!-- proposal: ([^<>\n]*?) -->")


@dataclass(frozen=True)
class Proposal:
    """What a person shall decide about."""

    branch: str
    key: str  # of what is asked for, and so asked for only once
    files: Mapping[str, bytes]  # that differ from the base; text
    title: str  # also the message of the commit
    body: Callable[[], str]  # markdown; called only when it is sent


class Plan(NamedTuple):
    """What is to be sent, and why that or nothing."""

    says: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where the base is now: all of a run is read and written against this commit."""

    repository: Repository
    base: str  # branch
    sha: str

    def read(self, path: str) -> bytes:
        """A file of the base."""
        found = _content(self.repository, path, self.sha)
        if found is None:
            raise CiError(f"{self.repository.full_name} has no file {path} on {self.base}")
        return found


def place(repository: Repository, base: str | None = None) -> Place:
    """The head of the base, by default of the default branch."""
    name = base or repository.default_branch
    with failures(f"find the branch {name}"):
        ref = _ref(repository, name)
    if ref is None:
        raise CiError(f"{repository.full_name} has no branch {name}")
    return Place(repository, name, ref.object.sha)


def propose(at: Place, proposal: Proposal, *, insist: bool = False) -> Plan:
    """What makes the proposal stand as it should; `insist` asks again for what was declined."""
    with failures(f"look for the pull request of {proposal.branch}"):
        pulls = list(_pulls(at.repository, proposal.branch))
        mine = next((pull for pull in pulls if pull.state == "open"), None)
        before = next((pull for pull in pulls if _key(pull) == proposal.key), None)
        if before and before.state != "open" and not insist:
            how = "merged and taken back" if before.merged_at else "declined"
            says = f"{proposal.title!r} was {how} in #{before.number}: not proposed again"
            return _withdraw(at, proposal.branch, mine, text(says))._replace(says=says)
        ref = _ref(at.repository, proposal.branch)
        if ref and not _is_ours(at.repository, ref):
            return _left_alone(proposal.branch, mine)
        branch = tuple(_of_branch(at, proposal, ref))
    changes = (*branch, *_of_pull(at, proposal, mine))
    if changes or mine is None:
        return Plan(f"proposed on {proposal.branch}", changes)
    return Plan(f"#{mine.number} proposes it already")


def withdraw(at: Place, branch: str, why: str) -> Plan:
    """Closes the pull request that nothing speaks for any more; `why` is markdown. It does not
    count as declined."""
    with failures(f"look for the pull request of {branch}"):
        mine = next((p for p in _pulls(at.repository, branch) if p.state == "open"), None)
        return _withdraw(at, branch, mine, why)


def _withdraw(at: Place, branch: str, mine: PullRequest | None, why: str) -> Plan:
    if mine is None or _key(mine) is None:
        return Plan("there is nothing to propose")
    ref = _ref(at.repository, branch)
    if ref is None or not _is_ours(at.repository, ref):
        return _left_alone(branch, mine)
    body = cut(f"{why}\n\n{_KEY.sub('', mine.body or '')}", BODY_LIMIT)
    close = Change(
        f"close #{mine.number}: nothing speaks for it any more",
        lambda: mine.edit(state="closed", body=body),
    )
    return Plan(f"#{mine.number} is no longer needed", (close,))


def _left_alone(branch: str, mine: PullRequest | None) -> Plan:
    where = f" (#{mine.number})" if mine else ""
    return Plan(f"somebody pushed to {branch}{where}: it is left alone")


def _of_branch(at: Place, proposal: Proposal, ref: GitRef | None) -> Iterator[Change]:
    if ref and _is_current(at, proposal, ref):
        return
    files = ", ".join(sorted(proposal.files))
    tip = ref.object.sha if ref else None
    yield Change(
        f"{'reset' if tip else 'make'} the branch {proposal.branch}: {files} on top of "
        f"{at.sha[:10]} of {at.base}",
        lambda: _put(at, proposal, tip),
    )


def _of_pull(at: Place, proposal: Proposal, mine: PullRequest | None) -> Iterator[Change]:
    title = proposal.title
    if mine is None:
        body = _body(proposal)
        yield Change(
            f"open the pull request {title!r}",
            lambda: at.repository.create_pull(
                base=at.base, head=proposal.branch, title=title, body=body
            ),
        )
    elif _key(mine) not in {None, proposal.key}:  # else its words are people's, or will do
        body = _body(proposal)
        yield Change(f"rewrite #{mine.number}: {title!r}", lambda: mine.edit(title, body))


def _put(at: Place, proposal: Proposal, tip: str | None) -> None:
    """One commit on top of the base. Only the move of the branch, its end, can be seen."""
    parent = at.repository.get_git_commit(at.sha)
    elements = [
        github.InputGitTreeElement(path, "100644", "blob", content=data.decode())
        for path, data in sorted(proposal.files.items())
    ]
    tree = at.repository.create_git_tree(elements, parent.tree)
    person = github.InputGitAuthor(NAME, EMAIL)
    commit = at.repository.create_git_commit(proposal.title, tree, [parent], person, person)
    ref = _ref(at.repository, proposal.branch)
    if (ref.object.sha if ref else None) != tip:
        raise CiError(f"{proposal.branch} moved in this moment: run it again")
    if ref:
        ref.edit(commit.sha, force=True)
    else:
        at.repository.create_git_ref(f"refs/heads/{proposal.branch}", commit.sha)


def _is_current(at: Place, proposal: Proposal, ref: GitRef) -> bool:
    """True if the branch is what `_put` would make it."""
    head = at.repository.get_git_commit(ref.object.sha)
    return (
        [parent.sha for parent in head.parents] == [at.sha]
        and head.message == proposal.title
        and all(
            _content(at.repository, path, head.sha) == data for path, data in proposal.files.items()
        )
    )


def _is_ours(repository: Repository, ref: GitRef) -> bool:
    """True if the last commit of the branch was made here; below it there is only the base."""
    head = repository.get_git_commit(ref.object.sha)
    return all((who.name, who.email) == (NAME, EMAIL) for who in (head.author, head.committer))


def _pulls(repository: Repository, branch: str) -> Iterator[PullRequest]:
    """All pull requests from this branch of this repository, the newest first."""
    head = f"{repository.owner.login}:{branch}"
    for pull in repository.get_pulls(state="all", head=head, sort="created", direction="desc"):
        source = pull.head.repo
        if pull.head.ref == branch and source and source.full_name == repository.full_name:
            yield pull


def _ref(repository: Repository, branch: str) -> GitRef | None:
    """As it is now."""
    try:
        return repository.get_git_ref(f"heads/{branch}")
    except github.UnknownObjectException:
        return None


def _content(repository: Repository, path: str, sha: str) -> bytes | None:
    with failures(f"read {path}"):
        try:
            found = repository.get_contents(path, ref=sha)
        except github.UnknownObjectException:
            return None
    if isinstance(found, list) or found.encoding != "base64":
        raise CiError(f"{path} is not a small file")
    return found.decoded_content


def _body(proposal: Proposal) -> str:
    return f"<!-- proposal: {proposal.key} -->\n{cut(proposal.body(), BODY_LIMIT)}\n"


def _key(pull: PullRequest) -> str | None:
    found = _KEY.search(pull.body or "")
    return found[1] if found else None
