# SPDX-License-Identifier: BSD-3-Clause
"""The fixtures of tests that talk to GitHub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
