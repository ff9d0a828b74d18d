# SPDX-License-Identifier: BSD-3-Clause
"""Reading an expectations file: every entry with its place, every problem with its line."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from torch_conformance.expectations.entry import (
    LISTS,
    OPTIONAL,
    REQUIRED,
    STATUSES,
    Expectation,
    ExpectationsError,
)
from torch_conformance.expectations.patterns import Index
from torch_conformance.spec import yaml_nodes
from torch_conformance.spec.chapters import chapters
from torch_conformance.spec.ids import pattern_error
from torch_conformance.spec.reason import List


class Expectations:
    """The entries of one file; the first that matches a check decides."""

    def __init__(self, entries: Iterable[Expectation] = ()) -> None:
        self.entries = list(entries)
        # Of two entries with the same pattern the first decides.
        self._ranks = {entry.id: rank for rank, entry in reversed([*enumerate(self.entries)])}

    @classmethod
    def load(cls, file: Path) -> Expectations:
        """Read and verify a file; raises ExpectationsError for its first problem."""
        content = read(file)
        if content.problems:
            raise ExpectationsError(content.problems[0])
        return cls(content.entries)

    def find(self, check_id: str) -> Expectation | None:
        """The entry for a check."""
        stems = (f"{check_id[:end]}*" for end in range(len(check_id) + 1))
        ranks = (self._ranks[name] for name in (check_id, *stems) if name in self._ranks)
        first = min(ranks, default=None)
        return None if first is None else self.entries[first]

    def unmatched(
        self, known_ids: Iterable[str], surfaces: Collection[str]
    ) -> Iterator[Expectation]:
        """The entries that name no check there is.

        An entry of a surface that was not collected cannot be judged, and is left alone.
        """
        index = Index(known_ids)
        for entry in self.entries:
            surface, slash, _ = entry.id.partition("/")
            if slash and surface in chapters() and surface not in surfaces:
                continue
            if not index.named(entry.id):
                yield entry

    def verify(self, known_ids: Iterable[str], surfaces: Collection[str]) -> None:
        """Raise ExpectationsError for an entry that names no check there is."""
        for entry in self.unmatched(known_ids, surfaces):
            raise ExpectationsError(
                f"{entry.where}: {entry.kind} entry {entry.id!r} matches no check"
            )


@dataclass(frozen=True)
class Place:
    """Where one of the lists stands in the file: lines from 0, columns as in the text."""

    kind: str
    flow: bool
    empty: bool
    line: int
    column: int
    end: int


@dataclass(frozen=True)
class Content:
    """What a file says, and all that is wrong with it."""

    entries: list[Expectation]
    lists: list[Place]
    problems: list[str]
    flow: bool = False
    """Whether the file is one map in braces."""


def read(file: Path) -> Content:
    """Everything in a file; raises ExpectationsError if it is not a map of lists."""
    node = yaml_nodes.compose(file, ExpectationsError)
    if node is None:
        return Content([], [], [])
    if not isinstance(node, yaml.MappingNode):
        raise ExpectationsError(f"{file}:1: expected the lists {', '.join(LISTS)}")
    content = Content([], [], [], bool(node.flow_style))
    for key_node, list_node in node.value:
        where = f"{file}:{key_node.start_mark.line + 1}"
        kind = next((name for name in LISTS if name == key_node.value), None)
        if kind is None or not isinstance(list_node, yaml.SequenceNode):
            content.problems.append(
                f"{where}: {key_node.value!r} is not one of the lists {', '.join(LISTS)}"
            )
            continue
        _read_list(file, kind, key_node, list_node, content)
    return content


def _read_list(
    file: Path, kind: List, key: yaml.ScalarNode, node: yaml.SequenceNode, content: Content
) -> None:
    last = 0
    for item in node.value:
        try:
            entry = _entry(file, kind, item)
        except ExpectationsError as problem:
            content.problems.append(str(problem))
        else:
            content.entries.append(entry)
            last = entry.lines[1]
    flow = bool(node.flow_style) or not all(_is_block(item) for item in node.value)
    line, column = key.start_mark.line, node.start_mark.column
    end = last or node.end_mark.line + 1
    content.lists.append(Place(kind, flow, not node.value, line, column, end))


def _entry(file: Path, kind: List, node: yaml.Node) -> Expectation:
    where = f"{file}:{node.start_mark.line + 1}"
    values = yaml_nodes.construct(node, where, ExpectationsError)
    if not isinstance(values, dict):
        raise ExpectationsError(f"{where}: expected a map with {', '.join(REQUIRED[kind])}")
    for key in REQUIRED[kind]:
        if values.get(key) in (None, ""):
            raise ExpectationsError(f"{where}: key {key!r} is missing")
    for key, value in values.items():
        if key not in REQUIRED[kind] + OPTIONAL[kind]:
            raise ExpectationsError(f"{where}: unknown key {key!r} in {kind}")
        problem = _VALUES[key](value)
        if problem:
            raise ExpectationsError(f"{where}: {problem}")
    lines = node.start_mark.line, _last_line(node) + 1
    return Expectation(kind=kind, where=where, lines=lines, **values)


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and not node.flow_style


def _text_problem(key: str) -> Callable[[Any], str | None]:
    return lambda value: None if isinstance(value, str) else f"{key} is a text"


def _id_problem(value: Any) -> str | None:
    return pattern_error(value) if isinstance(value, str) else "id is a text"


def _status_problem(value: Any) -> str | None:
    return None if value in STATUSES else f"status is one of {', '.join(STATUSES)}"


def _date_problem(value: Any) -> str | None:
    # A time of day makes it another type, which does not compare with dates.
    return None if type(value) is datetime.date else "expires is a date like 2027-01-31"


_VALUES: dict[str, Callable[[Any], str | None]] = {
    "id": _id_problem,
    "reason": _text_problem("reason"),
    "link": _text_problem("link"),
    "status": _status_problem,
    "expires": _date_problem,
}


def _last_line(node: yaml.Node) -> int:
    """The last line on which something of a node stands: end marks may lie after empty lines."""
    if isinstance(node, yaml.ScalarNode) and node.style not in ("|", ">"):
        return int(node.end_mark.line)
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return max(_last_line(value) for _, value in node.value)
    end = node.end_mark
    return int(end.line) if node.end_mark.column else max(int(end.line) - 1, node.start_mark.line)


class _Dumper(yaml.SafeDumper):
    """Writes the same date in full each time, not as an alias of the first."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(entries: Iterable[Expectation]) -> str:
    """Entries as the text of one list."""
    keys = ("id", "reason", "link", "status", "expires")
    values = [{k: getattr(e, k) for k in keys if getattr(e, k) is not None} for e in entries]
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)
