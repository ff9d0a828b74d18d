# SPDX-License-Identifier: BSD-3-Clause
"""Go through a translation unit and keep what the catalogue asks for."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.cpp import libclang, macros
from torch_backend_ci.surface.extract.cpp.canonical import Types
from torch_backend_ci.surface.extract.cpp.conditionals import enclosing
from torch_backend_ci.surface.extract.cpp.facts import (
    ALIASES,
    FUNCTIONS,
    RECORDS,
    Facts,
    Reader,
    template_parameters,
)
from torch_backend_ci.surface.extract.cpp.libclang import Cursor, Kind
from torch_backend_ci.surface.extract.cpp.moved import home_of, moved_names
from torch_backend_ci.surface.extract.cpp.parse import Unit
from torch_backend_ci.surface.extract.cpp.sources import Sources
from torch_backend_ci.surface.model import Declaration, Domain

_LONGEST_MACRO = 300  # of what is shown of one
_ARGUMENTS = re.compile(r"<[^<>]*>")  # the innermost ones


@dataclass(frozen=True)
class Found:
    """A declaration as one profile sees it."""

    kind: str
    name: str
    surface: str
    text: str
    file: str
    line: int
    facts: Facts
    conditions: tuple[str, ...] = ()  # of the preprocessor regions it stands in

    @property
    def identity(self) -> str:
        """The same for the same declaration of another profile."""
        return json.dumps([self.kind, self.name, self.facts], sort_keys=True)

    def declaration(self, requires: list[str]) -> Declaration:
        facts = {**self.facts, "requires": requires} if requires else self.facts
        return Declaration(
            Domain.CPP, self.kind, self.name, self.surface, self.text, self.file, self.line, facts
        )


def walk(unit: Unit, catalogue: Catalogue, files: Collection[str] | None = None) -> list[Found]:
    """Everything of the catalogue that the unit declares, redeclarations merged; if they are given,
    only what stands in some files of the tree."""
    walker = _Walker(unit, catalogue)
    walker.run(files)
    return walker.found()


class _Walker:
    def __init__(self, unit: Unit, catalogue: Catalogue) -> None:
        self._unit = unit
        self._catalogue = catalogue
        self._sources: Sources = unit.sources
        self._top = _own(unit)
        self._moved = moved_names(self._top, catalogue)
        self._reader = Reader(Types(self._moved), unit.sources)
        self._found: dict[Any, Found] = {}
        self._lines: dict[str, list[str]] = {}
        self._texts: dict[str, str] = {}
        self._surfaces: dict[str, str] = {}  # of files
        self._surface = ""  # of all that the file of the cursor declares
        self._visited: set[Any] = set()  # classes
        self._of_class: dict[str, str] = {}  # their surfaces
        self._bases: list[tuple[Cursor, str]] = []  # of what was found, each with who derives

    def run(self, files: Collection[str] | None) -> None:
        for cursor in self._top:
            if files is not None and self._sources.name(cursor.location.file.name) not in files:
                continue
            self._surface = self._surface_of_file(cursor)
            if cursor.kind == Kind.MACRO_DEFINITION:
                self._macro(cursor)
            else:
                self._visit(cursor, "")
        while self._bases:
            self._base(*self._bases.pop())

    def _base(self, specifier: Cursor, derived: str) -> None:
        """A base class belongs to the surface of the class, wherever it is declared: a member that
        moves into one is still there."""
        cursor = specifier.type.get_declaration().get_definition()
        surface = self._catalogue.surface_of_symbol(_plain(derived)) or self._of_class.get(derived)
        known = cursor is None or libclang.key(cursor) in self._visited
        # What a template is instantiated for depends on who derives.
        known = known or cursor.get_num_template_arguments() > 0
        if known or not surface or not _is_own(cursor, self._sources):
            return
        self._surface = surface
        self._record(cursor, _outer_scope(cursor))

    def _surface_of_file(self, cursor: Cursor) -> str:
        path = cursor.location.file.name
        if path not in self._surfaces:
            name = self._sources.name(path)
            self._surfaces[path] = self._catalogue.surface_of_file(name) if name else ""
        return self._surfaces[path]

    def found(self) -> list[Found]:
        return list(self._found.values())

    def _scope(self, cursors: Sequence[Cursor], scope: str) -> None:
        for cursor in cursors:
            self._visit(cursor, scope)

    def _visit(self, cursor: Cursor, scope: str) -> None:
        kind = cursor.kind
        if kind == Kind.NAMESPACE:
            self._namespace(cursor, scope)
        elif kind in (Kind.LINKAGE_SPEC, Kind.UNEXPOSED_DECL):
            self._scope(list(cursor.get_children()), scope)
        elif kind in RECORDS:
            self._record(cursor, scope)
        elif kind in FUNCTIONS:
            self._function(cursor, scope)
        elif kind == Kind.ENUM_DECL:
            self._enum(cursor, scope)
        elif kind in ALIASES:
            self._alias(cursor, scope)
        elif kind == Kind.VAR_DECL:
            self._variable(cursor, scope)
        elif kind == Kind.FIELD_DECL and not _private(cursor):
            self._emit("field", cursor, scope, lambda: self._reader.field(cursor))

    def _namespace(self, cursor: Cursor, scope: str) -> None:
        name = cursor.spelling
        transparent = not name or "(" in name or libclang.is_inline_namespace(cursor)
        inner = scope if transparent else _join(scope, name)
        listed = self._surface or self._catalogue.reaches(inner)
        if listed or any(n.startswith(inner + "::") for n in self._moved):
            self._scope(_list(cursor), inner)

    def _record(self, cursor: Cursor, scope: str) -> None:
        if not cursor.is_definition() or _private(cursor):
            return
        children = _list(cursor)
        self._visited.add(libclang.key(cursor))
        if libclang.is_anonymous_record(cursor) or not cursor.spelling or "(" in cursor.spelling:
            self._scope(children, scope)
            return
        name = self._name(cursor, _semantic_scope(cursor, scope))
        if not self._surface and not self._catalogue.reaches(_plain(name)):
            return
        with self._reader.types.within(template_parameters(children)):
            self._emit("class", cursor, scope, lambda: self._reader.record(cursor, children), name)
            self._scope(children, name)
        self._bases += ((base, name) for base in children if base.kind == Kind.CXX_BASE_SPECIFIER)

    def _function(self, cursor: Cursor, scope: str) -> None:
        member = cursor.semantic_parent.kind in RECORDS
        if member and cursor.semantic_parent != cursor.lexical_parent:
            return  # the definition of a member, outside of its class
        if _private(cursor) and not cursor.is_virtual_method():
            return
        kind, name = "method" if member else "function", self._name(cursor, scope)
        if member:
            plain = _plain(cursor.spelling)
            owner = _plain(scope).rpartition("::")[2]
            if plain in (owner, "~" + owner):
                kind = "destructor" if plain.startswith("~") else "constructor"
                name = _join(scope, plain)
        children = _list(cursor)
        with self._reader.types.within(template_parameters(children)):
            facts = partial(self._reader.function, cursor, children, kind)
            self._emit(kind, cursor, scope, facts, name)

    def _alias(self, cursor: Cursor, scope: str) -> None:
        if _private(cursor):
            return
        children = _list(cursor)
        with self._reader.types.within(template_parameters(children)):
            self._emit("alias", cursor, scope, lambda: self._reader.alias(cursor, children))

    def _enum(self, cursor: Cursor, scope: str) -> None:
        if not cursor.is_definition() or _private(cursor):
            return
        unnamed = not cursor.spelling or "(" in cursor.spelling
        name = scope if unnamed else self._name(cursor, _semantic_scope(cursor, scope))
        if not unnamed:
            self._emit("enum", cursor, scope, lambda: self._reader.enum(cursor), name)
        for child in cursor.get_children():
            if child.kind == Kind.ENUM_CONSTANT_DECL:
                self._emit("enumerator", child, name, partial(self._reader.enumerator, child))

    def _variable(self, cursor: Cursor, scope: str) -> None:
        member = cursor.semantic_parent.kind in RECORDS
        if _private(cursor) or (member and cursor.semantic_parent != cursor.lexical_parent):
            return
        kind = "field" if member else "variable"
        self._emit(kind, cursor, scope, lambda: self._reader.variable(cursor, member=member))

    def _macro(self, cursor: Cursor) -> None:
        surface = self._catalogue.surface_of_macro(cursor.spelling) or self._surface
        if not surface:
            return
        extent = cursor.extent
        path = extent.start.file.name
        text = self._sources.text(path, extent.start.offset, extent.end.offset)
        if text == cursor.spelling and not self._catalogue.surface_of_macro(text):
            return  # says that the header was included
        if re.search(rf"^\s*#\s*undef\s+{cursor.spelling}\b", self._text_of(path), re.MULTILINE):
            return  # for use within the header
        shown = " ".join(text.replace("\\\n", " ").split())
        shown = shown if len(shown) <= _LONGEST_MACRO else shown[: _LONGEST_MACRO - 4] + " ..."
        # A macro that is defined again is what the last definition says.
        self._found["macro", cursor.spelling] = self._at(
            "macro", cursor, cursor.spelling, surface, f"#define {shown}", macros.facts(text)
        )

    def _text_of(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = "\n".join(self._sources.lines(path))
        return self._texts[path]

    def _name(self, cursor: Cursor, scope: str) -> str:
        spelling = cursor.spelling
        if cursor.kind in RECORDS and cursor.get_num_template_arguments() > 0:
            spelling += self._reader.specialization(cursor)
        own = _join(scope, spelling)
        return self._moved.get(own) or home_of(own)

    def _emit(
        self,
        kind: str,
        cursor: Cursor,
        scope: str,
        facts: Callable[[], Facts],
        name: str | None = None,
    ) -> None:
        name = name or self._name(cursor, scope)
        surface = self._catalogue.surface_of_symbol(_plain(name)) or self._surface
        if not surface:
            return
        if kind == "class":
            self._of_class[name] = surface
        known = facts()
        key = (kind, name, _signature(known))
        new = self._at(kind, cursor, name, surface, self._reader.text(cursor), known)
        old = self._found.get(key)
        self._found[key] = _merged(old, new) if old else new

    def _at(
        self, kind: str, cursor: Cursor, name: str, surface: str, text: str, facts: Facts
    ) -> Found:
        location = cursor.location
        path = location.file.name
        if path not in self._lines:
            self._lines[path] = self._sources.lines(path)
        file = self._sources.name(path) or ""
        conditions = enclosing(self._lines[path], location.line)
        return Found(kind, name, surface, text, file, location.line, facts, conditions)


def _own(unit: Unit) -> list[Cursor]:
    """The outermost cursors that come from files of the torch tree."""
    skipped = {Kind.INCLUSION_DIRECTIVE, Kind.MACRO_INSTANTIATION}
    return [c for c in _outermost(unit, skipped) if _is_own(c, unit.sources)]


def _outermost(unit: Unit, skipped: set[Any]) -> Iterator[Cursor]:
    return (c for c in unit.clang.cursor.get_children() if c.kind not in skipped)


def _is_own(cursor: Cursor, sources: Sources) -> bool:
    file = cursor.location.file
    return file is not None and sources.name(file.name) is not None


def _list(cursor: Cursor) -> list[Cursor]:
    return list(cursor.get_children())


def _private(cursor: Cursor) -> bool:
    return cursor.access_specifier.name == "PRIVATE"


def _join(scope: str, name: str) -> str:
    return f"{scope}::{name}" if scope else name


def _semantic_scope(cursor: Cursor, scope: str) -> str:
    """The scope that a cursor belongs to: `struct Outer::Inner {` stands outside of it."""
    parent = cursor.semantic_parent
    if parent is None or parent == cursor.lexical_parent:
        return scope
    return _outer_scope(cursor)


def _outer_scope(cursor: Cursor) -> str:
    """The qualified name of what a cursor stands in."""
    parent = cursor.semantic_parent
    names: list[str] = []
    while parent is not None and parent.kind != Kind.TRANSLATION_UNIT:
        if parent.spelling and not libclang.is_inline_namespace(parent):
            names.insert(0, parent.spelling)
        parent = parent.semantic_parent
    return "::".join(names)


def _plain(name: str) -> str:
    """A qualified name without template arguments; `operator<` keeps its own brackets."""
    scope, operator, last = name.partition("operator")
    while _ARGUMENTS.search(scope):
        scope = _ARGUMENTS.sub("", scope)
    return scope + operator + last


def _signature(facts: Facts) -> str:
    """What tells overloads apart."""
    types = [parameter["type"] for parameter in facts.get("parameters", ())]
    rest = [facts.get(name) for name in ("template", "const", "ref")]
    return json.dumps([types, rest, facts.get("returns") if facts.get("template") else None])


def _merged(old: Found, new: Found) -> Found:
    """A redeclaration: defaults and attributes add up."""
    facts = {**new.facts, **old.facts}
    if "parameters" in facts:
        facts["parameters"] = [
            {**b, **a}
            for a, b in zip(old.facts["parameters"], new.facts["parameters"], strict=True)
        ]
    return dataclasses.replace(old, facts=facts)
