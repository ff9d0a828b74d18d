# SPDX-License-Identifier: BSD-3-Clause
"""The tie between a test and the requirements it checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from conformance.catalogue import Requirement, load

FOLDER = Path(__file__).with_name("requirements")

_Test = TypeVar("_Test", bound=Callable[..., Any])


@cache
def catalogue() -> dict[str, Requirement]:
    """Every requirement on a driver, by id."""
    return load((FOLDER,))


@dataclass(frozen=True)
class Covered:
    """What a test checks, and what a driver must offer for the test to apply."""

    requirements: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def covers(*ids: str, needs: tuple[str, ...] = ()) -> Callable[[_Test], _Test]:
    """Say which requirements a test checks. `needs` adds to what they need themselves."""
    all_needs = [need for name in ids for need in catalogue()[name].needs]
    covered = Covered(ids, tuple(dict.fromkeys([*all_needs, *needs])))

    def mark(test: _Test) -> _Test:
        test.__dict__["covers"] = covered
        return test

    return mark


def covered_by(test: Callable[..., Any]) -> Covered:
    """The requirements that `covers` gave to a test."""
    found = getattr(test, "covers", Covered())
    assert isinstance(found, Covered)
    return found
