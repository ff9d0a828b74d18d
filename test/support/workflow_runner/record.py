# SPDX-License-Identifier: BSD-3-Clause
"""Which steps there are, and which of them were played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A step: its file, its job (of an action: none), its position from 0."""

    file: str
    job: str
    position: int


class Record:
    """Fills while workflows are played."""

    def __init__(self) -> None:
        self.played: set[Place] = set()

    def __call__(self, place: Place) -> None:
        self.played.add(place)


def steps(file: str, content: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The steps of a workflow or of a composite action."""
    if "runs" in content:
        yield from _numbered(file, "", content["runs"]["steps"])
    for name, job in content.get("jobs", {}).items():
        yield from _numbered(file, name, job.get("steps", []))


def _numbered(
    file: str, job: str, steps: list[Mapping[str, Any]]
) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    for index, step in enumerate(steps):
        yield Place(file, job, index), step
