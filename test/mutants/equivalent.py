# SPDX-License-Identifier: BSD-3-Clause
"""Whether a mutant is no defect: the compiler makes the same code of it, or a person said why."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import yaml
from msgspec.structs import replace
from mutants.rules import BEFORE, SKIPPED, Mutant
from mutants.tree import ROOT, SWITCHES, Tree
from mutants.verdicts import Verdict

BY_HAND: dict[str, str] = {
    entry["mutant"]: entry["reason"]
    for entry in yaml.load(
        (Path(__file__).parent / "equivalent.yaml").read_text(), yaml.CSafeLoader
    )
    or ()
}
SAME_CODE = "the compiler makes the same code of it"


def compare(mutants: Iterable[Mutant], tree: Tree, processes: int) -> Iterator[str]:
    """What `equivalent` says of each, in their order."""
    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(partial(equivalent, tree=tree), mutants)


def equivalent(mutant: Mutant, tree: Tree) -> str:
    """The reason, or nothing. Compiles what includes the file, until there is a difference.

    Lines keep their numbers, which are part of the code where a check names its line.
    """
    if reason := BY_HAND.get(str(mutant)):
        return reason
    if mutant.file.endswith(".py"):
        return ""
    with _copied_sources() as copy:
        file = copy / mutant.file
        file.write_bytes(mutated(file.read_bytes(), mutant))
        units = list(_units(mutant, tree))
        same = all(_code(unit, copy, tree) == _kept_code(unit, tree) for unit in units)
    return SAME_CODE if units and same else ""


@contextmanager
def _copied_sources() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "csrc", Path(scratch) / "csrc")
        yield Path(scratch)


def judged_again(
    mutants: Mapping[int, Mutant], verdicts: Mapping[int, Verdict]
) -> dict[int, Verdict]:
    """The verdicts, with what persons have found out about survivors since they were given."""
    return {
        number: replace(one, equivalent=one.equivalent or BY_HAND.get(str(mutants[number]), ""))
        for number, one in verdicts.items()
    }


def mutated(data: bytes, mutant: Mutant) -> bytes:
    """The source with the mutant in the place of the original, on as many lines."""
    instead = mutant.instead.replace("@", "false")
    if mutant.form == SKIPPED:
        instead = instead or ";"
    elif mutant.form == BEFORE:
        instead = f"{{ {instead} {mutant.original} }}"
    else:
        instead = f"({instead})"
    lost = mutant.original.count("\n") - instead.count("\n")
    return data[: mutant.start] + (instead + "\n" * lost).encode() + data[mutant.end :]


class _Unit(NamedTuple):
    """One compilation: what a source is compiled with."""

    command: list[str]
    source: Path


def _units(mutant: Mutant, tree: Tree) -> Iterator[_Unit]:
    """The compilations of a source, alone; of a header, all that include it."""
    commands = json.loads((tree.build / "compile_commands.json").read_text())
    listed = [(shlex.split(entry["command"]), Path(entry["file"])) for entry in commands]
    by_object = {command[command.index("-o") + 1]: (command, file) for command, file in listed}
    changed = tree.source / mutant.file
    said = subprocess.run(
        ["ninja", "-C", str(tree.build), "-t", "deps"], capture_output=True, text=True, check=True
    )
    for target in including(changed.resolve(), said.stdout, tree.build):
        if target in by_object:
            command, file = by_object[target]
            yield _Unit(command, changed if changed.suffix == ".cpp" else file)


def including(file: Path, said: str, build: Path) -> Iterator[str]:
    """The objects that depend on a file, says `ninja -t deps`; its paths may be relative."""
    for block in said.split("\n\n"):
        target, _, files = block.partition(":")
        namesakes = (build / name for name in files.split() if name.endswith(file.name))
        if any(path.resolve() == file for path in namesakes):
            yield target


def _kept_code(unit: _Unit, tree: Tree) -> str:
    """`_code` without any mutant, compiled once in a run."""
    key = hashlib.sha256(repr(unit).encode()).hexdigest()
    kept = tree.build / "original_code" / key
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        with _copied_sources() as original:
            written = kept.with_suffix(f".{original.name}")  # others may compile the same
            written.write_text(_code(unit, original, tree))
        written.replace(kept)
    return kept.read_text()


def _code(unit: _Unit, copy: Path, tree: Tree) -> str:
    """A digest of the assembly of a unit with the sources of the copy."""

    def copied(text: str) -> str:
        return text.replace(str(tree.source), str(copy))

    source = copy / "unit.cpp"
    made = unit.source.is_relative_to(tree.build)  # several sources as one, or a generated one
    source.write_text(copied(unit.source.read_text() if made else f'#include "{unit.source}"'))
    flags = [copied(word) for word in unit.command[: unit.command.index("-o")]]
    # The switches of the mutants, of which there are none here.
    at = flags.index(str(SWITCHES))
    del flags[at - 1 : at + 1]
    words = [*flags, "-S", "-g0", "-o", "-", "-x", "c++", str(source)]
    done = subprocess.run(words, cwd=tree.build, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"{copy}: {done.stderr}"  # differs from everything
    return hashlib.sha256(done.stdout.replace(str(copy), "").encode()).hexdigest()
