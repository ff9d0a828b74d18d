# SPDX-License-Identifier: BSD-3-Clause
"""Who asks, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEVELS = {"read": 1, "write": 2}


@dataclass
class Token:
    """Who asks, and what they may do."""

    text: str
    actor: str
    permissions: Mapping[str, str] | None = None  # None: everything
    repository: str | None = None  # where alone it may write; None: everywhere
    expired: bool = False

    def may(self, repository: str | None, needs: Sequence[tuple[str, str]]) -> bool:
        """Any of the alternatives will do. Metadata is open to every token."""
        foreign = self.repository is not None and repository not in (None, self.repository.lower())
        return not needs or any(
            LEVELS.get(self._level(what), 0) >= LEVELS[level] and not (foreign and level == "write")
            for what, level in needs
        )

    def _level(self, what: str) -> str:
        if self.permissions is None:
            return "write"
        return "read" if what == "metadata" else self.permissions.get(what, "")
