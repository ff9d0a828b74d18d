# SPDX-License-Identifier: BSD-3-Clause
"""The relations of a store in today's names of levels and tiers, whatever suite the runs had."""

from __future__ import annotations

from torch_backend_ci.results import duck
from torch_conformance.results import levels
from torch_conformance.spec import former_names

_KEPT = ("verified", "must", "should_verified", "should", "blockers")


def runs(query: str) -> str:
    """The same rows: levels have today's names, and former levels are left out."""
    name, title = _name("step.name"), _title("step.name", "step.title")
    kept = ", ".join(f"'{field}': step.{field}" for field in _KEPT)
    steps = (
        f"[{{'name': {name}, 'title': {title}, {kept}}} FOR step IN steps "
        f"IF {name} IN ({', '.join(duck.literal(level.name) for level in levels.every())})]"
    )
    return (
        f"SELECT * REPLACE ({_name('level')} AS level, {_title('level', 'title')} AS title, "
        f"{steps} AS steps) FROM ({query})"
    )


def results(query: str) -> str:
    """The same rows: tiers have today's names."""
    return f"SELECT * REPLACE ({_name('tier')} AS tier) FROM ({query})"


def _name(column: str) -> str:
    return _case(column, former_names.TIERS, column)


def _title(name: str, title: str) -> str:
    titles = {level.name: level.title for level in levels.every()}
    return _case(name, {old: titles[new] for old, new in former_names.TIERS.items()}, title)


def _case(column: str, values: dict[str, str], otherwise: str) -> str:
    cases = (f"WHEN {duck.literal(a)} THEN {duck.literal(b)}" for a, b in values.items())
    return f"CASE {column} {' '.join(cases)} ELSE {otherwise} END"
