# SPDX-License-Identifier: BSD-3-Clause
"""Things that live in one namespace and are known under the name of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.cpp import libclang
from torch_backend_ci.surface.extract.cpp.canonical import NEW_HOME
from torch_backend_ci.surface.extract.cpp.libclang import Cursor, Kind

_REFERENCES = {Kind.TYPE_REF, Kind.TEMPLATE_REF, Kind.DECL_REF_EXPR, Kind.OVERLOADED_DECL_REF}


def moved_names(top: Sequence[Cursor], catalogue: Catalogue) -> dict[str, str]:
    """Own name -> the name it is known under, from using-declarations in other namespaces.

    A name that the catalogue has stays. One of the new home, or one whose other name the
    catalogue has, goes by that: PyTorch moves a declaration and leaves `using` behind. Names in
    further namespaces do not count: which ones there are depends on the headers that are read.
    """
    moved: dict[str, str] = {}
    for own, exposed in sorted(set(_using(top, ""))):
        if own == exposed or catalogue.surface_of_symbol(own):
            continue
        old_home = exposed.startswith(("c10::", "at::", "caffe2::"))
        moved_here = own.startswith(NEW_HOME + "::") and old_home
        if moved_here or catalogue.surface_of_symbol(exposed):
            known = moved.get(own)
            moved[own] = min(filter(None, (known, exposed)), key=lambda n: _rank(n, catalogue))
    return moved


def home_of(name: str) -> str:
    """The name of a thing of torch::headeronly where no using-declaration gives another."""
    return name.replace(f"{NEW_HOME}::", "c10::", 1) if name.startswith(f"{NEW_HOME}::") else name


def _rank(name: str, catalogue: Catalogue) -> tuple[bool, bool, str]:
    return (catalogue.surface_of_symbol(name) is None, not name.startswith("c10::"), name)


def _using(cursors: Sequence[Cursor], scope: str) -> Iterator[tuple[str, str]]:
    for cursor in cursors:
        if cursor.kind == Kind.USING_DECLARATION:
            own = _referenced(cursor)
            if own:
                yield own, f"{scope}::{cursor.spelling}" if scope else cursor.spelling
        elif cursor.kind == Kind.NAMESPACE and scope.count("::") < 3:
            inner = f"{scope}::{cursor.spelling}" if scope else cursor.spelling
            yield from _using(list(cursor.get_children()), inner)


def _referenced(using: Cursor) -> str | None:
    """The qualified name of what a using-declaration names."""
    for child in using.get_children():
        if child.kind not in _REFERENCES:
            continue
        overloaded = child.kind == Kind.OVERLOADED_DECL_REF
        target = next(iter(libclang.overloads(child)), None) if overloaded else child.referenced
        if target is not None:
            return _qualified(target)
    return None


def _qualified(cursor: Cursor) -> str:
    names: list[str] = []
    while cursor is not None and cursor.kind != Kind.TRANSLATION_UNIT:
        if cursor.spelling and not (
            cursor.kind == Kind.NAMESPACE and libclang.is_inline_namespace(cursor)
        ):
            names.insert(0, cursor.spelling)
        cursor = cursor.semantic_parent
    return "::".join(names)
