# SPDX-License-Identifier: BSD-3-Clause
"""Which mutants: a random sample of all there are, the same for the same seed and sources."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import yaml
from mutants.grammar import Source
from mutants.rules import Mutant, mutants
from mutants.weave import apart

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {".cpp", ".h", ".py"}
#: In the place of a chapter: the suite of drivers, which owns all that it is asked about.
DRIVERS = "drivers"
#: The group whose mutants random calls may show: those of the other change more than results.
CALLED = "operators"
#: What compiles modules, and does not where one is in the cache.
COMPILERS = frozenset(
    f"csrc/drivers/sim/{name}.cpp" for name in ("compiler", "precompiled_dialect", "program")
)
_HERE = Path(__file__).parent
OWNERS: dict[str, list[str]] = yaml.load((_HERE / "owners.yaml").read_text(), yaml.CSafeLoader)
SCOPE: dict[str, list[str]] = yaml.load((_HERE / "scope.yaml").read_text(), yaml.CSafeLoader)


def group_of(file: str) -> str:
    """The group of scope.yaml that a file belongs to."""
    return next(group for group in SCOPE if file in names(group))


def compiles(file: str) -> bool:
    """Whether a file compiles what the backend generates: of that, nothing may be in a cache."""
    return file in COMPILERS


def chapter_of(check: str) -> str:
    """The chapter of a check, by its id."""
    return check.partition("/")[0]


def owners_of(file: str) -> list[str]:
    """The chapters of the suite that should notice a change of a file."""
    return next((owners for pattern, owners in OWNERS.items() if fnmatch(file, pattern)), [])


def folder_of(file: str) -> str:
    """What a score is given for besides the groups: the first three folders at most."""
    return "/".join(Path(file).parent.parts[:3])


def endless(group: str, seed: int) -> Iterator[Mutant]:
    """Every mutant of a group in random order, those that overlap an earlier one left out.

    A line is drawn first and then one of its mutants, so that a line on which many rules find
    something is not drawn more often than others.
    """
    lines: defaultdict[str, list[Mutant]] = defaultdict(list)
    for name in sorted(names(group)):
        for mutant in mutants(Source(name, (ROOT / name).read_bytes())):
            lines[mutant.place].append(mutant)
    draw = random.Random(f"{seed} {group}")
    places = sorted(lines)
    draw.shuffle(places)
    yield from apart(draw.choice(lines[place]) for place in places)


def names(group: str) -> set[str]:
    """The files of a group, from the root of the checkout. "!" takes some away."""
    found = {file for pattern in SCOPE[group] for file in ROOT.glob(pattern)}
    found -= {file for each in SCOPE[group] if each[0] == "!" for file in ROOT.glob(each[1:])}
    return {str(file.relative_to(ROOT)) for file in found if file.suffix in SUFFIXES}
