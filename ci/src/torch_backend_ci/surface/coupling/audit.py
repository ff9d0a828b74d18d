# SPDX-License-Identifier: BSD-3-Clause
"""The audit of a whole tree."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from torch_backend_ci.surface.coupling import cmake, cpp, python
from torch_backend_ci.surface.coupling.files import Problem, Tree, open_tree, walk
from torch_backend_ci.surface.coupling.names import other_vendors, whole_file
from torch_backend_ci.surface.coupling.rules import Hit, Rules

PROCESSES = 2
CHUNK = 200  # files a process is handed at once; a tree of one chunk is not worth a process


@dataclass(frozen=True)
class Audit:
    """What was found in one torch; everything sorted by file and line."""

    tree: Tree
    vendor: str
    files: tuple[str, ...]  # every file that has a reader and is not another vendor's
    hits: tuple[Hit, ...]
    problems: tuple[Problem, ...]


class _Read(NamedTuple):
    """What a process sends back."""

    hits: list[Hit]
    problems: list[Problem]


def audit(
    where: Path, rules: Rules, progress: Callable[[int, int], None] = lambda done, total: None
) -> Audit:
    """Audit the torch in a directory. `progress` gets the number of files done and of all files."""
    tree = open_tree(where, rules)
    problems: list[Problem] = []
    files = sorted(f for f in walk(tree, rules, problems) if not other_vendors(f[0], rules))
    whole = {name: hit for name, _ in files if (hit := whole_file(name, rules))}
    generic = [(name, path) for name, path in files if name not in whole]
    hits = list(whole.values())
    done = 0
    for part in _read_all(generic, rules):
        hits += part.hits
        problems += part.problems
        progress(done := min(done + CHUNK, len(generic)), len(generic))
    return Audit(
        tree=tree,
        vendor=rules.vendor.key,
        files=tuple(name for name, _ in files),
        hits=tuple(sorted(hits, key=lambda h: (h.file, h.line, h.rule, h.symbol))),
        problems=tuple(sorted(problems, key=lambda p: p.file)),
    )


def _read_all(files: list[tuple[str, Path]], rules: Rules) -> Iterator[_Read]:
    chunks = list(_chunks(files))
    work = functools.partial(_read_chunk, rules)
    if len(chunks) < PROCESSES:
        yield from map(work, chunks)
        return
    with ProcessPoolExecutor(PROCESSES) as pool:
        yield from pool.map(work, chunks)


def _chunks(files: Iterable[tuple[str, Path]]) -> Iterator[list[tuple[str, Path]]]:
    rest = iter(files)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def _read_chunk(rules: Rules, files: list[tuple[str, Path]]) -> _Read:
    read = _Read([], [])
    for name, path in files:
        try:
            if (size := path.stat().st_size) > rules.max_bytes:
                read.problems.append(Problem(name, f"not read: {size} bytes"))
                continue
            content = path.read_bytes()
        except OSError as error:
            read.problems.append(Problem(name, f"cannot be read: {error.strerror}"))
            continue
        if rules.vendor.occurs(content):
            _read_file(name, content, rules, read)
    return read


def _read_file(name: str, content: bytes, rules: Rules, read: _Read) -> None:
    if rules.kind(name) == "python":
        try:
            read.hits.extend(python.hits(name, content, rules))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            read.problems.append(Problem(name, f"cannot be read as Python: {error}"))
        return
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode(errors="replace")
        read.problems.append(Problem(name, "is not UTF-8; read with the odd bytes replaced"))
    reader = cmake if rules.kind(name) == "cmake" else cpp
    read.hits.extend(reader.hits(name, text, rules))
