# SPDX-License-Identifier: BSD-3-Clause
"""Which declaration of one snapshot became which of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import product
from typing import NamedTuple

from torch_backend_ci.surface.model import Declaration

# Of 1: from here on a name looks like another. `parseEnvVarInt` and `getCvarInt` do, if they take
# the same; that two members are an int says little, so their names must say more.
SIMILAR = 0.55
VERY_SIMILAR = 0.75

# Facts that may differ between a declaration and what it was renamed to.
BESIDE_THE_POINT = {"deprecated", "requires"}


class Pair(NamedTuple):
    """What a declaration was and what it is now; one of them may be missing."""

    was: Declaration | None
    now: Declaration | None


def pair_overloads(
    was: Sequence[Declaration],
    now: Sequence[Declaration],
    likeness: Callable[[Declaration, Declaration], float],
) -> list[Pair]:
    """Pair the declarations of one name: equal ones first, then the most alike, then leftovers."""
    left, right = list(was), list(now)
    pairs = []
    for declaration in was:
        same = next(
            (d for d in right if d.kind == declaration.kind and equal(d, declaration)), None
        )
        if same:
            left.remove(declaration)
            right.remove(same)
            pairs.append(Pair(declaration, same))
    pairs += [Pair(*pair) for pair in _greedy(left, right, likeness, above=0)]
    return pairs + [Pair(d, None) for d in left] + [Pair(None, d) for d in right]


def pair_renames(
    removed: Iterable[Declaration],
    added: Iterable[Declaration],
    same: Callable[[Declaration, Declaration], bool],
) -> list[tuple[Declaration, Declaration]]:
    """Pair what went with what came under a similar name in the same scope, being the `same`."""

    def likeness(was: Declaration, now: Declaration) -> float:
        if was.kind != now.kind or scope(was.name) != scope(now.name) or not same(was, now):
            return 0
        alike = similarity(simple(was.name), simple(now.name))
        return alike if _tells(was) or alike > VERY_SIMILAR else 0

    return _greedy(list(removed), list(added), likeness, above=SIMILAR)


def equal(was: Declaration, now: Declaration) -> bool:
    """Whether the facts are the same."""
    return was.facts == now.facts


def same_but_for_name(was: Declaration, now: Declaration) -> bool:
    """Whether the facts that matter to a rename are the same."""
    return _telling(was) == _telling(now)


def scope(name: str) -> str:
    """The class, namespace or module that a qualified name stands in."""
    return name.rpartition(_separator(name))[0]


def simple(name: str) -> str:
    """The last part of a qualified name."""
    return name.rpartition(_separator(name))[2]


def _separator(name: str) -> str:
    return "::" if "::" in name else "."


def _tells(declaration: Declaration) -> bool:
    """Whether two of the same facts are hardly so by chance."""
    return bool(declaration.facts.get("parameters") or declaration.kind in {"class", "enum"})


def _telling(declaration: Declaration) -> dict[str, object]:
    return {k: v for k, v in declaration.facts.items() if k not in BESIDE_THE_POINT}


def similarity(was: str, now: str) -> float:
    """From 0 to 1, and the same both ways round, which SequenceMatcher by itself is not."""
    a, b = was.lower(), now.lower()
    return max(SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in ((a, b), (b, a)))


def _greedy(
    left: list[Declaration],
    right: list[Declaration],
    likeness: Callable[[Declaration, Declaration], float],
    above: float,
) -> list[tuple[Declaration, Declaration]]:
    """Take the pair most alike, again and again; both lists lose what was taken."""
    scored = [
        (score, i, j)
        for (i, was), (j, now) in product(enumerate(left), enumerate(right))
        if (score := likeness(was, now)) > above
    ]
    taken: list[tuple[int, int]] = []
    for _, i, j in sorted(scored, key=lambda entry: (-entry[0], entry[1], entry[2])):
        if all(i != a and j != b for a, b in taken):
            taken.append((i, j))
    pairs = [(left[i], right[j]) for i, j in sorted(taken)]
    for was, now in pairs:
        left.remove(was)
        right.remove(now)
    return pairs
