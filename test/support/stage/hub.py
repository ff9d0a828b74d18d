# SPDX-License-Identifier: BSD-3-Clause
"""What the runner of workflows asks of GitHub, answered by the fake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from github_fake import GitHubFake
from github_fake.world import Artifact, Refusal, Repository, Run
from workflow_runner.events import Event
from workflow_runner.mistakes import Mistake

from stage.machine import furnish
from stage.mirror import Mirror


@dataclass
class FakeHub:
    """The fake, and git repositories to clone."""

    fake: GitHubFake
    folder: Path
    programs: Path  # of the machines
    kept_secrets: dict[str, str] = field(default_factory=dict)
    kept_variables: dict[str, str] = field(default_factory=dict)
    issuer: Mapping[str, str] | None = None  # the environment of an identity, if there is one
    server_url: str = "https://github.com"

    def __post_init__(self) -> None:
        self._mirror = Mirror(self.folder / "git")

    @property
    def api_url(self) -> str:
        return self.fake.url

    def git(self, repository: str) -> Path:
        return self._mirror.repository(self.fake.world, self._repository(repository))

    def default_branch(self, repository: str) -> str:
        return self._repository(repository).default_branch

    def variables(self, repository: str) -> Mapping[str, str]:
        return self.kept_variables

    def secrets(self, repository: str) -> Mapping[str, str]:
        return self.kept_secrets

    def token(self, repository: str, permissions: Mapping[str, str]) -> str:
        spelled = {name.replace("-", "_"): level for name, level in permissions.items()}
        return self.fake.new_token(spelled, repository=repository)

    def begin(self, event: Event, path: str, name: str) -> int:
        """A run; one of a PR counts as one of its head, not of the merge that it runs."""
        repository = self._repository(event.repository)
        head = (event.payload.get("pull_request") or {}).get("head")
        run = Run(
            self.fake.world.id(),
            name,
            path,
            event.name,
            head["sha"] if head else event.sha,
            head["ref"] if head else event.ref.split("/", 2)[2],
            head["repo"]["full_name"] if head else event.repository,
            event.actor,
            self.fake.world.tick(),
            status="in_progress",
            conclusion=None,
        )
        repository.runs[run.id] = run
        return run.id

    def end(self, run: int, conclusion: str) -> None:
        found, repository = self._run(run)
        self._mirror.pushed(repository)
        found.status, found.conclusion = "completed", conclusion

    def upload(self, run: int, name: str, archive: bytes) -> None:
        _, repository = self._run(run)
        for old in [a for a in repository.artifacts.values() if (a.run_id, a.name) == (run, name)]:
            del repository.artifacts[old.id]
        artifact = Artifact(self.fake.world.id(), name, run, archive, self.fake.world.tick())
        repository.artifacts[artifact.id] = artifact

    def artifacts(self, run: int) -> Mapping[str, bytes]:
        _, repository = self._run(run)
        return {a.name: a.data for a in repository.artifacts.values() if a.run_id == run}

    def identity(self, claims: Mapping[str, str]) -> Mapping[str, str]:
        if self.issuer is None:
            raise Mistake("a job asks for its identity, and nobody issues one here")
        return self.issuer

    def furnish(self, repository: str, checkout: Path) -> None:
        if (checkout / "reference_backend").is_dir():
            furnish(checkout, self.programs)

    def _repository(self, full_name: str) -> Repository:
        try:
            return self.fake.world.repository(full_name)
        except Refusal as refusal:
            raise Mistake(f"there is no repository {full_name}") from refusal

    def _run(self, run: int) -> tuple[Run, Repository]:
        for repository in self.fake.world.repositories.values():
            if run in repository.runs:
                return repository.runs[run], repository
        raise Mistake(f"there is no run {run}")
