# SPDX-License-Identifier: BSD-3-Clause
"""What changed between two runs: by the ranks of outcomes, by evidence, by capabilities.

Only runs that ask the same can be compared; a difference in the question is refused unless the
caller names it. What is missing counts as lost, never as unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from torch_conformance.results.reader import Document
from torch_conformance.results.report import Capability, Run, Torch
from torch_conformance.spec.outcome import NOT_ASKED, RANKS, Outcome, is_unexpected

SCHEMA = "urn:torch-conformance:comparison:1"
EVIDENCE = ("native", "composite", "fallback")
FALLBACK = EVIDENCE[-1]

T = TypeVar("T")


class Move(str, Enum):
    """How a check changed; the values are the lists of a comparison."""

    REGRESSION = "regressions"
    IMPROVEMENT = "improvements"
    WITHDRAWN = "withdrawn"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


class Ended(Protocol):
    """How a check ended in one run, as far as outcomes are compared."""

    @property
    def outcome(self) -> str: ...
    @property
    def unexpected(self) -> bool: ...


class Seen(Ended, Protocol):
    """What one run says of a check, as far as it is compared."""

    @property
    def evidence(self) -> str | None: ...
    @property
    def fallbacks(self) -> tuple[str, ...]: ...
    @property
    def mismatch(self) -> str | None: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a run asked, and what it says of itself besides, as far as it is compared."""

    backend: str
    device_type: str
    suite: str
    suite_digest: str
    options: Mapping[str, Any]
    """Those of `OPTIONS`."""
    differs_by: tuple[str, ...] | None
    """Of the selection; None: unknown."""
    seed: int
    capabilities: Mapping[str, Capability]
    torch: Torch
    python: str
    platform: str
    driver: Any
    devices: tuple[str, ...]
    descriptor: Any
    expectations: Any


OPTIONS = ("dtypes", "fallback", "isolate")
#: What must be alike: name (for --across) -> how to read it off the facts of a run.
ALIKE: dict[str, Callable[[Facts], Any]] = {
    "backend": lambda facts: (facts.backend, facts.device_type),
    "suite": lambda facts: (facts.suite, facts.suite_digest),
    "options": lambda facts: facts.options,
    "selection": lambda facts: facts.differs_by,
    "seed": lambda facts: facts.seed,
}
#: Differences that are allowed, and listed.
NOTED = ("torch", "python", "platform", "driver", "devices", "descriptor", "expectations")

_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b")


@dataclass(frozen=True)
class Side:
    """One of two runs that are compared."""

    name: str
    sha256: str
    facts: Facts
    results: Mapping[str, Seen]
    state: str = "green"
    shard: str | None = None


def facts_of(run: Run) -> Facts:
    """The facts that a report tells."""
    return Facts(
        backend=run.backend,
        device_type=run.device_type,
        suite=run.suite,
        suite_digest=run.source.digest,
        options={name: getattr(run.options, name) for name in OPTIONS},
        differs_by=run.selection.differs_by if run.selection else None,
        seed=run.seed,
        capabilities=run.capabilities,
        torch=run.torch,
        python=run.python,
        platform=run.platform,
        driver=run.driver,
        devices=run.devices,
        descriptor=run.descriptor,
        expectations=run.expectations,
    )


def side_of(document: Document) -> Side:
    """A report as a side of a comparison."""
    return Side(
        document.name,
        document.sha256,
        facts_of(document.run),
        {result.id: result for result in document.checks},
        document.state,
        document.run.options.shard,
    )


class IncomparableError(Exception):
    """Two runs that did not ask the same; the text tells every difference, `names` names them."""

    def __init__(self, problems: list[str], names: list[str]) -> None:
        super().__init__("\n  ".join(["the runs cannot be compared:", *problems]))
        self.problems = problems
        self.names = names


@dataclass(frozen=True)
class Change:
    """One check (or capability) that is not as it was."""

    id: str
    old: str
    new: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.id}: {self.old} -> {self.new}" + (f": {self.detail}" if self.detail else "")


@dataclass
class Comparison:
    """Two runs side by side."""

    old: Side
    new: Side
    notes: list[str] = field(default_factory=list)
    regressions: list[Change] = field(default_factory=list)
    improvements: list[Change] = field(default_factory=list)
    withdrawn: list[Change] = field(default_factory=list)
    """Bad before and not asked any more: no regression, and nothing mended."""
    changed: list[Change] = field(default_factory=list)
    capabilities: list[Change] = field(default_factory=list)
    added: list[Change] = field(default_factory=list)
    removed: list[Change] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Why the comparison is not of all there should be."""
    allow_removed: bool = False

    @property
    def good(self) -> bool:
        """Whether nothing regressed and nothing is missing."""
        gone = self.removed and not self.allow_removed
        return not (self.regressions or gone or self.lost)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        lists = ("regressions", "improvements", "withdrawn", "changed", "capabilities")
        return {
            "schema": SCHEMA,
            "good": self.good,
            "old": {"report": self.old.name, "sha256": self.old.sha256},
            "new": {"report": self.new.name, "sha256": self.new.sha256},
            "notes": self.notes,
            "lost": self.lost,
            **{
                name: [asdict(change) for change in getattr(self, name)]
                for name in (*lists, "added", "removed")
            },
        }


def by_outcome(old: Ended | None, new: Ended | None) -> Move | None:
    """How a check changed, by its outcomes before and now; None: it did not."""
    if old is None or new is None:
        if new is None:
            return Move.REMOVED if old else None
        return Move.REGRESSION if new.unexpected else Move.ADDED
    if old.outcome == new.outcome:
        # Flaky before and after, and not listed any more.
        return Move.REGRESSION if new.unexpected and not old.unexpected else None
    if old.unexpected and new.outcome in NOT_ASKED:
        return Move.WITHDRAWN
    step = RANKS[new.outcome] - RANKS[old.outcome]
    return Move.REGRESSION if step < 0 else Move.IMPROVEMENT if step > 0 else Move.CHANGED


def by_evidence(old: str | None, new: str | None) -> Move | None:
    """How a check changed, by its execution paths before and now; None: it did not."""
    if old == new:
        return None
    if new == FALLBACK and old is not None:
        return Move.REGRESSION
    if old == FALLBACK and new is not None:
        return Move.IMPROVEMENT
    return Move.CHANGED


class _Listed(NamedTuple):
    """A check with an outcome; if it is flaky, an expectation says so."""

    outcome: str
    unexpected: bool


def table() -> dict[str, dict[str, dict[str, str]]]:
    """`by_outcome` and `by_evidence` for programs in other languages: before, after, move.

    A check that one run does not have is `new` before or `gone` after; the evidence that a check
    does not tell is `unknown`. A pair that the table lacks is not a change. Flaky checks count as
    listed.
    """
    outcomes: dict[str, _Listed | None] = {
        outcome.value: _Listed(outcome.value, is_unexpected(outcome, listed=True))
        for outcome in Outcome
    }
    evidence: dict[str, str | None] = {name: name for name in EVIDENCE} | {"unknown": None}
    return {
        "outcome": _moves(outcomes | {"new": None}, outcomes | {"gone": None}, by_outcome),
        "evidence": _moves(evidence, evidence, by_evidence),
    }


def _moves(
    before: Mapping[str, T], after: Mapping[str, T], rule: Callable[[T, T], Move | None]
) -> dict[str, dict[str, str]]:
    return {
        old: {new: move.value for new, b in after.items() if (move := rule(a, b))}
        for old, a in before.items()
    }


def compare(
    old: Side, new: Side, across: frozenset[str] = frozenset(), allow_removed: bool = False
) -> Comparison:
    """Compare two runs; raises IncomparableError unless they ask the same or `across` says so."""
    _require_comparable(old, new, across)
    made = Comparison(old, new, allow_removed=allow_removed)
    made.notes = [*_told(old, new, differing(old, new, across)), *_noted(old, new)]
    made.lost = [*_missing("old", old), *_missing("new", new)]
    for id in sorted(old.results.keys() | new.results.keys()):
        before, after = old.results.get(id), new.results.get(id)
        _add(made, by_outcome(before, after), _change(id, before, after))
        if before and after:
            _compare_evidence(made, id, before, after)
    made.capabilities = list(_capabilities(old.facts, new.facts))
    return made


def _add(made: Comparison, move: Move | None, change: Change) -> None:
    if move is not None:
        getattr(made, move.value).append(change)


def _change(id: str, old: Seen | None, new: Seen | None) -> Change:
    before = str(old.outcome) if old else "new"
    if new is None:
        return Change(id, before, "gone")
    lines = new.text.splitlines()
    return Change(id, before, str(new.outcome), lines[0][:200] if lines else "")


def _compare_evidence(made: Comparison, id: str, old: Seen, new: Seen) -> None:
    before, after = old.evidence, new.evidence
    newly = sorted(set(new.fallbacks) - set(old.fallbacks))
    move = Move.REGRESSION if newly else by_evidence(before, after)
    if move is Move.REGRESSION:
        change = Change(id, before or "on the device", FALLBACK, ", ".join(newly))
    elif move is Move.IMPROVEMENT:
        change = Change(id, str(before), str(after))
    else:
        change = Change(id, str(before), str(after), "evidence")
    _add(made, move, change)


def _require_comparable(old: Side, new: Side, across: frozenset[str]) -> None:
    problems = [
        f"{side.name} is shard {side.shard}: merge the shards first"
        for side in (old, new)
        if side.shard
    ]
    names = [] if problems else differing(old, new, ALIKE.keys() - across)
    problems += _told(old, new, names)
    if problems:
        raise IncomparableError(problems, names)


def differing(old: Side, new: Side, names: Collection[str]) -> list[str]:
    """By which of these names the runs did not ask the same."""
    return [n for n, read in ALIKE.items() if n in names and read(old.facts) != read(new.facts)]


def _told(old: Side, new: Side, names: list[str]) -> list[str]:
    return [
        f"{name} differs: {_short(ALIKE[name](old.facts))} and {_short(ALIKE[name](new.facts))}"
        for name in names
    ]


def _noted(old: Side, new: Side) -> Iterator[str]:
    for key in NOTED:
        before, after = getattr(old.facts, key), getattr(new.facts, key)
        if before != after:
            yield f"{key}: {_short(before)} -> {_short(after)}"


def plain(value: Any) -> str:
    """A value of a run in words: `0.1.0, 60542a53b135`; of digests, as many digits as tell."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain(item)}" for name, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(plain, value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value in (None, "") else _DIGEST.sub(r"\1", str(value))


def _short(value: Any) -> str:
    text = plain(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


def _missing(which: str, side: Side) -> Iterator[str]:
    if side.state in ("incomplete", "nothing executed"):
        yield f"the {which} report is of no use: {side.state}"


def _capabilities(old: Facts, new: Facts) -> Iterator[Change]:
    before, after = old.capabilities, new.capabilities
    for name in sorted(before.keys() | after.keys()):
        one, other = _stated(before.get(name)), _stated(after.get(name))
        if one != other:
            yield Change(name, one, other)


def _stated(entry: Capability | None) -> str:
    if entry is None:
        return "unknown"
    state = "broken" if entry.broken else "there" if entry.value else "absent"
    return f"{state}, {entry.source}"
