# SPDX-License-Identifier: BSD-3-Clause
"""What changed between two runs: by the lattice of outcomes, by evidence, by capabilities.

Only runs that ask the same can be compared; a difference in the question is refused unless the
caller names it. What is missing counts as lost, never as unchanged.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from torch_conformance.results.reader import Document, Record
from torch_conformance.spec.outcome import Outcome, is_bad

FILE = Path(__file__).parent / "lattice.yaml"
SCHEMA = "urn:torch-conformance:comparison:1"
SILENT = frozenset({Outcome.UNSUPPORTED, Outcome.BLOCKED_UPSTREAM})

#: What must be alike: name (for --across) -> how to read it off a run.
ALIKE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "backend": lambda run: (run["backend"], run["device_type"]),
    "suite": lambda run: (run["suite"], run["source"]["digest"]),
    "options": lambda run: {key: run["options"][key] for key in ("dtypes", "fallback", "isolate")},
    "selection": lambda run: (run["selection"] or {}).get("differs_by"),
    "seed": lambda run: run["seed"],
}
#: Differences that are allowed, and listed.
NOTED = ("torch", "python", "platform", "driver", "devices", "descriptor", "expectations")

_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b")


class IncomparableError(Exception):
    """Two runs that did not ask the same; the text tells every difference, `names` names them."""

    def __init__(self, text: str, names: list[str]) -> None:
        super().__init__(text)
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

    old: Document
    new: Document
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
                name: [vars(change) for change in getattr(self, name)]
                for name in (*lists, "added", "removed")
            },
        }


@functools.cache
def ranks() -> dict[str, int]:
    """The place of every outcome in the lattice: more is better."""
    lines = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {outcome: rank for rank, line in enumerate(lines) for outcome in line["outcomes"]}


def compare(
    old: Document,
    new: Document,
    across: frozenset[str] = frozenset(),
    allow_removed: bool = False,
) -> Comparison:
    """Compare two runs; raises IncomparableError unless they ask the same or `across` says so."""
    _require_comparable(old, new, across)
    made = Comparison(old, new, allow_removed=allow_removed)
    made.notes = [*_told(old, new, _differing(old, new, across)), *_noted(old, new)]
    made.lost = [*_missing("old", old), *_missing("new", new)]
    before = {record["id"]: record for record in old.checks}
    after = {record["id"]: record for record in new.checks}
    for id in sorted(before.keys() & after.keys()):
        _compare_records(made, before[id], after[id])
    made.removed = [
        Change(id, before[id]["outcome"], "gone") for id in sorted(before) if id not in after
    ]
    for id in sorted(after.keys() - before.keys()):
        change = Change(id, "new", after[id]["outcome"], after[id].get("message", "")[:200])
        (made.regressions if is_bad(after[id]) else made.added).append(change)
    made.capabilities = list(_capabilities(old, new))
    return made


def _require_comparable(old: Document, new: Document, across: frozenset[str]) -> None:
    problems = [
        f"{document.name} is shard {document.run['options']['shard']}: merge the shards first"
        for document in (old, new)
        if document.shard
    ]
    names = [] if problems else _differing(old, new, ALIKE.keys() - across)
    problems += _told(old, new, names)
    if problems:
        raise IncomparableError("\n  ".join(["the runs cannot be compared:", *problems]), names)


def _differing(old: Document, new: Document, names: Collection[str]) -> list[str]:
    return [n for n, read in ALIKE.items() if n in names and read(old.run) != read(new.run)]


def _told(old: Document, new: Document, names: list[str]) -> list[str]:
    return [
        f"{name} differs: {_short(ALIKE[name](old.run))} and {_short(ALIKE[name](new.run))}"
        for name in names
    ]


def _noted(old: Document, new: Document) -> Iterator[str]:
    for key in NOTED:
        before, after = old.run.get(key), new.run.get(key)
        if before != after:
            yield f"{key}: {_short(before)} -> {_short(after)}"


def plain(value: Any) -> str:
    """A value of a run in words: `0.1.0, 60542a53b135`; of digests, as many digits as tell."""
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


def _missing(which: str, document: Document) -> Iterator[str]:
    if document.state in ("incomplete", "nothing executed"):
        yield f"the {which} report is of no use: {document.state}"


def _compare_records(made: Comparison, old: Record, new: Record) -> None:
    before, after = old["outcome"], new["outcome"]
    change = Change(old["id"], before, after, _why(new))
    if before == after and is_bad(new) and not is_bad(old):
        made.regressions.append(change)  # Flaky before and after, and not listed any more.
    elif before != after:
        if is_bad(old) and Outcome(after) in SILENT:
            made.withdrawn.append(change)
        elif ranks()[after] < ranks()[before]:
            made.regressions.append(change)
        elif ranks()[after] > ranks()[before]:
            made.improvements.append(change)
        else:
            made.changed.append(change)
    _compare_evidence(made, old, new)


def _why(record: Record) -> str:
    text = record.get("message") or record.get("reason") or ""
    lines = text.splitlines()
    return lines[0][:200] if lines else ""


def _compare_evidence(made: Comparison, old: Record, new: Record) -> None:
    before, after = old.get("evidence"), new.get("evidence")
    newly = sorted(set(new.get("fallbacks", ())) - set(old.get("fallbacks", ())))
    if newly or (after == "fallback" and before not in (None, "fallback")):
        change = Change(new["id"], before or "on the device", "fallback", ", ".join(newly))
        made.regressions.append(change)
    elif before == "fallback" and after not in (None, "fallback"):
        made.improvements.append(Change(new["id"], before, after))
    elif before != after:
        made.changed.append(Change(new["id"], str(before), str(after), "evidence"))


def _capabilities(old: Document, new: Document) -> Iterator[Change]:
    before, after = old.run["capabilities"], new.run["capabilities"]
    for name in sorted(before.keys() | after.keys()):
        one, other = _stated(before.get(name)), _stated(after.get(name))
        if one != other:
            yield Change(name, one, other)


def _stated(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "unknown"
    state = "broken" if "broken" in entry else "there" if entry["value"] else "absent"
    return f"{state}, {entry['source']}"
