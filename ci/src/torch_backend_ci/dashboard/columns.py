# SPDX-License-Identifier: BSD-3-Clause
"""How every check comes out in every column, and which of them come out alike.

Ten thousand checks are a few groups: those that are bad on the same columns in the same way, and
those that are bad nowhere. Lists of groups stay short however many checks there are.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch_backend_ci.dashboard.model import Key
from torch_conformance.spec.outcome import RANKS

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


MOST = 100
"""Limit of groups of bad checks, by the columns in which they are bad."""


class Cell(NamedTuple):
    """A check in a column."""

    outcome: str
    bad: bool


Row = tuple[Cell | None, ...]
"""A cell for each column, None where it does not have the check."""


@dataclass(frozen=True)
class Grid:
    """Every check that a column has, or that one had."""

    columns: tuple[Key, ...]
    rows: Mapping[str, Row]
    """By id, sorted."""


class Alike(NamedTuple):
    """Checks that are bad on the same columns in the same way, or nowhere and never else."""

    bad: tuple[tuple[str, tuple[Key, ...]], ...]
    """By outcome, the worst first: where it is that; nowhere in particular where that varies."""
    others: tuple[str, ...]
    """The outcomes that they have elsewhere, the best first."""
    is_gone: bool
    """Whether no column has them any more."""
    ids: tuple[str, ...]


@functools.lru_cache(maxsize=1)
def of(model: Model) -> Grid:
    """The grid of a model, made once."""
    columns = tuple(key for key, series in model.series.items() if series.column)
    rows: dict[str, list[Cell | None]] = {
        id: [None] * len(columns) for id in sorted(model.check_ids())
    }
    cells: dict[tuple[str, bool], Cell] = {}
    for place, key in enumerate(columns):
        column = model.series[key].column
        for id, result in model.results(column).items() if column else ():
            state = (result.outcome, result.unexpected)
            rows[id][place] = cells.setdefault(state, Cell(*state))
    return Grid(columns, {id: tuple(row) for id, row in rows.items()})


def alike(grid: Grid, ids: Iterable[str]) -> list[Alike]:
    """The checks in groups: the worst first, of these the ones that are bad on most columns."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for id in ids:
        groups[_likeness(grid.rows[id])].append(id)
    made = sorted((_alike(grid, mine) for mine in groups.values()), key=_place)
    told_apart = [one for one in made if one.bad][:MOST]
    return [*told_apart, *_merged(made[len(told_apart) :])]


def _merged(groups: Iterable[Alike]) -> Iterator[Alike]:
    """Bad groups by their worst outcome alone, the others as they are."""
    by_outcome: dict[str, list[Alike]] = defaultdict(list)
    rest: list[Alike] = []
    for one in groups:
        (by_outcome[one.bad[0][0]] if one.bad else rest).append(one)
    for outcome, mine in by_outcome.items():
        others = dict.fromkeys(other for one in mine for other in one.others)
        ids = sorted(id for one in mine for id in one.ids)
        yield Alike(((outcome, ()),), tuple(others), False, tuple(ids))
    yield from rest


def count_bad(grid: Grid, ids: Iterable[str]) -> int:
    """How many of them make a column red."""
    return sum(any(cell is not None and cell.bad for cell in grid.rows[id]) for id in ids)


def _likeness(row: Row) -> Hashable:
    """Equal for checks that are shown together: the bad cells, or all outcomes if none is bad."""
    bad_cells = _bad_cells(row)
    return bad_cells if any(bad_cells) else frozenset(filter(None, row))


def _bad_cells(row: Row) -> Row:
    return tuple(cell if cell is not None and cell.bad else None for cell in row)


def _alike(grid: Grid, ids: Sequence[str]) -> Alike:
    where: dict[str, list[Key]] = defaultdict(list)
    for key, cell in zip(grid.columns, _bad_cells(grid.rows[ids[0]]), strict=True):
        if cell is not None:
            where[cell.outcome].append(key)
    others = {cell.outcome for id in ids for cell in grid.rows[id] if cell and not cell.bad}
    return Alike(
        tuple((outcome, tuple(where[outcome])) for outcome in sorted(where, key=_rank)),
        tuple(sorted(others, key=_rank, reverse=True)),
        not any(grid.rows[ids[0]]),
        tuple(ids),
    )


def _rank(outcome: str) -> tuple[int, str]:
    return RANKS[outcome], outcome


def _place(group: Alike) -> tuple[bool, bool, int, int, int, tuple[str, ...]]:
    """The groups that are bad nowhere are last, before them what is gone."""
    worst = RANKS[group.bad[0][0]] if group.bad else 0
    columns = sum(len(keys) for _, keys in group.bad)
    return not group.bad, not group.is_gone, worst, -columns, -len(group.ids), group.ids[:1]
