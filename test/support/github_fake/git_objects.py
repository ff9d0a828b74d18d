# SPDX-License-Identifier: BSD-3-Clause
"""Git's objects, named as git names them."""

from __future__ import annotations

import datetime
import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

KINDS = {"040000": "tree", "160000": "commit"}


@dataclass(frozen=True)
class Entry:
    """What a name in a tree stands for."""

    mode: str
    sha: str

    @property
    def kind(self) -> str:
        """blob, tree or commit (a submodule)."""
        return KINDS.get(self.mode, "blob")


@dataclass(frozen=True)
class Commit:
    """The parts that answers show."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    message: str
    author: tuple[str, str]  # name and email
    date: str


@dataclass(eq=False)
class Objects:
    """Only ever grows, so every state of the world may share it."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    trees: dict[str, dict[str, Entry]] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> Objects:
        return self

    def add_blob(self, data: bytes) -> str:
        """Its sha."""
        sha = _sha("blob", data)
        self.blobs[sha] = data
        return sha

    def add_tree(self, entries: Mapping[str, Entry]) -> str:
        """Of one directory."""
        ordered = sorted(entries.items(), key=lambda e: e[0] + "/" * (e[1].kind == "tree"))
        sha = _sha("tree", tree_bytes(dict(ordered)))
        self.trees[sha] = dict(ordered)
        return sha

    def add_files(self, files: Mapping[str, Entry]) -> str:
        """The tree of whole paths."""
        here: dict[str, Entry] = {}
        below: dict[str, dict[str, Entry]] = {}
        for path, entry in files.items():
            folder, _, rest = path.partition("/")
            if rest:
                below.setdefault(folder, {})[rest] = entry
            else:
                here[path] = entry
        for folder, content in below.items():
            here[folder] = Entry("040000", self.add_files(content))
        return self.add_tree(here)

    def files(self, tree: str, below: str = "") -> dict[str, Entry]:
        """Every file by its whole path."""
        found: dict[str, Entry] = {}
        for name, entry in self.trees[tree].items():
            if entry.kind == "tree":
                found |= self.files(entry.sha, f"{below}{name}/")
            else:
                found[f"{below}{name}"] = entry
        return found

    def add_commit(
        self,
        tree: str,
        parents: Iterable[str],
        message: str,
        author: tuple[str, str],
        date: str,
    ) -> str:
        """Its sha, a function of everything in it."""
        commit = Commit("", tree, tuple(parents), message, author, date)
        sha = _sha("commit", commit_bytes(commit))
        self.commits[sha] = replace(commit, sha=sha)
        return sha

    def history(self, sha: str) -> list[str]:
        """The commit and all before it, a parent always after its children's first parents."""
        seen: dict[str, None] = {}
        waiting = [sha]
        while waiting:
            at = waiting.pop(0)
            if at not in seen and at in self.commits:
                seen[at] = None
                waiting += self.commits[at].parents
        return list(seen)

    def merge_base(self, one: str, other: str) -> str | None:
        """The nearest commit that is part of both."""
        theirs = set(self.history(other))
        return next((sha for sha in self.history(one) if sha in theirs), None)

    def contains(self, tip: str, sha: str) -> bool:
        """Whether moving from `sha` to `tip` is a fast-forward."""
        return sha in self.history(tip)


@dataclass(frozen=True)
class Change:
    """One file of a difference."""

    path: str
    status: str  # added, removed, modified, renamed
    before: str | None  # blob
    after: str | None
    old_path: str | None = None


@functools.lru_cache(maxsize=64)
def difference(objects: Objects, before: str, after: str) -> list[Change]:
    """Between two trees; a file that moved unchanged is a rename."""
    old, new = objects.files(before), objects.files(after)
    gone = {entry.sha: path for path, entry in old.items() if path not in new}
    moved: set[str] = set()
    changes = []
    for path, entry in new.items():
        was = old.get(path)
        source = gone.get(entry.sha) if was is None else None
        if source is not None and source not in moved:
            moved.add(source)
            changes.append(Change(path, "renamed", entry.sha, entry.sha, source))
        elif was is None:
            changes.append(Change(path, "added", None, entry.sha))
        elif was != entry:
            changes.append(Change(path, "modified", was.sha, entry.sha))
    changes += [
        Change(path, "removed", old[path].sha, None) for path in old.keys() - new.keys() - moved
    ]
    return sorted(changes, key=lambda change: change.path)


def tree_bytes(entries: Mapping[str, Entry]) -> bytes:
    """As git writes a tree, its entries in git's order."""
    return b"".join(
        f"{entry.mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(entry.sha)
        for name, entry in entries.items()
    )


def commit_bytes(commit: Commit) -> bytes:
    """As git writes a commit."""
    when = datetime.datetime.fromisoformat(commit.date.replace("Z", "+00:00"))
    who = f"{commit.author[0]} <{commit.author[1]}> {int(when.timestamp())} +0000"
    lines = [f"tree {commit.tree}", *(f"parent {parent}" for parent in commit.parents)]
    lines += [f"author {who}", f"committer {who}", "", commit.message]
    return "\n".join(lines).encode()


def _sha(kind: str, data: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data).hexdigest()
