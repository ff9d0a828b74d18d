# SPDX-License-Identifier: BSD-3-Clause
"""Which headers include which, and so which changed files an extractor reads at all."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.cpp.compiler import Profile, include_folders
from torch_backend_ci.surface.extract.device_module import LAZY_INIT_HEADER
from torch_backend_ci.surface.model import Domain
from torch_backend_ci.torch_tree import TorchTree, layout

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(?:include|if|el|endif|error)[^\n]*", re.MULTILINE)

_OPERATORS = "torchgen/packaged/ATen/native/"
_HEADERS = {Domain.CPP, Domain.HEADER}
_PYTHON = {Domain.PYTHON, Domain.DEVICE_MODULE}

Changed = Mapping[str, bytes | None]


@dataclass(frozen=True)
class Includes:
    """The listed headers of a tree and what they include, by paths of the tree. Read as text, and
    of a changed file both before and after, so it has rather one edge too many."""

    listed: Mapping[str, Collection[str]]  # header as one includes it -> where it may lie
    edges: Mapping[str, Set[str]]

    def reached(self, headers: Iterable[str]) -> set[str]:
        """All files that these listed headers include, and they."""
        return _closure(self.edges, (path for header in headers for path in self.listed[header]))

    def above(self, files: Iterable[str]) -> set[str]:
        """All files that include one of the files, and they."""
        back: defaultdict[str, set[str]] = defaultdict(set)
        for source, targets in self.edges.items():
            for target in targets:
                back[target].add(source)
        return _closure(back, files)

    def including(self, files: Iterable[str]) -> set[str]:
        """The listed headers that include one of the files, or are one."""
        found = self.above(files)
        return {header for header, paths in self.listed.items() if not found.isdisjoint(paths)}


def includes(tree: TorchTree, changed: Changed, catalogue: Catalogue) -> Includes:
    """Follow the listed headers through the tree."""
    roots = [folder.relative_to(tree.root).as_posix() for folder in tree.include]
    listed = {header: [f"{root}/{header}" for root in roots] for header in catalogue.headers}
    inside = [f.relative_to(tree.root) for f in include_folders(tree) if tree.root in f.parents]
    searched = [folder.as_posix() for folder in inside]
    top = f"{tree.root}/"  # Path is slow, and there are 200,000 places to look at
    there = {entry for folder in inside for entry in _files(top, folder.as_posix())}
    edges: dict[str, set[str]] = {}
    pending = [path for paths in listed.values() for path in paths]
    while pending:
        path = pending.pop()
        if path in edges or not (path in there or path in changed):
            continue
        before = _before(Path(top + path)) if path in there else None
        texts = [text for text in (before, changed.get(path)) if text]
        if texts or path in changed:
            folders = (*searched, path.rpartition("/")[0])
            edges[path] = {
                _normal(f"{folder}/{name.decode('utf-8', 'replace')}")
                for text in texts
                for name in _INCLUDE.findall(text)
                for folder in folders
            }
            pending += edges[path]
    return Includes(listed, edges)


def _files(top: str, directory: str) -> Iterator[str]:
    """All files below a directory, by their paths from `top`."""
    for parent, _, names in os.walk(top + directory, followlinks=True):
        below = parent.removeprefix(top)
        yield from (f"{below}/{name}" for name in names)


def rearranged(tree: TorchTree, changed: Changed) -> set[str]:
    """The changed files that now include something else, or under other conditions."""
    return {
        path
        for path, after in changed.items()
        if _DIRECTIVE.findall(_before(tree.root / path) or b"") != _DIRECTIVE.findall(after or b"")
    }


def asks(tree: TorchTree, changed: Changed, profiles: Iterable[Profile]) -> bool:
    """Whether a changed file names what one of the profiles defines, before or after."""
    names = [name.encode() for profile in profiles for name in profile.defines]
    texts = [text for path, after in changed.items() for text in (_before(tree.root / path), after)]
    return any(name in text for text in texts if text for name in names)


def domains(path: str, graph: Includes) -> set[Domain]:
    """The domains that read this file of the tree; none for most files."""
    read_by = set(_HEADERS) if path in graph.edges else set()
    if path.startswith("torch/") and path.endswith(layout.PYTHON):
        read_by |= _PYTHON
    if path == LAZY_INIT_HEADER:
        read_by.add(Domain.DEVICE_MODULE)
    if path.startswith(_OPERATORS):
        read_by.add(Domain.OPERATOR)
    return read_by


def _closure(edges: Mapping[str, Collection[str]], starts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    pending = list(starts)
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += edges.get(path, ())
    return found


def _before(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):  # a standard header, or nonsense
        return None


def _normal(path: str) -> str:
    if "/." not in path and "//" not in path:
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)
