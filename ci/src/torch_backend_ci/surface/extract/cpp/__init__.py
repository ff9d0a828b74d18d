# SPDX-License-Identifier: BSD-3-Clause
"""The C++ half of the surface: declarations and macros, by libclang.

One translation unit includes every header of the catalogue (parse.py) with the flags of
compiler.py; walk.py goes through its cursors, facts.py says what each declares, canonical.py how
types are written. A second preprocessor profile adds what only it can see, marked `requires`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.cpp import parse, walk
from torch_backend_ci.surface.extract.cpp.compiler import PROFILES, Profile
from torch_backend_ci.surface.extract.cpp.conditionals import names_any, required_macros
from torch_backend_ci.surface.extract.cpp.parse import Unit
from torch_backend_ci.surface.extract.cpp.sources import INCLUDE
from torch_backend_ci.surface.extract.cpp.walk import Found
from torch_backend_ci.surface.model import Declaration
from torch_backend_ci.torch_tree import TorchTree

__all__ = ["PROFILES", "Profile", "extract", "extract_part"]


def extract(
    tree: TorchTree,
    catalogue: Catalogue,
    *,
    headers: Sequence[str] | None = None,
    profiles: Sequence[Profile] = PROFILES,
    overlay: Mapping[str, str] | None = None,
) -> list[Declaration]:
    """Every C++ declaration of the catalogue.

    `headers` reads only some of the catalogue's headers, which takes a fraction of the time;
    `overlay` replaces files of the tree in memory: file relative to the tree -> its text.
    """
    first, *others = profiles
    unit = parse.parse(tree, headers or catalogue.headers, first, overlay or {})
    founds = walk.walk(unit, catalogue)
    declarations = [found.declaration([]) for found in founds]
    known = {found.identity for found in founds}
    for profile in others:
        concerned = _concerned(unit, founds, profile)
        if not concerned:
            continue
        again = parse.parse(tree, concerned, profile, overlay or {})
        new = [f for f in walk.walk(again, catalogue) if f.identity not in known]
        known.update(found.identity for found in new)
        declarations += [f.declaration(required_macros(f.conditions, profile.defines)) for f in new]
    return declarations


def extract_part(
    tree: TorchTree,
    catalogue: Catalogue,
    headers: Sequence[str],
    files: Collection[str],
    overlay: Mapping[str, str] | None = None,
) -> list[Declaration]:
    """What some files declare, read by the plain profile off the few headers that include them;
    CiError if not all of them are read."""
    unit = parse.parse(tree, headers, PROFILES[0], overlay or {})
    read = {unit.sources.name(inclusion.include.name) for inclusion in unit.clang.get_includes()}
    if missing := sorted(set(files) - read):
        raise CiError(f"{missing[0]} is not included by {', '.join(headers)}")
    founds = walk.walk(unit, catalogue, files)  # with bases of their classes, wherever these are
    return [found.declaration([]) for found in founds if found.file in files]


def _concerned(unit: Unit, founds: Sequence[Found], profile: Profile) -> Sequence[str]:
    """The headers that a profile may read differently: those that ask for its macros.

    Those that the unit does not include itself come last, and are includable by their names too.
    """
    listed = {f"{INCLUDE}/{header}": header for header in unit.headers}
    files = dict.fromkeys((*listed, *sorted({f.file for f in founds})))
    return [file.removeprefix(f"{INCLUDE}/") for file in files if _asks(unit, file, profile)]


def _asks(unit: Unit, file: str, profile: Profile) -> bool:
    return names_any(unit.sources.lines(unit.sources.path_in(unit.tree, file)), profile.defines)
