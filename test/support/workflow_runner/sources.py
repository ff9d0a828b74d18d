# SPDX-License-Identifier: BSD-3-Clause
"""Where the files of a workflow come from: a repository at one commit, never a directory."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from workflow_runner.mistakes import Mistake

WORKFLOWS = ".github/workflows"


@dataclass(frozen=True)
class Source:
    """A repository at a commit."""

    repository: str
    git: Path
    sha: str

    @classmethod
    def at(cls, repository: str, git: Path, name: str) -> Source:
        """Of a commit, branch or tag, as it is now."""
        sha = cls(repository, git, name)._git("rev-parse", "--verify", f"{name}^{{commit}}")
        return cls(repository, git, sha.decode().strip())

    def files(self, folder: str) -> list[str]:
        return self._git("ls-tree", "--name-only", self.sha, f"{folder}/").decode().split()

    def read(self, path: str) -> str:
        return self._git("show", f"{self.sha}:{PurePosixPath(path)}").decode()

    def unpack(self, folder: str, target: Path) -> None:
        """The directory's files, below `target`."""
        target.mkdir(parents=True, exist_ok=True)
        archive = self._git("archive", self.sha, folder)
        subprocess.run(["tar", "--extract", f"--directory={target}"], input=archive, check=True)

    def _git(self, *words: str) -> bytes:
        done = subprocess.run(["git", *words], cwd=self.git, capture_output=True, check=False)
        if done.returncode:
            raise Mistake(f"{self.repository} at {self.sha[:9]}: {done.stderr.decode().strip()}")
        return done.stdout


def workflows(source: Source) -> list[str]:
    """The paths of all workflows of the repository."""
    return [path for path in source.files(WORKFLOWS) if path.endswith((".yml", ".yaml"))]
