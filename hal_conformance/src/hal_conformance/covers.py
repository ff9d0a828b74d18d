# SPDX-License-Identifier: BSD-3-Clause
"""The requirements on a driver, and the tie between a test and those that it checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from hal_conformance import contract

FILE = Path(__file__).with_name("requirements.yaml")

_Test = TypeVar("_Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Requirement:
    """One numbered statement that a driver must or should satisfy."""

    id: str
    level: str  # must or should
    tier: str
    statement: str
    reason: str
    needs: tuple[str, ...] = ()


@cache
def catalogue() -> dict[str, Requirement]:
    """Every requirement on a driver, by id."""
    entries = yaml.load(FILE.read_text(encoding="utf-8"), contract.LOADER)["requirements"]
    return {
        id: Requirement(id, **{**entry, "needs": tuple(entry.get("needs", ()))})
        for id, entry in entries.items()
    }


@dataclass(frozen=True)
class Covered:
    """What a test checks, and what a driver must offer for the test to apply."""

    requirements: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    patience: int = 1


def covers(*ids: str, needs: tuple[str, ...] = (), patience: int = 1) -> Callable[[_Test], _Test]:
    """Say which requirements a test checks. `needs` adds to what they need themselves.

    `patience` multiplies the deadline, for tests that take long on a driver that is right.
    """
    all_needs = [need for name in ids for need in catalogue()[name].needs]
    covered = Covered(ids, tuple(dict.fromkeys([*all_needs, *needs])), patience)

    def mark(test: _Test) -> _Test:
        test.__dict__["covers"] = covered
        return test

    return mark


def covered_by(test: Callable[..., Any]) -> Covered:
    """The requirements that `covers` gave to a test."""
    found = getattr(test, "covers", Covered())
    assert isinstance(found, Covered)
    return found
