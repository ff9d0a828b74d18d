# SPDX-License-Identifier: BSD-3-Clause
"""label/labels.yaml and surface/surfaces.yaml, read: which labels there are, and for what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from torch_backend_ci.errors import CiError
from torch_backend_ci.label.globs import Glob, compile_glob
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.model import Severity

LABELS = Path(__file__).parent / "labels.yaml"

_TEXTS = {"name", "color", "description"}
_PURPOSES = {"surface", "severities", "paths", "not_covered"}
_MAX_NAME, _MAX_DESCRIPTION = 50, 100  # GitHub's limits
_COLOUR = re.compile(r"[0-9a-f]{6}")


@dataclass(frozen=True)
class Label:
    """One label, and what gives it to a PR."""

    name: str
    colour: str  # six hexadecimal digits
    description: str
    paths: tuple[Glob, ...] = ()  # it changes one of these files
    surface: str | None = None  # it has a finding on this surface
    severities: frozenset[Severity] = frozenset()  # its worst findings are of these
    not_covered: bool = (
        False  # nothing worse than cosmetic was found, and it changes a file that no
    )
    # surface covers

    @property
    def is_impact(self) -> bool:
        """Of these labels a PR has one."""
        return self.not_covered or bool(self.severities)


@dataclass(frozen=True)
class Rules:
    """All labels in the order of the file; of those with severities the first is the worst."""

    labels: tuple[Label, ...]

    @property
    def surfaces(self) -> frozenset[str]:
        """Every surface that has a label."""
        return frozenset(label.surface for label in self.labels if label.surface)


def load(labels: Path = LABELS, surfaces: Path = catalogue.RULES) -> Rules:
    """Read both files; CiError says what is wrong in one of them, or between them."""
    paths = {s.name: _globs(surfaces, s.name, s.paths) for s in catalogue.load(surfaces).surfaces}
    try:
        entries = yaml.load(labels.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CiError(f"{labels}: {error}") from error
    if not isinstance(entries, list):
        raise CiError(f"{labels} must be a list of labels")
    rules = Rules(tuple(_label(labels, entry, paths) for entry in entries))
    names = Counter(label.name.lower() for label in rules.labels)  # GitHub's eyes see no case
    severities = Counter(s for label in rules.labels for s in label.severities)
    _refuse(labels, "defines more than once", (n for n, times in names.items() if times > 1))
    _refuse(labels, "has no label for the surfaces", paths.keys() - rules.surfaces)
    _refuse(labels, "needs exactly one label for", (s for s in Severity if severities[s] != 1))
    if sum(label.not_covered for label in rules.labels) != 1:
        raise CiError(f"{labels} needs exactly one label with not_covered: true")
    return rules


def _refuse(file: Path, why: str, what: Iterable[str]) -> None:
    if names := ", ".join(sorted(map(str, what))):
        raise CiError(f"{file} {why}: {names}")


def _label(file: Path, entry: Any, surfaces: Mapping[str, tuple[Glob, ...]]) -> Label:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(k), str) for k in _TEXTS):
        raise CiError(f"{file}: a label needs name, color and description, as text: {entry!r}")
    name, colour, description = entry["name"], entry["color"], entry["description"]
    if len(name) > _MAX_NAME or len(description) > _MAX_DESCRIPTION:
        raise CiError(
            f"{file}: {name!r}: GitHub takes names of up to {_MAX_NAME} characters and "
            f"descriptions of up to {_MAX_DESCRIPTION}"
        )
    if name in (".", ".."):  # in an address it would stand for another directory
        raise CiError(f"{file}: no label can be called {name!r}")
    if not _COLOUR.fullmatch(colour):
        raise CiError(f"{file}: {name!r}: a color is six lower-case hexadecimal digits")
    purpose = entry.keys() - _TEXTS
    if len(purpose) != 1 or not purpose <= _PURPOSES:
        raise CiError(f"{file}: {name!r} needs exactly one of {', '.join(sorted(_PURPOSES))}")
    if "paths" in purpose:
        return Label(name, colour, description, paths=_globs(file, name, entry["paths"]))
    if "severities" in purpose:
        severities = _severities(file, name, entry["severities"])
        return Label(name, colour, description, severities=severities)
    if "not_covered" in purpose:
        if entry["not_covered"] is not True:
            raise CiError(f"{file}: {name!r}: not_covered can only be true")
        return Label(name, colour, description, not_covered=True)
    surface = entry["surface"]
    if not isinstance(surface, str) or surface not in surfaces:
        raise CiError(f"{file}: {name!r}: surface/surfaces.yaml has no surface {surface!r}")
    return Label(name, colour, description, paths=surfaces[surface], surface=surface)


def _severities(file: Path, name: str, values: Any) -> frozenset[Severity]:
    try:
        return frozenset(map(Severity, values))
    except (TypeError, ValueError) as error:
        raise CiError(f"{file}: {name!r}: {error}") from error


def _globs(file: Path, name: str, texts: Any) -> tuple[Glob, ...]:
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise CiError(f"{file}: {name!r}: paths must be a list of globs")
    try:
        return tuple(map(compile_glob, texts))
    except CiError as error:
        raise CiError(f"{file}: {name!r}: {error}") from error
