# SPDX-License-Identifier: BSD-3-Clause
"""Rewriting an expectations file from the results of a run.

What passes leaves the file, what fails enters it as an `xfail` that a person has yet to review: it
says so, and it expires soon. An entry whose time is over is left alone, because to prolong it is a
decision. Comments and the order of entries are kept.
"""

from __future__ import annotations

import datetime
import itertools
import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from torch_conformance.expectations.entry import (
    BROKEN,
    FLAKY,
    LISTS,
    XFAIL,
    Expectation,
    ExpectationsError,
)
from torch_conformance.expectations.file import Content, Expectations, Place, dump, read
from torch_conformance.expectations.patterns import Index, compress
from torch_conformance.results.causes import cause
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.reason import List
from torch_conformance.spec.result import CheckResult

#: What stands in an entry that no person has looked at; the linter refuses it.
UNREVIEWED = "unreviewed"
#: How long such an entry holds.
REVIEW_TIME = datetime.timedelta(days=30)
_MAX_REASON = 120
_UNFINISHED = (Outcome.NOT_RUN, Outcome.DEVICE_LOST)


@dataclass
class Changes:
    """The updated entries: replaced ones, new ones, remaining ones."""

    replaced: dict[Expectation, list[Expectation]] = field(default_factory=dict)
    added: list[Expectation] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A line for each change, for people."""
        lines = []
        for entry, others in self.replaced.items():
            lines.append(f"- {entry.kind} {entry.id}  ({entry.where})")
            lines += [f"+ {other.kind} {other.id}, as before" for other in others]
        lines += [f"+ {entry.kind} {entry.id}: {entry.reason}" for entry in self.added]
        return lines + [f"! {text}" for text in self.left]


def update(
    file: Path,
    results: Mapping[str, CheckResult],
    known_ids: Collection[str],
    surfaces: Collection[str],
    today: datetime.date,
) -> Changes:
    """Rewrite `file` (or create it) from the results of a run; return what was changed.

    `known_ids` are the checks there are, also those that were not run: no pattern may name one of
    them by chance. Raises ExpectationsError, and leaves the file as it was, for a run that was not
    finished and for a file that cannot be edited line by line.
    """
    unfinished = [id for id, result in results.items() if result.outcome in _UNFINISHED]
    if unfinished:
        raise ExpectationsError(f"{unfinished[0]} has no result: the run is not finished")
    content = read(file) if file.exists() else Content([], [], [])
    content.verify()
    changes = _changes(Expectations(content.entries), results, known_ids, surfaces, today)
    if changes.replaced or changes.added:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        _rewrite(file, _edited(text, content, changes), content, changes)
    return changes


def _changes(
    expectations: Expectations,
    results: Mapping[str, CheckResult],
    known_ids: Collection[str],
    surfaces: Collection[str],
    today: datetime.date,
) -> Changes:
    deciding = {id: expectations.find(id) for id in results}
    passing = {id for id, result in results.items() if result.outcome is Outcome.XPASS}
    changes = Changes()
    changes.replaced |= {entry: [] for entry in expectations.unmatched(known_ids, surfaces)}
    index = Index({*known_ids, *results})
    for entry in expectations.entries:
        broken = {
            id: results[id].outcome
            for id, decider in deciding.items()
            if decider is entry and results[id].outcome in BROKEN
        }
        if broken and entry.expired(today):
            changes.left.append(f"{entry.where} expired on {entry.expires}: mend it or prolong it")
            broken = {}
        named = index.named(entry.id)
        if broken or not passing.isdisjoint(named):
            changes.replaced[entry] = _narrowed(entry, set(named) - passing, broken, known_ids)
    for id, decider in deciding.items():
        if decider is not None and decider.kind != FLAKY and results[id].outcome is Outcome.FLAKY:
            changes.left.append(f"{id} is flaky, and {decider.where} says {decider.kind}")
    unlisted = [id for id in sorted(results) if deciding[id] is None]
    changes.added += _unreviewed(unlisted, results, known_ids, today)
    return changes


def _narrowed(
    entry: Expectation,
    ids: Collection[str],
    broken: Mapping[str, Outcome],
    known_ids: Collection[str],
) -> list[Expectation]:
    """What of an entry is still true, and for what is broken in another way its new status."""
    groups: dict[str | None, list[str]] = defaultdict(list)
    for id in sorted(ids):
        groups[broken[id].value if id in broken else entry.status].append(id)
    return [
        replace(entry, id=pattern, status=status)
        for status, group in groups.items()
        for pattern in compress(group, set(known_ids) - set(group))
    ]


def _unreviewed(
    ids: Iterable[str],
    results: Mapping[str, CheckResult],
    known_ids: Collection[str],
    today: datetime.date,
) -> list[Expectation]:
    """Entries for what is broken or flaky and not listed, the same causes together."""
    groups: dict[tuple[List, str | None, str], list[str]] = defaultdict(list)
    for id in ids:
        outcome = results[id].outcome
        if outcome in BROKEN:
            groups[XFAIL, outcome.value, cause(results[id])].append(id)
        elif outcome is Outcome.FLAKY:
            groups[FLAKY, None, cause(results[id])].append(id)
    expires = today + REVIEW_TIME
    return [
        Expectation(kind, pattern, _reason(text), UNREVIEWED, "", status, expires)
        for (kind, status, text), group in sorted(groups.items(), key=lambda item: item[1])
        for pattern in compress(group, set(known_ids) - set(group))
    ]


def _reason(text: str) -> str:
    line = " ".join(text.split())
    return f"{UNREVIEWED}: {textwrap.shorten(line, _MAX_REASON, placeholder=' ...') or 'unknown'}"


def _edited(text: str, content: Content, changes: Changes) -> str:
    """The text with other entries in the place of the replaced ones and the new ones at the end."""
    touched = {entry.kind for entry in [*changes.replaced, *changes.added]}
    places = [place for place in content.lists if place.kind in touched]
    if content.flow or any(place.flow and not place.empty for place in places):
        raise ExpectationsError(
            "a list is written in one line: put each entry on lines of its own, beginning with "
            "'- ', so that they can be changed one by one"
        )
    lines = text.splitlines()
    columns = {place.kind: place.column for place in places}
    edits = [
        (*_span(entries[0], lines), _entry_lines(others, columns[entries[0].kind]))
        for entries, others in _rewritten(content.entries, changes)
    ]
    edits += [(place.line, place.line + 1, []) for place in places if place.empty]
    new = {kind: [entry for entry in changes.added if entry.kind == kind] for kind in LISTS}
    ends = {place.kind: _end(place, lines) for place in places if not place.empty}
    for kind, entries in new.items():
        if entries and kind in ends:
            edits.append((ends[kind], ends[kind], _entry_lines(entries, columns[kind])))
    # From the end on, so that the numbers of the lines before stay true.
    for begin, end, text_lines in sorted(edits, reverse=True):
        lines[begin:end] = text_lines
    for kind, entries in new.items():
        if entries and kind not in ends:
            lines += [f"{kind}:", *_entry_lines(entries, 0)]
    return _without_empty_lists("\n".join(lines) + "\n")


def _rewritten(
    entries: Sequence[Expectation], changes: Changes
) -> Iterator[tuple[Sequence[Expectation], list[Expectation]]]:
    """What stands in one place of the file, of which something is replaced, and what will be."""
    for _, group in itertools.groupby(entries, lambda entry: entry.lines):
        of_place = list(group)
        if not changes.replaced.keys().isdisjoint(of_place):
            kept = (changes.replaced.get(entry, [entry]) for entry in of_place)
            yield of_place, list(itertools.chain(*kept))


def _span(entry: Expectation, lines: list[str]) -> tuple[int, int]:
    begin, end = entry.lines
    while end > begin + 1 and _is_blank(lines[end - 1]):
        end -= 1
    return begin, end


def _end(place: Place, lines: list[str]) -> int:
    """Where a new entry of a list goes: after its last one, before the comment of the next."""
    end = min(place.end, len(lines))
    while end > 0 and _is_blank(lines[end - 1]):
        end -= 1
    return end


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _entry_lines(entries: Iterable[Expectation], indent: int) -> list[str]:
    if not entries:
        return []
    return textwrap.indent(dump(entries), " " * indent).splitlines()


def _without_empty_lists(text: str) -> str:
    """A list without entries is removed with its key."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.splitlines(keepends=True)
    for key, value in reversed(node.value if isinstance(node, yaml.MappingNode) else []):
        if isinstance(value, yaml.ScalarNode) and not value.value:
            del lines[key.start_mark.line]
    return "".join(lines)


def _rewrite(file: Path, text: str, before: Content, changes: Changes) -> None:
    """Put the new text in place once it has been read back as what it should say."""
    draft = file.with_name(f".{file.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        found = read(draft)
        kept = [entry for entry in before.entries if entry not in changes.replaced]
        expected = [*kept, *changes.added, *itertools.chain(*changes.replaced.values())]
        if found.problems or _values(found.entries) != _values(expected):
            raise ExpectationsError(f"{file}: its layout is not understood; it was left as it is")
        draft.replace(file)
    except OSError as problem:
        raise ExpectationsError(f"{file}: {problem.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


def _values(entries: Iterable[Expectation]) -> Counter[Expectation]:
    """Entries without their places, which differ from file to file."""
    return Counter(replace(entry, where="", lines=(0, 0)) for entry in entries)
