# SPDX-License-Identifier: BSD-3-Clause
"""The requirement catalogue: what a backend must, should or may do, one file for each surface."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.check import REQUIREMENT_ID

FOLDER = Path(__file__).parent / "requirements"
LEVELS = ("must", "should", "may")
# In the order in which a new backend meets them; `--tier X` selects X and the ones before it.
TIERS = ("smoke", "core", "inference", "training", "scale_out", "compile")
# Not a tier of its own: what is quick of these tiers, for the gate of a change.
PR_TIER = "pr"
PR_CONTAINS = "training"
SURFACES = (
    "smoke",
    "registration",
    "device",
    "memory",
    "stream",
    "event",
    "copy",
    "generator",
    "factory",
    "view",
    "serialization",
    "thread",
    "error",
    "operator",
    "numerics",
    "autograd",
    "func",
    "custom_operator",
    "random",
    "autocast",
    "grad_scaler",
    "opinfo",
    "module",
    "optimizer",
    "model",
    "footprint",
    "large",
    "claim",
)
KEYS = frozenset(
    {"level", "tier", "needs", "since", "until", "blocked_upstream", "statement", "reason", "link"}
)
REQUIRED_KEYS = ("level", "tier", "statement", "reason")


class CatalogueError(Exception):
    """A catalogue file that breaks the rules; the text names file and requirement."""


@dataclass(frozen=True)
class Blocked:
    """An upstream issue because of which no backend can satisfy a requirement, in some torch."""

    issue: str
    torch: str | None = None


@dataclass(frozen=True)
class Requirement:
    """One numbered statement a backend must, should or may satisfy."""

    id: str
    surface: str
    level: str
    tier: str
    statement: str
    reason: str
    needs: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    link: str | None = None
    blocked_upstream: Blocked | None = None


def load(folders: Iterable[Path] = (FOLDER,)) -> dict[str, Requirement]:
    """Every requirement of the catalogue files in `folders`, by id."""
    requirements: dict[str, Requirement] = {}
    for folder in folders:
        for file in sorted(folder.glob("*.yaml")):
            for requirement in _load_file(file):
                if requirement.id in requirements:
                    raise CatalogueError(f"{file}: {requirement.id} is defined twice")
                requirements[requirement.id] = requirement
    return requirements


def _load_file(file: Path) -> list[Requirement]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise CatalogueError(f"{file}: {error}") from None
    surface, entries = content.get("surface"), content.get("requirements")
    if surface != file.stem or not isinstance(entries, dict):
        raise CatalogueError(f"{file}: needs `surface: {file.stem}` and a map `requirements`")
    return [_requirement(file, surface, id, entry) for id, entry in entries.items()]


def _requirement(file: Path, surface: str, id: str, entry: dict[str, Any]) -> Requirement:
    where = f"{file}: {id}"
    if not REQUIREMENT_ID.fullmatch(str(id)):
        raise CatalogueError(f"{where}: not an id like STREAM-004")
    unknown = set(entry) - KEYS
    if unknown:
        raise CatalogueError(f"{where}: unknown key {sorted(unknown)[0]!r}")
    for key in REQUIRED_KEYS:
        if not entry.get(key):
            raise CatalogueError(f"{where}: key {key!r} is missing")
    if entry["level"] not in LEVELS or entry["tier"] not in TIERS:
        raise CatalogueError(f"{where}: level is one of {LEVELS}, tier one of {TIERS}")
    for key in ("since", "until"):
        if not isinstance(entry.get(key, ""), str):
            raise CatalogueError(f"{where}: {key} must be quoted: 2.10 is not 2.1")
    blocked = entry.get("blocked_upstream")
    return Requirement(
        id=str(id),
        surface=surface,
        level=entry["level"],
        tier=entry["tier"],
        statement=entry["statement"],
        reason=entry["reason"],
        needs=tuple(entry.get("needs", ())),
        since=entry.get("since"),
        until=entry.get("until"),
        link=entry.get("link"),
        blocked_upstream=Blocked(blocked["issue"], blocked.get("torch")) if blocked else None,
    )
