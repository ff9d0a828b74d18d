# SPDX-License-Identifier: BSD-3-Clause
"""The fixtures of tests that talk to GitHub."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from github_fake import GitHubFake

# What a workflow run has in its environment, and a test must not inherit.
ACTIONS = ("GITHUB_", "ACTIONS_", "RUNNER_")


@pytest.fixture
def github_fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubFake]:
    """A GitHub with the repository octo-org/puone, and this process's environment set for it.

    At the end, everything that broke GitHub's description of its API fails the test.
    """
    from github_fake import GitHubFake  # not for tests of other things

    for name in [name for name in os.environ if name.startswith(ACTIONS) or name == "CI"]:
        monkeypatch.delenv(name)
    with GitHubFake() as fake:
        monkeypatch.setenv("GITHUB_API_URL", fake.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", fake.repository.full_name)
        monkeypatch.setenv("GITHUB_TOKEN", fake.token)
        yield fake
    fake.check()


@pytest.fixture
def converges(github_fake: GitHubFake) -> Callable[..., None]:
    """`converges(run, state)`: see github_fake.convergence."""
    from github_fake.convergence import converges

    return functools.partial(converges, github_fake)


@pytest.fixture
def github_event(
    github_fake: GitHubFake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str, dict[str, Any]], Path]:
    """`github_event("push", payload)`: as a workflow started by it finds it in its environment."""

    def deliver(name: str, payload: dict[str, Any]) -> Path:
        path = tmp_path / f"event-{name}.json"
        path.write_text(json.dumps(payload))
        monkeypatch.setenv("GITHUB_EVENT_NAME", name)
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))
        return path

    return deliver


class Ended(NamedTuple):
    """How a verb ended, and what it said."""

    status: int
    out: str
    err: str


Verb = Callable[..., Ended]


@pytest.fixture
def verb(capsys: pytest.CaptureFixture[str]) -> Verb:
    """Runs `torch-backend-ci` in this process."""
    from torch_backend_ci.cli import main

    def run(*words: object) -> Ended:
        capsys.readouterr()
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return Ended(status, said.out, said.err)

    return run


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would have been waited before trying again; they do not pass."""
    import urllib3.util.retry

    waited: list[float] = []
    clock = SimpleNamespace(sleep=waited.append, time=time.time)
    monkeypatch.setattr(urllib3.util.retry, "time", clock)
    return waited


def writes(fake: GitHubFake) -> list[str]:
    """The operations that may have changed something, in their order."""
    return [call.operation for call in fake.calls if call.writes]
