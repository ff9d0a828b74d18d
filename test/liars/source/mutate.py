# SPDX-License-Identifier: BSD-3-Clause
"""Writes the lies of *.yaml into copies of the sources they are about.

    mutate.py --list         the sources that lies are about, one on each line; verifies every lie
    mutate.py SOURCE COPY    a copy of one C++ source with every lie about it
    --folder FOLDER          the directory of *.yaml, if not this one

A lie is told by a process whose environment says PUONE_LIE=<id>; the others run the original.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDERS = (
    "csrc/aten/",
    "csrc/autocast/",
    "csrc/bindings/",
    "csrc/distributed/",
    "csrc/drivers/cuda/",
    "csrc/drivers/sim/",
    "csrc/graph/",
    "csrc/profiler/",
    "csrc/runtime/",
)
PACKAGE = "reference_backend/torch_puone/"
REQUIRED = {"lie", "file", "find", "say", "requirements"}
OPTIONAL = {"checks", "cannot_load"}


#: A type and a name, at the beginning of a line.
_DECLARATION = re.compile(
    r"(?:const\s+)?(?!(?:return|throw|delete|goto|else|using|case)\b)"
    r"[A-Za-z_][\w:]*(?:<[^;{}]*>)?[&*]?\s+[*&]?\w+\s*[({=;\[]"
)


class LieError(Exception):
    """A lie that cannot be told; the text names its file and line."""


@dataclass(frozen=True)
class Mutation:
    """One place of one source, and what stands there when the lie is told."""

    id: str
    lie: str
    file: str
    find: str
    say: str
    requirements: tuple[str, ...]
    checks: tuple[str, ...]
    cannot_load: str | None
    where: str

    @property
    def in_python(self) -> bool:
        """Whether it is about a module of the Python package, which is replaced as it is."""
        return self.file.endswith(".py")

    @property
    def layer(self) -> str:
        """The part of the backend it is about."""
        return "python" if self.in_python else Path(self.file).parent.name

    def spot(self, text: str) -> tuple[int, int]:
        """Where it is in its source."""
        count = text.count(self.find)
        if count != 1:
            raise LieError(f"{self.where}: 'find' of {self.id} occurs {count} times in {self.file}")
        begin = text.index(self.find)
        end = begin + len(self.find)
        if not self.in_python and self._declares() and not text[end:].lstrip().startswith("}"):
            raise LieError(
                f"{self.where}: 'find' of {self.id} has a declaration, which ends with the braces "
                "that are put around it: take the rest of its block, too"
            )
        return begin, end

    def _declares(self) -> bool:
        """Whether it is statements of which one is a declaration, such as that of a lock."""
        if not self.find.endswith((";", "}")):
            return False
        first, *others = (line for line in self.find.split("\n") if line.strip())
        margin = min(map(_indentation, others), default=0)
        outer = [first.lstrip(), *(line[margin:] for line in others)]
        return any(map(_DECLARATION.match, outer))

    def told_or(self, truth: str) -> str:
        """What stands in the place of `truth`: this, where the lie is told."""
        if self.in_python:
            return self.say
        told = f'puone_lies("{self.id}")'
        if self.find.endswith((";", "}")):
            return f"if ({told}) {{ {self.say} }} else {{ {truth} }}"
        return f"({told} ? ({self.say}) : ({truth}))"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def load(folder: Path = HERE) -> dict[str, Mutation]:
    """Every lie of the directory by id; raises LieError."""
    found: dict[str, Mutation] = {}
    for file in sorted(folder.glob("*.yaml")):
        for mutation in _read(file):
            if mutation.id in found:
                other = found[mutation.id].where
                raise LieError(f"{mutation.where}: {mutation.id} is there already: {other}")
            found[mutation.id] = mutation
    return found


def _read(file: Path) -> Iterable[Mutation]:
    try:
        node = yaml.compose(file.read_text(), Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise LieError(f"{file}: {error}") from None
    if not isinstance(node, yaml.MappingNode):
        raise LieError(f"{file}:1: expected a map of lies")
    for key, value in node.value:
        where = f"{file}:{key.start_mark.line + 1}"
        yield _build(key.value, yaml.SafeLoader("").construct_document(value), where)


def _build(id: str, fields: Any, where: str) -> Mutation:
    wrong = (REQUIRED - set(fields)) | (set(fields) - REQUIRED - OPTIONAL)
    if wrong:
        raise LieError(f"{where}: {id} lacks, or has but should not: {', '.join(sorted(wrong))}")
    if not id.isidentifier():
        raise LieError(f"{where}: {id!r} is not a word")
    in_python = fields["file"].startswith(PACKAGE) and fields["file"].endswith(".py")
    in_cpp = fields["file"].startswith(FOLDERS) and fields["file"].endswith(".cpp")
    if not (in_python or in_cpp) or not (ROOT / fields["file"]).is_file():
        raise LieError(f"{where}: {fields['file']} is no source in {', '.join(FOLDERS)} {PACKAGE}")
    return Mutation(
        id,
        fields["lie"].strip(),
        fields["file"],
        fields["find"],
        fields["say"],
        tuple(fields["requirements"]),
        tuple(fields.get("checks", ())),
        fields.get("cannot_load"),
        where,
    )


def mutated(text: str, mutations: Iterable[Mutation]) -> str:
    """The text with these lies in it, several in one place if need be; raises LieError where they
    overlap."""
    spots: dict[tuple[int, int], list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        spots[mutation.spot(text)].append(mutation)
    for ((_, end), first), ((begin, _), second) in pairwise(sorted(spots.items(), key=_place)):
        if begin < end:
            raise LieError(
                f"{second[0].where}: {second[0].id} overlaps {first[0].id} of {first[0].where}"
            )
    for (begin, end), group in sorted(spots.items(), key=_place, reverse=True):
        told = text[begin:end]
        for mutation in group:
            told = mutation.told_or(told)
        text = text[:begin] + told + text[end:]
    return text


def _place(spot: tuple[tuple[int, int], list[Mutation]]) -> tuple[int, int]:
    return spot[0]


def by_file(mutations: Iterable[Mutation]) -> dict[str, list[Mutation]]:
    """The lies about each source."""
    grouped: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        grouped[mutation.file].append(mutation)
    return dict(grouped)


def verify(mutations: Iterable[Mutation]) -> None:
    """Raise LieError unless every lie fits into its source."""
    for file, group in by_file(mutations).items():
        text = (ROOT / file).read_text()
        if file.endswith(".py"):
            for mutation in group:
                mutation.spot(text)
        else:
            mutated(text, group)


def main(arguments: list[str]) -> int:
    """The command line; see above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("source", nargs="?")
    parser.add_argument("copy", nargs="?", type=Path)
    options = parser.parse_args(arguments)
    try:
        mutations = load(options.folder)
        groups = by_file(mutations.values())
        if options.list:
            verify(mutations.values())
            print("\n".join(sorted(file for file in groups if file.endswith(".cpp"))))
        else:
            text = mutated((ROOT / options.source).read_text(), groups[options.source])
            _write(options.copy, f'#include "puone_lies.h"\n{text}')
    except LieError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _write(file: Path, text: str) -> None:
    if not file.exists() or file.read_text() != text:  # What did not change is not compiled again.
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
