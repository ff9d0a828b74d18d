# SPDX-License-Identifier: BSD-3-Clause
"""What the compiler says about the probe, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_backend_ci.surface.extract.cpp.libclang import cindex
from torch_backend_ci.surface.extract.cpp.sources import Sources
from torch_backend_ci.surface.probe.result import Place, ProbeError
from torch_backend_ci.surface.probe.uses import Finder

_PURE = "unimplemented pure virtual method"
_ABSTRACT = re.compile(r"type '([^']+)' is an abstract class|abstract class type '([^']+)'")


def read(unit: cindex.TranslationUnit, finder: Finder, sources: Sources) -> Iterator[ProbeError]:
    """Every error, at the line of the probe that is behind it."""
    lacking: dict[str, tuple[str, ...]] = {}  # abstract class -> what it does not implement
    for diagnostic in unit.diagnostics:
        if diagnostic.severity < cindex.Diagnostic.Error:
            continue
        notes = list(diagnostic.children)
        unimplemented = tuple(
            finder.name(cindex.Cursor.from_location(unit, note.location))
            for note in notes
            if note.spelling.startswith(_PURE)
        )
        if match := _ABSTRACT.search(diagnostic.spelling):  # the compiler says why only once
            unimplemented = lacking.setdefault(match[1] or match[2], unimplemented)
        yield ProbeError(
            place=_place([diagnostic, *notes], finder, sources),
            text=diagnostic.spelling,
            notes=tuple(note.spelling for note in notes),
            unimplemented=unimplemented,
            fatal=diagnostic.severity >= cindex.Diagnostic.Fatal,
        )


def _place(said: list[cindex.Diagnostic], finder: Finder, sources: Sources) -> Place:
    """The first that is in the probe; an instantiation or expansion ends in some header."""
    for diagnostic in said:
        if "in file included from" in diagnostic.spelling:
            continue
        if place := finder.place(diagnostic):
            return place
    location = said[0].location
    path = location.file.name if location.file else "command line"
    return Place(sources.name(path) or path, location.line)
