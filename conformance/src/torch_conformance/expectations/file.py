# SPDX-License-Identifier: BSD-3-Clause
"""Reading an expectations file: every entry with its place, every problem with its line."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from torch_conformance.expectations.document import ENTRIES
from torch_conformance.expectations.entry import LISTS, Expectation, ExpectationsError
from torch_conformance.expectations.patterns import Index
from torch_conformance.spec import typed, user_file
from torch_conformance.spec.chapters import chapters
from torch_conformance.spec.reason import List
from torch_conformance.spec.user_file import UserFile


class Expectations:
    """The entries of one file; the first that matches a check decides."""

    def __init__(self, entries: Iterable[Expectation] = ()) -> None:
        self.entries = list(entries)
        # Of two entries with the same pattern the first decides.
        self._ranks = {entry.id: rank for rank, entry in reversed([*enumerate(self.entries)])}

    @classmethod
    def load(cls, file: Path) -> Expectations:
        """Read and verify a file; raises ExpectationsError with all its problems."""
        content = read(file)
        content.verify()
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

    def verify(self) -> None:
        """Raise ExpectationsError with all problems, if there are any."""
        if self.problems:
            raise ExpectationsError(user_file.listed(self.problems))


def read(file: Path) -> Content:
    """Everything in a file; raises ExpectationsError if it is not a map of lists."""
    source = user_file.read(file, ExpectationsError)
    node = source.yaml.node
    if node is None:
        return Content([], [], [])
    if not isinstance(node, yaml.MappingNode):
        raise ExpectationsError(f"{file}:1: expected the lists {', '.join(LISTS)}")
    content = Content([], [], [], bool(node.flow_style))
    for key, list_node in node.value:
        where = source.where((key.value,))
        kind = next((name for name in LISTS if name == key.value), None)
        if kind is None:
            known = user_file.nearest(key.value, LISTS)
            content.problems.append(f"{where}: {key.value!r} is not one of the lists{known}")
        elif not isinstance(list_node, yaml.SequenceNode):
            content.problems.append(
                f"{where}: {kind!r} must be a list of entries, each beginning with '- '"
            )
        else:
            _read_list(source, kind, list_node, content)
            content.lists.append(_place(kind, key, list_node, content.entries))
    return content


def _read_list(source: UserFile, kind: List, node: yaml.SequenceNode, content: Content) -> None:
    for index, item in enumerate(node.value):
        path = (kind, index)
        entry, problems = user_file.convert(typed.at(source.yaml.value, path), ENTRIES[kind])
        content.problems.extend(f"{source.where((*path, *p.path))}: {p.text}" for p in problems)
        if entry is not None:
            keys = msgspec.to_builtins(entry, builtin_types=[datetime.date])
            lines = item.start_mark.line, _last_line(item) + 1
            for step, pattern in entry.patterns():
                where = source.where((*path, "id", *step) if step else path)
                own = {**keys, "id": pattern}
                content.entries.append(Expectation(kind=kind, where=where, lines=lines, **own))


def _place(
    kind: List, key: yaml.ScalarNode, node: yaml.SequenceNode, entries: list[Expectation]
) -> Place:
    last = max((entry.lines[1] for entry in entries if entry.kind == kind), default=0)
    flow = bool(node.flow_style) or not all(_is_block(item) for item in node.value)
    line, column = key.start_mark.line, node.start_mark.column
    return Place(kind, flow, not node.value, line, column, last or node.end_mark.line + 1)


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and not node.flow_style


def _last_line(node: yaml.Node) -> int:
    """The last line on which something of a node stands: end marks may lie after empty lines."""
    if isinstance(node, yaml.ScalarNode) and node.style not in ("|", ">"):
        return int(node.end_mark.line)
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        values = node.value
        if isinstance(node, yaml.MappingNode):
            values = [value for _, value in values]
        return max(_last_line(value) for value in values)
    end = node.end_mark
    return int(end.line) if node.end_mark.column else max(int(end.line) - 1, node.start_mark.line)


class _Dumper(yaml.SafeDumper):
    """Writes the same date in full each time, not as an alias of the first."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(entries: Iterable[Expectation]) -> str:
    """Entries as the text of one list; those that differ in the id alone become one entry."""
    keys = ("reason", "link", "status", "expires")
    ids: dict[Expectation, list[str]] = {}
    for entry in entries:
        ids.setdefault(replace(entry, id="", where="", lines=(0, 0)), []).append(entry.id)
    values = []
    for entry, of_entry in ids.items():
        others = {key: getattr(entry, key) for key in keys}
        found = {"id": of_entry[0] if len(of_entry) == 1 else of_entry}
        values.append(found | {key: value for key, value in others.items() if value is not None})
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)
