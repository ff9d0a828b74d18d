# SPDX-License-Identifier: BSD-3-Clause
"""Branches that hold data and no code: `results`, `feed`.

They are written through GitHub's git data API. Blobs, trees and commits that nothing refers to are
invisible, so the one thing that counts is the last call, which moves the branch: a run that is
killed before it has changed nothing. It never forces; who loses a race reads what the winner has
made of the branch and adds to that.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from github import GithubException, InputGitTreeElement, UnknownObjectException
from github.GitCommit import GitCommit
from github.GithubObject import NotSet
from github.GitTreeElement import GitTreeElement
from github.Repository import Repository

from torch_backend_ci.errors import CiError
from torch_backend_ci.github.access import failures
from torch_backend_ci.github.change import Change

Files = Mapping[str, bytes | None]  # by path; None removes the file

_FILE, _FOLDER = "blob", "tree"
_MODE = "100644"
_TRIES = 8
_RACE_LOST = (409, 422)  # not a fast-forward any more; the branch was made meanwhile
_MAX_FILE = 40 << 20  # bytes; GitHub takes requests of about 50 MB, and base64 adds a third
_NAME = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._+-]+"
_PATH = re.compile(rf"{_NAME}(?:/{_NAME})*")


@dataclass(frozen=True)
class State:
    """A branch at one of its commits; without a commit it is not there yet."""

    repo: Repository
    commit: GitCommit | None
    _trees: dict[str, Mapping[str, GitTreeElement]] = field(default_factory=dict, compare=False)

    def read(self, path: str) -> bytes | None:
        """The content of a file, of any size; None if it is not there."""
        entry = self._entry(path)
        if entry is None or entry.type != _FILE:
            return None
        blob = self.repo.get_git_blob(entry.sha)
        content = blob.content.encode()
        return base64.b64decode(content) if blob.encoding == "base64" else content

    def names(self, folder: str) -> list[str]:
        """The names of the files in a directory."""
        return [name for name, entry in self._folder(folder).items() if entry.type == _FILE]

    def holds(self, path: str, content: bytes | None) -> bool:
        """Whether the file is so already; for nothing is sent that would change nothing."""
        entry = self._entry(path)
        return (entry.sha if entry else None) == (None if content is None else _blob_sha(content))

    def _entry(self, path: str) -> GitTreeElement | None:
        folder, _, name = path.rpartition("/")
        return self._folder(folder).get(name)

    def _folder(self, path: str) -> Mapping[str, GitTreeElement]:
        """The entries of a directory by name."""
        if self.commit is None:
            return {}
        sha = self.commit.tree.sha
        for name in filter(None, path.split("/")):
            entry = self._tree(sha).get(name)
            if entry is None or entry.type != _FOLDER:
                return {}
            sha = entry.sha
        return self._tree(sha)

    def _tree(self, sha: str) -> Mapping[str, GitTreeElement]:
        if sha not in self._trees:
            self._trees[sha] = {entry.path: entry for entry in self.repo.get_git_tree(sha).tree}
        return self._trees[sha]


def read(repo: Repository, branch: str, path: str) -> bytes | None:
    """The content of a file of a branch; None if the file or the branch is not there."""
    with failures(f"read {path} of branch {branch}"):
        return state(repo, branch).read(path)


def state(repo: Repository, branch: str) -> State:
    """The branch as it is now."""
    try:
        tip = repo.get_git_ref(f"heads/{branch}").object.sha
    except UnknownObjectException:
        return State(repo, None)
    return State(repo, repo.get_git_commit(tip))


def publish(repo: Repository, branch: str, files: Files, message: str) -> Iterator[Change]:
    """Put files on a branch; no change if they are there already."""
    return update(repo, branch, lambda _: files, message)


def update(
    repo: Repository, branch: str, edit: Callable[[State], Files], message: str
) -> Iterator[Change]:
    """Change a branch by what `edit` makes of its state; no change if that is nothing.

    `edit` is called again for the new state if somebody else was faster.
    """
    if branch == repo.default_branch:
        raise CiError(f"branch {branch} is the one with the code: data goes to one of its own")
    with failures(f"read branch {branch}"):
        pending = _pending(state(repo, branch), edit)
    if pending:
        says = f"put {_counted(pending)} on branch {branch}: {message}"
        yield Change(says, lambda: _commit(repo, branch, edit, message))


def _pending(at: State, edit: Callable[[State], Files]) -> Files:
    """What is to be written that is not so yet."""
    files = edit(at)
    for path, content in files.items():
        if not _PATH.fullmatch(path):
            raise CiError(f"{path!r} is not a name for a file on a branch with data")
        if content is not None and len(content) > _MAX_FILE:
            raise CiError(f"{path} has {len(content) >> 20} MiB: GitHub takes {_MAX_FILE >> 20}")
    return {path: content for path, content in files.items() if not at.holds(path, content)}


def _commit(repo: Repository, branch: str, edit: Callable[[State], Files], message: str) -> None:
    for _ in range(_TRIES):
        at = state(repo, branch)
        files = _pending(at, edit)
        if not files or _move(repo, branch, at.commit, _made(repo, at, files, message)):
            return
    raise CiError(f"branch {branch} was changed by others {_TRIES} times meanwhile; run it again")


def _made(repo: Repository, at: State, files: Files, message: str) -> GitCommit:
    """A commit on top of the state that nothing refers to yet."""
    elements = [_element(repo, path, content) for path, content in sorted(files.items())]
    tree = repo.create_git_tree(elements, at.commit.tree if at.commit else NotSet)
    return repo.create_git_commit(message, tree, [at.commit] if at.commit else [])


def _element(repo: Repository, path: str, content: bytes | None) -> InputGitTreeElement:
    if content is None:
        return InputGitTreeElement(path, _MODE, _FILE, sha=None)
    blob = repo.create_git_blob(base64.b64encode(content).decode(), "base64")
    return InputGitTreeElement(path, _MODE, _FILE, sha=blob.sha)


def _move(repo: Repository, branch: str, old: GitCommit | None, new: GitCommit) -> bool:
    """Let the branch point at the new commit; False if it does not point at the old one now."""
    try:
        if old is None:
            repo.create_git_ref(f"refs/heads/{branch}", new.sha)
        else:
            repo.get_git_ref(f"heads/{branch}").edit(new.sha, force=False)
    except GithubException as error:
        if error.status not in _RACE_LOST or _points_at(repo, branch, old):
            raise
        return False
    return True


def _points_at(repo: Repository, branch: str, commit: GitCommit | None) -> bool:
    """Whether nobody has moved the branch, so that the refusal has another reason."""
    now = state(repo, branch).commit
    return (now.sha if now else None) == (commit.sha if commit else None)


def _blob_sha(content: bytes) -> str:
    """The name that git gives to the content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _counted(files: Files) -> str:
    return f"{len(files)} file{'s' * (len(files) != 1)}"
