# SPDX-License-Identifier: BSD-3-Clause
"""Which declarations of a torch the probe overrides, derives from, expands, calls or names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torch_backend_ci.surface.extract.cpp import libclang
from torch_backend_ci.surface.extract.cpp.libclang import Cursor, Kind
from torch_backend_ci.surface.extract.cpp.sources import Sources
from torch_backend_ci.surface.probe.result import Covered, Place, Use

_REFERENCES = {
    Kind.TYPE_REF,
    Kind.TEMPLATE_REF,
    Kind.MEMBER_REF,
    Kind.MEMBER_REF_EXPR,
    Kind.DECL_REF_EXPR,
    Kind.CALL_EXPR,
}
_METHODS = {Kind.CXX_METHOD, Kind.DESTRUCTOR, Kind.CONVERSION_FUNCTION}


class Lines(NamedTuple):
    """The lines of a statement or declaration."""

    first: int
    last: int


class Finder:
    """Goes through the cursors of the probe's own files."""

    def __init__(self, folder: Path, sources: Sources, moved: dict[str, str]) -> None:
        self._folder = str(folder) + "/"
        self._sources = sources
        self._moved = moved

    def uses(self, top: list[Cursor]) -> Iterator[Covered]:
        """Every use in the outermost cursors."""
        for cursor in top:
            yield from self._within(cursor, _lines(cursor))

    def place(self, cursor: Cursor) -> Place | None:
        """Where in the probe the cursor stands; None if elsewhere."""
        file = cursor.location.file
        if file is None or not file.name.startswith(self._folder):
            return None
        return Place(file.name.removeprefix(self._folder), cursor.location.line)

    def name(self, cursor: Cursor) -> str:
        """The qualified name as snapshots have it."""
        name = _qualified(_template_of(cursor))
        parts = name.split("::")
        for end in range(len(parts), 0, -1):
            if known := self._moved.get("::".join(parts[:end])):
                return "::".join([known, *parts[end:]])
        return name

    def _within(self, cursor: Cursor, lines: Lines, owner: str = "") -> Iterator[Covered]:
        kind = cursor.kind
        if kind in _METHODS:
            for method in _overridden(cursor):
                yield from self._use(cursor, method, Use.OVERRIDES, _lines(cursor))
        elif kind == Kind.CXX_BASE_SPECIFIER:
            base = cursor.type.get_declaration()
            for use in self._use(cursor, base, Use.DERIVES, lines):
                yield dataclasses.replace(use, by=owner)
        elif kind in _REFERENCES and cursor.referenced is not None:
            yield from self._use(cursor, cursor.referenced, Use.NAMES, lines)
        inner = kind in (Kind.COMPOUND_STMT, Kind.NAMESPACE) or kind.is_declaration()
        for child in cursor.get_children():
            yield from self._within(child, _lines(child) if inner else lines, cursor.spelling)

    def _use(self, at: Cursor, declared: Cursor, use: Use, lines: Lines) -> Iterator[Covered]:
        begin = self.place(at)
        original = _template_of(declared)
        file = original.location.file
        home = self._sources.name(file.name) if file else None
        if begin is None or home is None or original.kind == Kind.NAMESPACE:
            return
        where = Place(home, original.location.line)
        yield Covered(self.name(original), use, where, begin, lines.first, lines.last)


def _lines(cursor: Cursor) -> Lines:
    extent = cursor.extent
    return Lines(extent.start.line, extent.end.line)


def _overridden(method: Cursor) -> Iterator[Cursor]:
    """The virtuals of all bases that a method overrides, nearest first."""
    for base in libclang.overridden(method):
        yield base
        yield from _overridden(base)


def _template_of(cursor: Cursor) -> Cursor:
    """What an instantiation was made from; the cursor itself if it is none."""
    original = libclang.cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor)
    return original if original is not None else cursor


def _qualified(cursor: Cursor) -> str:
    names: list[str] = []
    while cursor is not None and cursor.kind != Kind.TRANSLATION_UNIT:
        inline = cursor.kind == Kind.NAMESPACE and libclang.is_inline_namespace(cursor)
        unscoped = cursor.kind == Kind.LINKAGE_SPEC
        name = cursor.spelling
        if cursor.kind in (Kind.CONSTRUCTOR, Kind.DESTRUCTOR):
            name = name.partition("<")[0]  # as in the source, without the template's parameters
        if name and not inline and not unscoped and not name.startswith("("):
            names.insert(0, name)
        cursor = cursor.semantic_parent
    return "::".join(names)
