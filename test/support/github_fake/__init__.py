# SPDX-License-Identifier: BSD-3-Clause
"""A GitHub on this machine that remembers, and holds both sides to GitHub's own description."""

from github_fake.handling import Reply
from github_fake.people import Person
from github_fake.server import GitHubFake, Record, Token
from github_fake.world import BOT

__all__ = ["BOT", "GitHubFake", "Person", "Record", "Reply", "Token"]
