# SPDX-License-Identifier: BSD-3-Clause
"""Rewriting an expectations file from the results of a run.

What passes leaves the file, what fails enters it as an `xfail` that a person has yet to review: it
says so, and it expires soon. An entry whose time is over is left alone, because to prolong it is a
decision. Comments and the order of entries are kept.
"""

from __future__ import annotations

import datetime
import textwrap
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from conformance import summary
from conformance.expectations.entry import (
    BROKEN,
    FLAKY,
    LISTS,
    XFAIL,
    Expectation,
    ExpectationsError,
)
from conformance.expectations.file import Content, Expectations, Place, dump, read
from conformance.expectations.patterns import compress
from conformance.outcome import Outcome

Record = Mapping[str, Any]

#: What stands in an entry that no person has looked at; the linter refuses it.
UNREVIEWED = "unreviewed"
#: How long such an entry holds.
REVIEW_TIME = datetime.timedelta(days=30)
_MAX_REASON = 120
_UNFINISHED = (Outcome.NOT_RUN, Outcome.DEVICE_LOST)


@dataclass
class Changes:
    """What becomes of the entries: those to delete, those to add, and what a person must decide."""

    deleted: list[Expectation] = field(default_factory=list)
    added: list[Expectation] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A line for each change, for people."""
        return [
            *(f"- {entry.kind} {entry.id}  ({entry.where})" for entry in self.deleted),
            *(f"+ {entry.kind} {entry.id}: {entry.reason}" for entry in self.added),
            *(f"! {text}" for text in self.left),
        ]


def update(
    file: Path,
    records: Mapping[str, Record],
    known_ids: Collection[str],
    surfaces: Collection[str],
    today: datetime.date,
) -> Changes:
    """Rewrite `file` (or create it) from the records of a run; return what was changed.

    `known_ids` are the checks there are, also those that were not run: no pattern may name one of
    them by chance. Raises ExpectationsError, and leaves the file as it was, for a run that was not
    finished and for a file that cannot be edited line by line.
    """
    unfinished = [id for id, record in records.items() if record["outcome"] in _UNFINISHED]
    if unfinished:
        raise ExpectationsError(f"{unfinished[0]} has no result: the run is not finished")
    content = read(file) if file.exists() else Content([], [], [])
    if content.problems:
        raise ExpectationsError(content.problems[0])
    changes = _changes(Expectations(content.entries), records, known_ids, surfaces, today)
    if changes.deleted or changes.added:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        _rewrite(file, _edited(text, content, changes), len(content.entries), changes)
    return changes


def _changes(
    expectations: Expectations,
    records: Mapping[str, Record],
    known_ids: Collection[str],
    surfaces: Collection[str],
    today: datetime.date,
) -> Changes:
    changes = Changes(deleted=list(expectations.unmatched(known_ids, surfaces)))
    named: dict[Expectation, list[str]] = defaultdict(list)
    unlisted = []
    for id in sorted(set(known_ids) | set(records)):
        entry = expectations.find(id)
        if entry is not None:
            named[entry].append(id)
        elif id in records:
            unlisted.append(id)
    for entry in expectations.entries:
        _revise(entry, named[entry], records, known_ids, today, changes)
    changes.added += _unreviewed(unlisted, records, known_ids, today)
    return changes


def _revise(
    entry: Expectation,
    ids: list[str],
    records: Mapping[str, Record],
    known_ids: Collection[str],
    today: datetime.date,
    changes: Changes,
) -> None:
    """Narrow one entry to what it is still true of, and correct its status."""
    outcomes = {id: Outcome(records[id]["outcome"]) for id in ids if id in records}
    passing = {id for id, outcome in outcomes.items() if outcome is Outcome.XPASS}
    broken = {id: outcome for id, outcome in outcomes.items() if outcome in BROKEN}
    if broken and entry.expired(today):
        changes.left.append(f"{entry.where} expired on {entry.expires}: mend it or prolong it")
        broken = {}
    if not passing and not broken:
        return
    changes.deleted.append(entry)
    groups: dict[str | None, list[str]] = defaultdict(list)
    for id in ids:
        if id not in passing:
            groups[broken[id].value if id in broken else entry.status].append(id)
    for status, group in groups.items():
        changes.added += [
            replace(entry, id=pattern, status=status)
            for pattern in compress(group, set(known_ids) - set(group))
        ]


def _unreviewed(
    ids: Iterable[str],
    records: Mapping[str, Record],
    known_ids: Collection[str],
    today: datetime.date,
) -> list[Expectation]:
    """Entries for what is broken or flaky and not listed, the same causes together."""
    groups: dict[tuple[str, str | None, str], list[str]] = defaultdict(list)
    for id in ids:
        outcome = Outcome(records[id]["outcome"])
        if outcome in BROKEN:
            groups[XFAIL, outcome.value, summary.cause(dict(records[id]))].append(id)
        elif outcome is Outcome.FLAKY:
            groups[FLAKY, None, str(records[id].get("reason", "differs"))].append(id)
    expires = today + REVIEW_TIME
    return [
        Expectation(kind, pattern, _reason(cause), UNREVIEWED, "", status, expires)
        for (kind, status, cause), group in sorted(groups.items(), key=lambda item: item[1])
        for pattern in compress(group, set(known_ids) - set(group))
    ]


def _reason(cause: str) -> str:
    line = " ".join(cause.split())
    return f"{UNREVIEWED}: {textwrap.shorten(line, _MAX_REASON, placeholder=' ...') or 'unknown'}"


def _edited(text: str, content: Content, changes: Changes) -> str:
    """The text without the deleted entries and with the added ones at the end of their lists."""
    for place in content.lists:
        if place.flow and any(e.kind == place.kind for e in changes.deleted + changes.added):
            raise ExpectationsError(
                f"the list {place.kind!r} is written in one line: put each entry on lines of its "
                "own, beginning with '- ', so that they can be changed one by one"
            )
    lines = text.splitlines()
    insertions = {kind: [entry for entry in changes.added if entry.kind == kind] for kind in LISTS}
    places = {place.kind: place for place in content.lists}
    # From the end on, so that the numbers of the lines before stay true.
    edits: list[tuple[int, int, list[str]]] = [(*_span(e, lines), []) for e in changes.deleted]
    for kind, entries in insertions.items():
        if entries and kind in places:
            edits.append(_insertion(places[kind], entries, lines))
    for begin, end, new in sorted(edits, reverse=True):
        lines[begin:end] = new
    for kind, entries in insertions.items():
        if entries and kind not in places:
            lines += [f"{kind}:", *_entry_lines(entries, 0)]
    return _without_empty_lists("\n".join(lines) + "\n")


def _span(entry: Expectation, lines: list[str]) -> tuple[int, int]:
    begin, end = entry.lines
    while end > begin + 1 and _is_blank(lines[end - 1]):
        end -= 1
    return begin, end


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _insertion(
    place: Place, entries: list[Expectation], lines: list[str]
) -> tuple[int, int, list[str]]:
    end = min(place.end, len(lines))
    while end > 0 and _is_blank(lines[end - 1]):
        end -= 1
    return end, end, _entry_lines(entries, place.column)


def _entry_lines(entries: Iterable[Expectation], indent: int) -> list[str]:
    return textwrap.indent(dump(entries), " " * indent).splitlines()


def _without_empty_lists(text: str) -> str:
    """A list that lost its last entry is no list any more: its key goes, too."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.splitlines(keepends=True)
    for key, value in reversed(node.value if isinstance(node, yaml.MappingNode) else []):
        if isinstance(value, yaml.ScalarNode) and not value.value:
            del lines[key.start_mark.line]
    return "".join(lines)


def _rewrite(file: Path, text: str, before: int, changes: Changes) -> None:
    """Put the new text in place once it has been read back as what it should say."""
    draft = file.with_name(f".{file.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        found = read(draft)
        expected = before - len(changes.deleted) + len(changes.added)
        if found.problems or len(found.entries) != expected:
            raise ExpectationsError(f"{file}: its layout is not understood; it was left as it is")
        draft.replace(file)
    except OSError as problem:
        raise ExpectationsError(f"{file}: {problem.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
