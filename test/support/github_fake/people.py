# SPDX-License-Identifier: BSD-3-Clause
"""People, who act on their own account between the calls of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from github_fake.world import Comment, Files, Issue, Repository, World


@dataclass(frozen=True)
class Person:
    """Somebody at work in one repository."""

    world_now: Callable[[], World]
    login: str
    where: str

    @property
    def world(self) -> World:
        """As it is now."""
        return self.world_now()

    @property
    def repository(self) -> Repository:
        """Where they work."""
        return self.world.repository(self.where)

    def adds_label(self, number: int, name: str) -> None:
        """To an issue or pull request."""
        issue = self.repository.issue(number)
        self.world.add_label(self.repository, issue, name, self.login)

    def removes_label(self, number: int, name: str) -> None:
        """From an issue or pull request."""
        issue = self.repository.issue(number)
        self.world.remove_label(self.repository, issue, name, self.login)

    def comments(self, number: int, body: str) -> Comment:
        """On an issue or pull request."""
        return self.world.comment(self.repository.issue(number), self.login, body)

    def deletes_comment(self, number: int, comment: int) -> None:
        """Anybody's."""
        issue = self.repository.issue(number)
        issue.comments = [c for c in issue.comments if c.id != comment]

    def opens_issue(self, title: str, body: str | None = None) -> Issue:
        """A new one."""
        return self.world.open_issue(self.repository, self.login, title, body)

    def closes(self, number: int) -> None:
        """An issue or pull request."""
        self.world.set_state(self.repository.issue(number), "closed", self.login)

    def reopens(self, number: int) -> None:
        """An issue or pull request."""
        self.world.set_state(self.repository.issue(number), "open", self.login)

    def locks(self, number: int) -> None:
        """The conversation."""
        self.repository.issue(number).locked = True

    def merges(self, number: int, how: str = "merge") -> str:
        """A pull request; the commit on the base."""
        return self.world.merge(self.repository, self.repository.issue(number), self.login, how)

    def pushes(self, files: Files, branch: str = "", message: str = "Change") -> str:
        """A commit onto a branch of this repository."""
        return self.world.push(self.repository, files, branch, message=message, author=self.login)

    def pushes_to_pull(self, number: int, files: Files, *, force: bool = False) -> str:
        """More commits onto a pull request's branch, or others instead."""
        pull = self.repository.issue(number).pull
        assert pull is not None and pull.head_repository is not None
        return self.world.push(
            self.world.repository(pull.head_repository),
            files,
            pull.head_branch,
            author=self.login,
            onto=pull.base_sha if force else None,
        )

    def deletes_fork(self, number: int) -> None:
        """The repository that a pull request came from."""
        pull = self.repository.issue(number).pull
        assert pull is not None and pull.head_repository is not None
        del self.world.repositories[pull.head_repository.lower()]
        pull.head_repository = None
