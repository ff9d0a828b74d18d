# SPDX-License-Identifier: BSD-3-Clause
"""What a file names that neither it nor anything it includes declares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from torch_backend_ci.surface.extract.cpp.facts import TEMPLATE_PARAMETERS
from torch_backend_ci.surface.extract.cpp.includes import Includes
from torch_backend_ci.surface.extract.cpp.libclang import (
    Cursor,
    Kind,
    TranslationUnit,
    key,
    overloads,
    visit,
)
from torch_backend_ci.surface.extract.cpp.sources import Sources

_REFERENCES = {
    Kind.TYPE_REF,
    Kind.TEMPLATE_REF,
    Kind.DECL_REF_EXPR,
    Kind.MEMBER_REF_EXPR,
    Kind.OVERLOADED_DECL_REF,
    Kind.MACRO_INSTANTIATION,
}
_ALIASES = {Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL}
_DECLARATIONS = {
    *_ALIASES,
    Kind.CLASS_DECL,
    Kind.STRUCT_DECL,
    Kind.UNION_DECL,
    Kind.CLASS_TEMPLATE,
    Kind.ENUM_DECL,
    Kind.FUNCTION_DECL,
    Kind.FUNCTION_TEMPLATE,
    Kind.VAR_DECL,
}
_NOT_IN_C = {Kind.NAMESPACE, Kind.MACRO_DEFINITION, Kind.MACRO_INSTANTIATION}
_LOCAL = {Kind.PARM_DECL, *TEMPLATE_PARAMETERS}
_DECLARATION_IDS = {kind.value for kind in _DECLARATIONS}
_REFERENCE_IDS = {kind.value for kind in _REFERENCES}


@dataclass(frozen=True)
class Need:
    """A name that a file uses and does not bring along."""

    file: str
    line: int
    name: str
    declared: str  # the file that has it
    anywhere: int  # the files, any of which would do


def needs(unit: TranslationUnit, includes: Includes, sources: Sources) -> list[Need]:
    """Every need of the files of the torch tree, once per file and name."""
    own: list[Cursor] = []
    others: list[Cursor] = []  # in C only: what C++ libraries declare stands in namespaces
    for cursor in unit.cursor.get_children():
        if cursor.kind == Kind.INCLUSION_DIRECTIVE or cursor.location.file is None:
            continue
        if sources.name(cursor.location.file.name) is not None:
            own.append(cursor)
        elif cursor.kind not in _NOT_IN_C:
            others.append(cursor)
    return list(_Reader(unit, includes, [*own, *others]).needs(own))


class _Reader:
    def __init__(self, unit: TranslationUnit, includes: Includes, every: list[Cursor]) -> None:
        self._unit = unit
        self._includes = includes
        self._declared = self._declarations(every)
        self._places: dict[Hashable, int] = {}  # target -> the files that declare it

    def _declarations(self, every: Iterable[Cursor]) -> dict[Hashable, int]:
        """Canonical cursor -> the files that declare it: a forward declaration is enough."""
        declared: defaultdict[Hashable, int] = defaultdict(int)
        for cursor in every:
            bit = self._includes.bit(cursor.location.file.name)
            for inner in visit(self._unit, cursor, _DECLARATION_IDS):
                declared[_identity(inner)] |= bit
        return declared

    def needs(self, own: Iterable[Cursor]) -> Iterator[Need]:
        seen: set[tuple[str, Hashable]] = set()
        for cursor in own:
            file = cursor.location.file.name
            closure = self._includes.closure(file)
            for inner in visit(self._unit, cursor, _REFERENCE_IDS):
                targets = _targets(inner)
                if not targets or (file, key(targets[0])) in seen:
                    continue
                seen.add((file, key(targets[0])))
                name = targets[0].spelling
                # Which of the operators is meant depends on the arguments, often on a template's.
                if name.startswith(("operator", "__builtin_")):
                    continue
                anywhere = self._anywhere(targets)
                if anywhere and not anywhere & closure:
                    declared = targets[0].location.file
                    where = declared.name if declared else ""
                    yield Need(file, inner.location.line, name, where, anywhere)

    def _anywhere(self, targets: Iterable[Cursor]) -> int:
        """The files that declare one of the targets; none for what needs no declaration."""
        files = 0
        for target in targets:
            place = key(target)
            if place not in self._places:
                self._places[place] = self._declarers(target)
            files |= self._places[place]
        return files

    def _declarers(self, target: Cursor) -> int:
        files = self._declared.get(_identity(target), 0)
        declarations = (target, target.canonical, target.get_definition())
        for known in {key(known): known for known in declarations if known is not None}.values():
            file = known.location.file
            if file is not None:
                files |= self._includes.bit(file.name)
        return files


def _identity(cursor: Cursor) -> Hashable:
    """The same for all declarations of a thing, and for aliases of one name that mean the same."""
    if cursor.kind in _ALIASES:
        return cursor.spelling, cursor.underlying_typedef_type.get_canonical().spelling
    return key(cursor.canonical)


def _targets(reference: Cursor) -> list[Cursor]:
    if reference.kind == Kind.OVERLOADED_DECL_REF:
        return overloads(reference)
    target = reference.referenced
    return [] if target is None or target.kind in _LOCAL else [target]
