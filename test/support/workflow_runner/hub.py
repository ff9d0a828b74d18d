# SPDX-License-Identifier: BSD-3-Clause
"""What the runner asks of GitHub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from workflow_runner.events import Event


class Hub(Protocol):
    """Repositories, runs and their artifacts."""

    @property
    def api_url(self) -> str:
        """Where its API is."""

    @property
    def server_url(self) -> str:
        """Where people look at it."""

    def git(self, repository: str) -> Path:
        """The git repository (bare or not) of owner/name; Mistake if there is none."""

    def default_branch(self, repository: str) -> str:
        """Its name, such as main."""

    def variables(self, repository: str) -> Mapping[str, str]:
        """Those that its settings give to workflows."""

    def secrets(self, repository: str) -> Mapping[str, str]:
        """Those that its settings give to workflows of its own."""

    def token(self, repository: str, permissions: Mapping[str, str]) -> str:
        """A token for one job, which may do this and no more."""

    def begin(self, event: Event, path: str, name: str) -> int:
        """A run of the workflow at `path` starts; its number."""

    def end(self, run: int, conclusion: str) -> None:
        """It is over."""

    def upload(self, run: int, name: str, archive: bytes) -> None:
        """An artifact of the run, as a zip file."""

    def artifacts(self, run: int) -> Mapping[str, bytes]:
        """Those of the run, by name."""

    def identity(self, claims: Mapping[str, str]) -> Mapping[str, str]:
        """The environment by which a job with `id-token: write` asks for its identity."""

    def furnish(self, repository: str, checkout: Path) -> None:
        """Put into a checkout what the machine is taken to have built of it before."""
