# SPDX-License-Identifier: BSD-3-Clause
"""Runs in pairs: which are worth a page, and what changed.

The rules are those of torch_conformance.results.comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from torch_backend_ci.dashboard.model import Key, Result, Run
from torch_conformance.results import comparison
from torch_conformance.results.comparison import Comparison, Facts, IncomparableError, Side
from torch_conformance.results.report import Capability, Torch

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

NEWEST = 30
"""So many changed runs of a series have a page that compares them with the run before."""


class Pair(NamedTuple):
    """Two runs of one backend."""

    old: Run
    new: Run


def consecutive(model: Model, key: Key) -> Iterator[Pair]:
    """The newest runs of a series that are not as the run before them, newest first.

    Cheap: it looks at the history, not at the results. Evidence is compared by its sums.
    """
    runs = model.series[key].runs
    changed = {change.run for change in model.changes(key)}
    pairs = (
        Pair(runs[i - 1], runs[i])
        for i in range(len(runs) - 1, 0, -1)
        if i in changed or _look_different(runs[i - 1], runs[i])
    )
    return islice(pairs, NEWEST)


def neighbours(model: Model, backend: str) -> Iterator[Pair]:
    """The columns of each two neighbouring release lines."""
    of_backend = (one for key, one in model.series.items() if key.backend == backend)
    columns = [one.column for one in of_backend if one.column]
    return (Pair(old, new) for old, new in pairwise(columns))


def prerendered(model: Model) -> Iterator[Pair]:
    """Every pair that has a page (paths.of_comparison)."""
    for backend in model.backends:
        yield from neighbours(model, backend)
    for key in model.series:
        yield from consecutive(model, key)


def unlike(old: Run, new: Run) -> list[str]:
    """By which names (comparison.ALIKE) the runs did not ask the same; empty if they did."""
    return comparison.differing(_side(old, {}), _side(new, {}), comparison.ALIKE.keys())


def alike(old: Iterable[Run], new: Sequence[Run]) -> Pair | None:
    """The newest of `new` that asked the same as one of `old`, and the newest of these."""
    by_question = {_question(run): run for run in old}
    return next(
        (
            Pair(by_question[asked], run)
            for run in reversed(new)
            if (asked := _question(run)) in by_question
        ),
        None,
    )


def besides(pair: Pair) -> list[str]:
    """By which names (comparison.NOTED) the runs differ and may."""
    old, new = map(facts, pair)
    return [name for name in comparison.NOTED if getattr(old, name) != getattr(new, name)]


def apart(pair: Pair) -> list[tuple[str, str, str]]:
    """How they differ there: name, before, after; of what has parts only those that differ."""
    old, new = map(facts, pair)
    return [
        row
        for name in besides(pair)
        for row in _apart(
            name, msgspec.to_builtins(getattr(old, name)), msgspec.to_builtins(getattr(new, name))
        )
    ]


def _apart(name: str, old: Any, new: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for part in sorted(old.keys() | new.keys()):
            if old.get(part) != new.get(part):
                yield from _apart(f"{name} {part}", old.get(part), new.get(part))
    else:
        yield name, comparison.plain(old), comparison.plain(new)


def refusal(pair: Pair) -> list[str]:
    """The same in sentences, with the values; empty if the runs can be compared."""
    try:
        comparison.compare(_side(pair.old, {}), _side(pair.new, {}))
    except IncomparableError as error:
        return error.problems
    return []


def missing(pair: Pair) -> list[str]:
    """Of which run the store does not keep the results any more, in sentences."""
    return [
        f"the results of the run of {run.started:%Y-%m-%d %H:%M} are not kept any more"
        for run in pair
        if not run.kept
    ]


def compared(model: Model, pair: Pair, across: frozenset[str] = frozenset()) -> Comparison:
    """What changed; IncomparableError if the runs differ in what they asked, but for `across`."""
    old, new = (_side(run, model.results(run)) for run in pair)
    return comparison.compare(old, new, across)


def facts(run: Run) -> Facts:
    """What the run asked, and what it says of itself besides."""
    said = run.told
    return Facts(
        backend=said["backend"],
        device_type=run.device_type,
        suite=run.suite,
        suite_digest=run.suite_digest,
        options={name: run.options[name] for name in comparison.OPTIONS},
        differs_by=tuple(said["selection"]["differs_by"]),
        seed=run.seed,
        capabilities={
            name: Capability(
                value=entry["value"], source=entry["source"], broken=run.broken.get(name)
            )
            for name, entry in said["capabilities"].items()
        },
        torch=Torch(version=run.torch, git=run.torch_git),
        python=run.python,
        platform=run.platform,
        driver=run.driver,
        devices=run.devices,
        descriptor=said["descriptor"],
        expectations=said["expectations"],
    )


def _side(run: Run, results: Mapping[str, Result]) -> Side:
    """Only aligned runs are in pairs, and these are complete."""
    return Side(run.id[:12], run.id, facts(run), results)


def _question(run: Run) -> str:
    asked = facts(run)
    return repr([read(asked) for read in comparison.ALIKE.values()])


def _look_different(old: Run, new: Run) -> bool:
    return bool(
        old.evidence != new.evidence
        or (old.without, old.broken) != (new.without, new.broken)
        or unlike(old, new)
    )
