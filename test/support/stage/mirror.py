# SPDX-License-Identifier: BSD-3-Clause
"""The fake's repositories as git repositories, to be cloned."""

from __future__ import annotations

import os
import subprocess
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from github_fake.git_objects import commit_bytes, tree_bytes
from github_fake.world import Repository, World
from workflow_runner.mistakes import Mistake

_CONFIG = """[core]
repositoryformatversion = 0
bare = true
[uploadpack]
allowAnySHA1InWant = true
"""  # as GitHub allows
_HEAD_OF_REFS = "# pack-refs with: peeled fully-peeled sorted \n"


@dataclass
class Mirror:
    """One directory of objects, and bare repositories that share it."""

    folder: Path
    _written: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def repository(self, world: World, repository: Repository) -> Path:
        """The git repository, as the fake's is now."""
        with self._lock:
            self._write_objects(world)
            bare = self.folder / f"{repository.full_name}.git"
            if not bare.is_dir():
                self._make(bare, repository)
            lines = sorted(f"{sha} {ref}" for ref, sha in repository.refs.items())
            text = _HEAD_OF_REFS + "".join(
                f"{line}\n" for line in sorted(lines, key=lambda line: line.split()[1])
            )
            refs = bare / "packed-refs"
            if not refs.exists() or refs.read_text() != text:
                refs.write_text(text)
            return bare

    def pushed(self, repository: Repository) -> None:
        """A push by git itself would not reach the fake: none may have happened."""
        bare = self.folder / f"{repository.full_name}.git"
        loose = [path for path in (bare / "refs").rglob("*") if path.is_file()]
        if loose:
            raise Mistake(f"git pushed {loose[0].relative_to(bare)}: use the API")

    def _make(self, bare: Path, repository: Repository) -> None:
        for sub in ("objects/info", "refs/heads"):
            (bare / sub).mkdir(parents=True)
        (bare / "config").write_text(_CONFIG)
        (bare / "HEAD").write_text(f"ref: refs/heads/{repository.default_branch}\n")
        (bare / "objects/info/alternates").write_text(f"{self.folder / 'objects'}\n")

    def _write_objects(self, world: World) -> None:
        objects = world.objects
        self._write("blob", ((sha, data) for sha, data in list(objects.blobs.items())))
        self._write("tree", ((sha, tree_bytes(tree)) for sha, tree in list(objects.trees.items())))
        self._write("commit", ((s, commit_bytes(c)) for s, c in list(objects.commits.items())))

    def _write(self, kind: str, objects: Iterable[tuple[str, bytes]]) -> None:
        for sha, data in objects:
            if sha in self._written:
                continue
            path = self.folder / "objects" / sha[:2] / sha[2:]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(zlib.compress(f"{kind} {len(data)}\0".encode() + data, 1))
            self._written.add(sha)


def listed(root: Path) -> list[tuple[str, str]]:
    """Mode and path of each file that git knows of a checkout, as it is on disk."""
    lines = subprocess.run(
        ["git", "ls-files", "--stage", "-z"], cwd=root, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    entries = [(line.split(" ")[0], line.partition("\t")[2]) for line in lines if line]
    return [(mode, path) for mode, path in entries if (root / path).is_file()]


def content(root: Path, mode: str, path: str) -> bytes:
    """What git keeps of a file: of a symbolic link, where it points to."""
    file = root / path
    return os.fsencode(file.readlink()) if mode == "120000" else file.read_bytes()
