# SPDX-License-Identifier: BSD-3-Clause
"""labels/surfaces.yml, read: which surface a name belongs to, and what has to be read."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from ci.errors import CiError

RULES = Path(__file__).parents[2] / "labels" / "surfaces.yml"


@dataclass(frozen=True)
class Surface:
    """One entry of labels/surfaces.yml; see there for what each list means."""

    name: str
    title: str
    paths: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalogue:
    """All surfaces, in the order of the file."""

    surfaces: tuple[Surface, ...]

    @functools.cached_property
    def headers(self) -> tuple[str, ...]:
        """Every listed header once."""
        return tuple(dict.fromkeys(h for s in self.surfaces for h in s.headers))

    def surface_of_symbol(self, name: str) -> str | None:
        """The surface of a qualified C++ name, by the most exact pattern for it or its class."""
        return _best(name, self._symbols)

    def surface_of_macro(self, name: str) -> str | None:
        """The surface of a macro."""
        return _best(name, self._macros)

    @functools.cached_property
    def _symbols(self) -> tuple[tuple[re.Pattern[str], int, str], ...]:
        return tuple(_pattern(p, s.name) for s in self.surfaces for p in s.symbols)

    @functools.cached_property
    def _macros(self) -> tuple[tuple[re.Pattern[str], int, str], ...]:
        return tuple(_pattern(p, s.name) for s in self.surfaces for p in s.macros)


def load(path: Path = RULES) -> Catalogue:
    """Read the rules; CiError names the entry that is wrong."""
    try:
        entries = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise CiError(f"{path}: {error}") from error
    return Catalogue(tuple(_surface(path, name, entry) for name, entry in entries.items()))


def _surface(path: Path, name: str, entry: object) -> Surface:
    fields = set(Surface.__dataclass_fields__) - {"name", "title"}
    if not isinstance(entry, dict) or not isinstance(entry.get("title"), str):
        raise CiError(f"{path}: surface {name} needs a title")
    if unknown := set(entry) - fields - {"title"}:
        raise CiError(f"{path}: surface {name} has unknown keys: {', '.join(sorted(unknown))}")
    lists = {field: tuple(entry.get(field, ())) for field in fields}
    if wrong := [f for f, v in lists.items() if not all(isinstance(x, str) for x in v)]:
        raise CiError(f"{path}: surface {name}: {', '.join(sorted(wrong))} must be lists of text")
    return Surface(name, entry["title"], **lists)


def _pattern(pattern: str, surface: str) -> tuple[re.Pattern[str], int, str]:
    """A pattern of names, how exact it is, and its surface: `*` stays within one scope."""
    body = re.escape(pattern).replace(r"\*", r"(?:(?!::).)*")
    return re.compile(rf"{body}(?:::.*)?"), len(pattern.replace("*", "")), surface


def _best(name: str, patterns: tuple[tuple[re.Pattern[str], int, str], ...]) -> str | None:
    hits = [(exact, surface) for pattern, exact, surface in patterns if pattern.fullmatch(name)]
    return max(hits, key=lambda hit: hit[0])[1] if hits else None
