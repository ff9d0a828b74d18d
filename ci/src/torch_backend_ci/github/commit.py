# SPDX-License-Identifier: BSD-3-Clause
"""Commits of a repository."""

from __future__ import annotations

import github
from github.Repository import Repository

from torch_backend_ci.github.access import failures


def exists(repository: Repository, sha: str) -> bool:
    """Whether the repository has this commit: one that was force-pushed away is gone some day."""
    with failures(f"look for commit {sha} of {repository.full_name}"):
        try:
            repository.get_commit(sha)
        except github.GithubException as error:
            if error.status in {404, 422}:
                return False
            raise
    return True
