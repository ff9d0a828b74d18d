# SPDX-License-Identifier: BSD-3-Clause
"""surface/surfaces.yaml, read: which surface a name belongs to, and what has to be read.

Beside what is listed there, everything that is known to be used (usage.py) is watched: a surface
`collects` it by patterns.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import usage
from torch_backend_ci.torch_tree import layout

RULES = Path(__file__).parent / "surfaces.yaml"
INCLUDE = "torch/include/"
_OWN = ("ATen/", "c10/", "torch/")
# Kernels of the CPU, five thousand symbols of operators, the C++ frontend.
_ASIDE = ("ATen/cpu/", "ATen/core/interned_strings.h", "torch/csrc/api/")
# torch/headeronly took these in, and the old header includes the new one.
_FORMER = (
    ("torch/headeronly/core/", "c10/core/"),
    ("torch/headeronly/util/", "c10/util/"),
    ("torch/headeronly/macros/", "c10/macros/"),
    ("torch/headeronly/cpu/", "ATen/cpu/"),
)


@dataclass(frozen=True)
class Surface:
    """One entry of surface/surfaces.yaml; see there for what each list means."""

    name: str
    title: str
    paths: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    collects: tuple[str, ...] = ()
    collected: tuple[str, ...] = ()  # those of the headers that are there because they are used


@dataclass(frozen=True)
class Catalogue:
    """All surfaces, in the order of the file."""

    surfaces: tuple[Surface, ...]

    @functools.cached_property
    def headers(self) -> tuple[str, ...]:
        """Every listed header once."""
        return tuple(dict.fromkeys(h for s in self.surfaces for h in s.headers))

    @functools.cached_property
    def chosen(self) -> frozenset[str]:
        """The headers that surface/surfaces.yaml lists."""
        collected = {header for surface in self.surfaces for header in surface.collected}
        return frozenset(self.headers) - collected

    def surface_of_symbol(self, name: str) -> str | None:
        """The surface of a qualified C++ name, by the most exact pattern for it or its class."""
        return self._symbols.best(name)

    def surface_of_macro(self, name: str) -> str | None:
        """The surface of a macro."""
        return self._macros.best(name)

    def surface_of_header(self, header: str) -> str:
        """The first surface that lists a header."""
        return self._headers.get(header) or self._headers.get(former(header), "")

    def surface_of_file(self, file: str) -> str:
        """The surface of all that a header of a torch tree declares, listed or not; "" for one that
        a build writes, and for what is kept out because it is nobody's concern."""
        header = file.removeprefix(INCLUDE)
        if header == file or layout.is_generated(file):
            return ""
        if listed := self.surface_of_header(header):
            return listed
        watched = header.startswith(_OWN) and not header.startswith(_ASIDE)
        return self.surface_of_any_header(header) if watched else ""

    def surface_of_any_header(self, header: str) -> str:
        """The surface of a header, listed or not: the first that would collect it."""
        return self.surface_of_header(header) or _collecting(self.surfaces, header) or "build"

    @functools.cached_property
    def _headers(self) -> dict[str, str]:
        surfaces = reversed(self.surfaces)  # the first one counts
        return {header: surface.name for surface in surfaces for header in surface.headers}

    def reaches(self, scope: str) -> bool:
        """Whether a C++ scope is, or has in it, something of a surface."""
        return scope in self._symbols.scopes or self._symbols.best(scope) is not None

    @functools.cached_property
    def _symbols(self) -> _Patterns:
        return _Patterns((p, s.name) for s in self.surfaces for p in s.symbols)

    @functools.cached_property
    def _macros(self) -> _Patterns:
        return _Patterns((p, s.name) for s in self.surfaces for p in s.macros)


class _Patterns:
    """Patterns of names by the scope they are in: thousands of names are looked up."""

    def __init__(self, patterns: Iterable[tuple[str, str]]) -> None:
        self.scopes: set[str] = set()  # that patterns are in
        self._exact: dict[str, str] = {}
        self._globs: dict[str, list[tuple[int, re.Pattern[str], str]]] = {}
        for pattern, surface in patterns:
            scope, last = _split(pattern)
            self.scopes.update(_outer(scope))
            if "*" in last:
                regex = re.compile(re.escape(last).replace(r"\*", ".*"))
                exactness = len(pattern.replace("*", ""))
                self._globs.setdefault(scope, []).append((exactness, regex, surface))
            else:
                self._exact.setdefault(pattern, surface)

    def best(self, name: str) -> str | None:
        """The surface of the most exact pattern for a name or for what it is a member of."""
        hits = [hit for part in _outer(name) for hit in self._hits(part)]
        return max(hits)[1] if hits else None

    def _hits(self, name: str) -> Iterator[tuple[int, str]]:
        if name in self._exact:
            yield len(name), self._exact[name]
        scope, last = _split(name)
        for exactness, regex, surface in self._globs.get(scope, ()):
            if regex.fullmatch(last):
                yield exactness, surface


def _split(name: str) -> tuple[str, str]:
    scope, _, last = name.rpartition("::")
    return scope, last


def _outer(name: str) -> Iterator[str]:
    """A name and every scope around it."""
    while name:
        yield name
        name, _ = _split(name)


def former(header: str) -> str:
    """Where PyTorch had what is in torch/headeronly now."""
    for new, old in _FORMER:
        if header.startswith(new):
            return old + header.removeprefix(new)
    return header


def load(path: Path = RULES, known: usage.Usage | None = None) -> Catalogue:
    """Read the rules, and what the surfaces collect of what is `known` to be used (default: all
    that is, if these are the rules of this repository); CiError names the entry that is wrong."""
    return _of_repository() if path == RULES and known is None else _read(path, known)


@functools.cache
def _of_repository() -> Catalogue:
    return _read(RULES, usage.collected())


def _read(path: Path, known: usage.Usage | None) -> Catalogue:
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CiError(f"{path}: {error}") from error
    if not isinstance(entries, dict) or not all(isinstance(name, str) for name in entries):
        raise CiError(f"{path} must have the names of surfaces, and under each what belongs to it")
    surfaces = tuple(_surface(path, name, entry) for name, entry in entries.items())
    return Catalogue(_collected(surfaces, known or usage.NOTHING))


def _collected(surfaces: tuple[Surface, ...], known: usage.Usage) -> tuple[Surface, ...]:
    """The surfaces with what they collect; a header that a build writes tells nothing new."""
    headers = {header for surface in surfaces for header in surface.headers}
    python = {entry for surface in surfaces for entry in surface.python}
    more: dict[str, tuple[list[str], list[str]]] = {s.name: ([], []) for s in surfaces}
    for header in sorted(known.headers.keys() - headers):
        surface = _collecting(surfaces, header)
        if surface and not layout.is_generated(INCLUDE + header):
            more[surface][0].append(header)
    named = {entry.partition(":")[0] for entry in known.python if ":" in entry}
    for entry in sorted(known.python.keys() - python):
        surface = _collecting(surfaces, entry.replace(":", "."))
        # A module as a whole is what is known for want of names.
        if surface and entry.partition(":")[0] not in python and entry not in named:
            more[surface][1].append(entry)
    return tuple(
        replace(
            s,
            headers=(*s.headers, *more[s.name][0]),
            python=(*s.python, *more[s.name][1]),
            collected=tuple(more[s.name][0]),
        )
        for s in surfaces
    )


def _collecting(surfaces: Iterable[Surface], name: str) -> str:
    """The surface with the longest pattern for a header or a dotted name; "" for none."""
    hits = (
        (len(pattern), surface.name)
        for surface in surfaces
        for pattern in surface.collects
        if fnmatch.fnmatchcase(name, pattern)
    )
    return max(hits, default=(0, ""))[1]


def _surface(path: Path, name: str, entry: object) -> Surface:
    fields = set(Surface.__dataclass_fields__) - {"name", "title", "collected"}
    if not isinstance(entry, dict) or not isinstance(entry.get("title"), str):
        raise CiError(f"{path}: surface {name} needs a title")
    if unknown := set(entry) - fields - {"title"}:
        raise CiError(f"{path}: surface {name} has unknown keys: {', '.join(sorted(unknown))}")
    lists = {field: entry.get(field, []) for field in fields}
    if wrong := [field for field, texts in lists.items() if not _is_list_of_text(texts)]:
        raise CiError(f"{path}: surface {name}: {', '.join(sorted(wrong))} must be lists of text")
    return Surface(name, entry["title"], **{field: tuple(texts) for field, texts in lists.items()})


def _is_list_of_text(texts: object) -> bool:
    return isinstance(texts, list) and all(isinstance(text, str) for text in texts)
