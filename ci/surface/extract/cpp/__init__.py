# SPDX-License-Identifier: BSD-3-Clause
"""The C++ half of the surface: declarations and macros, by libclang.

One translation unit includes every header of the catalogue (parse.py) with the flags of
compiler.py; walk.py goes through its cursors, facts.py says what each declares, canonical.py how
types are written. A second preprocessor profile adds what only it can see, marked `requires`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ci.surface.catalogue import Catalogue
from ci.surface.extract.cpp import parse, walk
from ci.surface.extract.cpp.compiler import PROFILES, Profile
from ci.surface.extract.cpp.conditionals import required_macros
from ci.surface.extract.cpp.walk import Found
from ci.surface.model import Declaration
from ci.torch_tree import TorchTree

__all__ = ["PROFILES", "Found", "Profile", "extract", "find", "merge"]


def extract(
    tree: TorchTree,
    catalogue: Catalogue,
    *,
    headers: Sequence[str] | None = None,
    profiles: Sequence[Profile] = PROFILES,
    overlay: Mapping[str, str] | None = None,
) -> list[Declaration]:
    """Every C++ declaration of the catalogue, profile after profile in this process.

    `headers` reads only some of the catalogue's headers, which takes a fraction of the time;
    `overlay` replaces files of the tree in memory: file relative to the tree -> its text.
    """
    return merge(
        (profile, find(tree, catalogue, profile, headers=headers, overlay=overlay))
        for profile in profiles
    )


def find(
    tree: TorchTree,
    catalogue: Catalogue,
    profile: Profile,
    *,
    headers: Sequence[str] | None = None,
    overlay: Mapping[str, str] | None = None,
) -> list[Found]:
    """What one profile sees."""
    unit = parse.parse(tree, headers or catalogue.headers, profile, overlay or {})
    return walk.walk(unit, catalogue)


def merge(seen: Iterable[tuple[Profile, list[Found]]]) -> list[Declaration]:
    """The declarations of all profiles; what the first does not see says what it requires."""
    known: set[str] = set()
    declarations: list[Declaration] = []
    for profile, founds in seen:
        new = [found for found in founds if found.identity not in known]
        known.update(found.identity for found in new)
        declarations += [
            found.declaration(required_macros(found.conditions, profile.defines)) for found in new
        ]
    return declarations
