# SPDX-License-Identifier: BSD-3-Clause
"""A hub for tests of the workflow runner: repositories of a few files, and no API."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from workflow_runner.events import Event
from workflow_runner.mistakes import Mistake

_WHO = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")


def git(folder: Path, *words: str) -> str:
    """What git prints; its error if it fails."""
    done = subprocess.run(
        ["git", *_WHO, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str]) -> str:
    """The files as a commit on top of what is checked out; made a repository if it is none."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


class SmallHub:
    """Everything in dictionaries."""

    api_url = "http://api.invalid"
    server_url = "https://github.com"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept_secrets: dict[str, str] = {}
        self.kept_variables: dict[str, str] = {}
        self.tokens: dict[str, Mapping[str, str]] = {}
        self.runs: list[str] = []
        self.uploads: dict[int, dict[str, bytes]] = {}

    def git(self, repository: str) -> Path:
        if not (self.folder / repository).is_dir():
            raise Mistake(f"there is no repository {repository}")
        return self.folder / repository

    def default_branch(self, repository: str) -> str:
        return "main"

    def variables(self, repository: str) -> Mapping[str, str]:
        return self.kept_variables

    def secrets(self, repository: str) -> Mapping[str, str]:
        return self.kept_secrets

    def token(self, repository: str, permissions: Mapping[str, str]) -> str:
        token = f"ghs_{len(self.tokens):016}"
        self.tokens[token] = permissions
        return token

    def begin(self, event: Event, path: str, name: str) -> int:
        self.runs.append(path)
        return len(self.runs)

    def end(self, run: int, conclusion: str) -> None:
        pass

    def upload(self, run: int, name: str, archive: bytes) -> None:
        self.uploads.setdefault(run, {})[name] = archive

    def artifacts(self, run: int) -> Mapping[str, bytes]:
        return self.uploads.get(run, {})

    def identity(self, claims: Mapping[str, str]) -> Mapping[str, str]:
        return {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://id.invalid?x=1"}

    def furnish(self, repository: str, checkout: Path) -> None:
        (checkout / "furnished").touch()
