# SPDX-License-Identifier: BSD-3-Clause
"""The requirement catalogue: what a backend must, should or may do, one file for each surface."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from torch_conformance.spec import operator_families
from torch_conformance.spec.chapters import FOLDER
from torch_conformance.spec.ids import REQUIREMENT_ID
from torch_conformance.spec.plain_yaml import LOADER

LEVELS = ("must", "should", "may")
# The keywords of RFC 2119, of which a statement has exactly one.
KEYWORD = re.compile(r"\b(?:(MUST|SHOULD)(?: NOT)?|(MAY))\b")
# What stands behind a requirement: upstream's documentation, upstream's code, an upstream issue,
# or only what CUDA does.
DOCUMENTED, CODE, ISSUE, CUDA_PRACTICE = SOURCE_KINDS = (
    "documented",
    "code",
    "issue",
    "cuda-practice",
)
# In the order in which a new backend meets them; `--tier X` selects X and the ones before it.
TIERS = ("smoke", "core", "inference", "training", "multi_device", "distributed", "compile")
# Not a tier of its own: what is quick of these tiers, for the gate of a change.
PR_TIER = "pr"
PR_CONTAINS = "training"
REQUIRED_KEYS = ("tier", "statement", "reason", "source")
KEYS = frozenset({*REQUIRED_KEYS, "families", "needs", "since", "until", "blocked_upstream"})
SOURCE_KEYS = frozenset({"kind", "url"})


class CatalogueError(Exception):
    """A catalogue file that breaks the rules; the text names file and requirement."""


@dataclass(frozen=True)
class Blocked:
    """An upstream issue because of which no backend can satisfy a requirement, in some torch."""

    issue: str
    torch: str | None = None


@dataclass(frozen=True)
class Source:
    """Why a requirement is one: of what kind the source is, and where it says so."""

    kind: str
    url: str


@dataclass(frozen=True)
class Requirement:
    """One numbered statement a backend must, should or may satisfy."""

    id: str
    surface: str
    level: str
    """By the keyword of the statement."""
    tier: str
    statement: str
    reason: str
    source: Source
    needs: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
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
        content = yaml.load(file.read_text(encoding="utf-8"), LOADER) or {}
    except yaml.YAMLError as error:
        raise CatalogueError(f"{file}: {error}") from None
    surface, entries = content.get("surface"), content.get("requirements")
    if surface != file.stem or not isinstance(entries, dict):
        raise CatalogueError(f"{file}: needs `surface: {file.stem}` and a map `requirements`")
    return [
        _requirement(file, surface, id, entry)
        for written, whole in entries.items()
        for id, entry in _each(f"{file}: {written}", written, whole)
    ]


def _each(where: str, id: str, entry: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    """The entry, or those that it stands for if it is one for several families of operators."""
    _verify_keys(where, entry)
    if ("families" in entry) is not (operator_families.EVERY in str(id)):
        raise CatalogueError(f"{where}: an id with '*' and the key 'families' need each other")
    if "families" not in entry:
        return [(id, entry)]
    unknown = set(entry["families"]) - set(operator_families.every())
    if unknown:
        raise CatalogueError(f"{where}: unknown family {sorted(unknown)[0]!r}")
    return operator_families.expanded(id, entry)


def _verify_keys(where: str, entry: Any) -> None:
    if not isinstance(entry, dict):
        raise CatalogueError(f"{where}: not a map")
    unknown = set(entry) - KEYS
    if unknown:
        raise CatalogueError(f"{where}: unknown key {sorted(unknown)[0]!r}")
    for key in REQUIRED_KEYS:
        if not entry.get(key):
            raise CatalogueError(f"{where}: key {key!r} is missing")
    _verify_source(where, entry["source"])


def _requirement(file: Path, surface: str, id: str, entry: dict[str, Any]) -> Requirement:
    where = f"{file}: {id}"
    if not REQUIREMENT_ID.fullmatch(str(id)):
        raise CatalogueError(f"{where}: not an id like STREAM-004 or OPINFO-LINALG-003")
    level = _level(where, entry["statement"])
    if entry["tier"] not in TIERS:
        raise CatalogueError(f"{where}: tier is one of {TIERS}")
    for key in ("since", "until"):
        if not isinstance(entry.get(key, ""), str):
            raise CatalogueError(f"{where}: {key} must be quoted: 2.10 is not 2.1")
    blocked = entry.get("blocked_upstream")
    return Requirement(
        id=str(id),
        surface=surface,
        level=level,
        tier=entry["tier"],
        statement=entry["statement"],
        reason=entry["reason"],
        source=Source(**entry["source"]),
        needs=tuple(entry.get("needs", ())),
        since=entry.get("since"),
        until=entry.get("until"),
        blocked_upstream=Blocked(blocked["issue"], blocked.get("torch")) if blocked else None,
    )


def _level(where: str, statement: str) -> str:
    found = list(KEYWORD.finditer(statement))
    if len(found) != 1:
        keywords = ", ".join(match[0] for match in found) or "none"
        raise CatalogueError(
            f"{where}: the statement needs exactly one of MUST, MUST NOT, SHOULD, SHOULD NOT, MAY; "
            f"it has {keywords}"
        )
    return (found[0][1] or found[0][2]).lower()


def _verify_source(where: str, source: Any) -> None:
    if not isinstance(source, dict) or set(source) != SOURCE_KEYS:
        raise CatalogueError(f"{where}: source is a map with the keys kind and url")
    if source["kind"] not in SOURCE_KINDS:
        raise CatalogueError(f"{where}: the kind of a source is one of {SOURCE_KINDS}")
    url = source["url"]
    if url != operator_families.DOCUMENTATION and not str(url).startswith("https://"):
        raise CatalogueError(f"{where}: the url of a source begins with https://")
