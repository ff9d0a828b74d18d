# SPDX-License-Identifier: BSD-3-Clause
"""Mutations of a torch: an edit, and exactly what the surface instrument must say about it.

test/ci/surface/mutations/*.yaml is a list of mutations each; an entry is

    title      what is done
    source     the PR it replays, if it replays one
    restores   true: the edit gives the torch before the change (2.13.0 already has the change)
    headers    changes what a header as a whole is: judged by itself, reading only these headers,
               and whether they can be included alone
    edits      of files of the torch tree, one of
                 {in: FILE, replace: TEXT, by: TEXT, times: 1}   TEXT is there exactly that often
                 {add: FILE, text: TEXT}   {delete: FILE}   {move: FILE, to: FILE}
    findings   "rule severity surface name", all that the diff may say, and nothing else
    surfaces   of the labels that the edit earns
    impact     of the label that the edit earns
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parent / "mutations"

# Where a directory of the torch tree stands in PyTorch's repository; the first that fits.
REPOSITORY = (
    ("torch/include/ATen/", "aten/src/ATen/"),
    ("torch/include/", ""),
    ("torchgen/packaged/ATen/", "aten/src/ATen/"),
)


Edit = Mapping[str, Any]


@dataclass(frozen=True)
class Mutation:
    title: str
    edits: tuple[Edit, ...]
    findings: frozenset[str]
    surfaces: frozenset[str]
    impact: str
    source: str | None = None
    restores: bool = False
    headers: tuple[str, ...] = ()
    file: str = ""  # of the data

    @property
    def alone(self) -> bool:
        """Whether it must not be judged together with others."""
        return bool(self.headers)

    @property
    def files(self) -> frozenset[str]:
        """Files of the torch tree that the edits read or write."""
        keys = ("in", "add", "delete", "move", "to")
        return frozenset(edit[key] for edit in self.edits for key in keys if key in edit)

    @property
    def names(self) -> frozenset[str]:
        """Names of the declarations that findings are expected for."""
        return frozenset(finding.split(maxsplit=3)[3] for finding in self.findings)


@dataclass
class Texts:
    """The files of a torch tree as they are after some edits; None: no longer there."""

    root: Path
    changed: dict[str, str | None] = field(default_factory=dict)

    def read(self, file: str) -> str:
        text = self.changed[file] if file in self.changed else (self.root / file).read_text()
        assert text is not None, f"{file} was deleted"
        return text

    def apply(self, edit: Edit) -> None:
        if "in" in edit:
            text, old = self.read(edit["in"]), edit["replace"]
            found, wanted = text.count(old), edit.get("times", 1)
            assert found == wanted, f"{edit['in']}: {old!r} is there {found} times, not {wanted}"
            self.changed[edit["in"]] = text.replace(old, edit["by"])
        elif "add" in edit:
            assert not (self.root / edit["add"]).exists(), f"{edit['add']} is there already"
            self.changed[edit["add"]] = edit["text"]
        elif "delete" in edit:
            self.read(edit["delete"])
            self.changed[edit["delete"]] = None
        else:
            self.changed[edit["to"]] = self.read(edit["move"])
            self.changed[edit["move"]] = None


def load(data: Path = DATA) -> list[Mutation]:
    """All mutations, in the order of the files."""
    return [
        _mutation(entry, file.name)
        for file in sorted(data.glob("*.yaml"))
        for entry in yaml.load(file.read_text(), yaml.CSafeLoader)
    ]


def _mutation(entry: dict[str, Any], file: str) -> Mutation:
    entry = dict(entry)
    findings = entry.pop("findings", [])
    assert all(len(line.split(maxsplit=3)) == 4 for line in findings), findings
    return Mutation(
        title=entry.pop("title"),
        edits=tuple(entry.pop("edits")),
        findings=frozenset(findings),
        surfaces=frozenset(entry.pop("surfaces", [])),
        impact=entry.pop("impact", "none"),
        headers=tuple(entry.pop("headers", [])),
        file=file,
        **entry,
    )


def edited(root: Path, edits: Iterable[Edit]) -> Texts:
    """The files of `root` after the edits."""
    texts = Texts(root)
    for edit in edits:
        texts.apply(edit)
    return texts


class Mirror:
    """A copy of what is read of a torch tree, made of links, into which edits are written."""

    FOLDERS = ("torch", "torchgen")
    SUFFIXES = (".h", ".hpp", ".py", ".pyi", ".yaml", ".cuh", ".inc")

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.root = source, target
        for folder in self.FOLDERS:
            for parent, _, names in os.walk(source / folder):
                below = target / Path(parent).relative_to(source)
                below.mkdir(parents=True, exist_ok=True)
                for name in names:
                    if name.endswith(self.SUFFIXES):
                        (below / name).symlink_to(Path(parent, name))

    @contextlib.contextmanager
    def edited(self, edits: Iterable[Edit]) -> Iterator[Path]:
        """The root of the tree, with the edits for as long as the context lasts."""
        changed = edited(self.source, edits).changed
        try:
            for file, text in changed.items():
                self._write(self.root / file, text)
            yield self.root
        finally:
            for file in changed:
                (self.root / file).unlink(missing_ok=True)
                if (self.source / file).exists():
                    (self.root / file).symlink_to(self.source / file)

    def _write(self, path: Path, text: str | None) -> None:
        path.unlink(missing_ok=True)
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def batches(
    root: Path, mutations: Iterable[Mutation], classes: frozenset[str]
) -> list[tuple[Mutation, ...]]:
    """The mutations in as few groups as come easily, no two of a group about the same thing.

    `classes` are the names of all classes and enumerations: what two members of one class show
    (its layout, its virtual functions) may depend on both.
    """
    groups: list[tuple[Mutation, ...]] = []
    for mutation in mutations:
        for i, group in enumerate(groups):
            if independent(root, group, mutation, classes):
                groups[i] = (*group, mutation)
                break
        else:
            groups.append((mutation,))
    return groups


def independent(
    root: Path, group: tuple[Mutation, ...], mutation: Mutation, classes: frozenset[str]
) -> bool:
    """Whether no other of the group is about the same class, operator or function, or same text."""
    alike = all(
        not (one.alone or mutation.alone)
        and one.restores == mutation.restores
        and owners(one, classes).isdisjoint(owners(mutation, classes))
        for one in group
    )
    if not alike:
        return False
    try:
        edited(root, (edit for one in (*group, mutation) for edit in one.edits))
    except AssertionError:
        return False
    return True


def owners(mutation: Mutation, classes: frozenset[str]) -> set[str]:
    """What a mutation is about."""
    return {owner(name, classes) for name in mutation.names}


def owner(name: str, classes: frozenset[str]) -> str:
    """The outermost class that a name belongs to; itself if it is in none."""
    parts = re.split(r"(::|\.)", name)
    scopes = ("".join(parts[: i + 1]) for i in range(0, len(parts), 2))
    return next((scope for scope in scopes if scope in classes), name)


def in_repository(file: str) -> str:
    """Where a file of the torch tree stands in PyTorch's repository."""
    for here, there in REPOSITORY:
        if file.startswith(here):
            return there + file.removeprefix(here)
    return file


def patch_of(root: Path, edits: Iterable[Edit]) -> str:
    """The edits as `git diff` of PyTorch's repository shows them."""
    texts = edited(root, edits)
    return "".join(
        _file_patch(in_repository(file), _unwrapped(root / file), text)
        for file, text in sorted(texts.changed.items())
    )


def _file_patch(file: str, before: str | None, after: str | None) -> str:
    after = after if after is None else _unwrap(after)
    head = [f"diff --git a/{file} b/{file}\n"]
    if before is None:
        head.append("new file mode 100644\n")
    if after is None:
        head.append("deleted file mode 100644\n")
    return "".join(
        head
        + list(
            difflib.unified_diff(
                (before or "").splitlines(keepends=True),
                (after or "").splitlines(keepends=True),
                "/dev/null" if before is None else f"a/{file}",
                "/dev/null" if after is None else f"b/{file}",
            )
        )
    )


def _unwrapped(path: Path) -> str | None:
    return _unwrap(path.read_text()) if path.exists() else None


def _unwrap(text: str) -> str:
    """A header as it is in the repository: wheels wrap most in a guard of their own."""
    lines = text.splitlines(keepends=True)
    wrapped = lines and lines[0].startswith("#if !defined(TORCH_STABLE_ONLY)")
    return "".join(lines[1:-4] if wrapped else lines)
