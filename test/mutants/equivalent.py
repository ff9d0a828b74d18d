# SPDX-License-Identifier: BSD-3-Clause
"""Whether a mutant is no defect: the compiler makes the same code of it, or a person said why."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from mutants.rules import SKIPPED, Mutant
from mutants.tree import ROOT, Tree

BY_HAND: dict[str, str] = {
    entry["mutant"]: entry["reason"]
    for entry in yaml.safe_load((Path(__file__).parent / "equivalent.yaml").read_text()) or ()
}
SAME_CODE = "the compiler makes the same code of it"


def equivalent(mutant: Mutant, tree: Tree) -> str:
    """The reason, or nothing. Compiles what includes the file, twice, until there is a difference.

    Lines keep their numbers, which are part of the code where a check names its line.
    """
    if reason := BY_HAND.get(str(mutant)):
        return reason
    if mutant.file.endswith(".py") or "@" in mutant.instead:
        return ""
    with tempfile.TemporaryDirectory() as scratch:
        for copy in (Path(scratch) / "a", Path(scratch) / "b"):
            (copy / mutant.file).parent.mkdir(parents=True)
        original = (ROOT / mutant.file).read_bytes()
        (Path(scratch) / "a" / mutant.file).write_bytes(original)
        (Path(scratch) / "b" / mutant.file).write_bytes(_mutated(original, mutant))
        units = list(_units(mutant, tree))
        for command, unit in units:
            if len({_code(command, unit, Path(scratch) / copy, tree) for copy in "ab"}) > 1:
                return ""
    return SAME_CODE if units else ""


def _mutated(data: bytes, mutant: Mutant) -> bytes:
    instead = ";" if mutant.form == SKIPPED and not mutant.instead else mutant.instead
    if mutant.form == "before":
        instead = f"{{ {instead} {mutant.original} }}"
    elif mutant.form == "expression":
        instead = f"({instead})"
    lost = mutant.original.count("\n") - instead.count("\n")
    return data[: mutant.start] + (instead + "\n" * lost).encode() + data[mutant.end :]


def _units(mutant: Mutant, tree: Tree) -> Iterator[tuple[list[str], str]]:
    """The compilations of a file, or of those that include it: command and source."""
    commands = json.loads((tree.build / "compile_commands.json").read_text())
    wanted = {_object(entry["command"]): entry for entry in commands}
    copy = str(tree.source / mutant.file)
    said = subprocess.run(
        ["ninja", "-C", str(tree.build), "-t", "deps"], capture_output=True, text=True, check=True
    )
    for block in said.stdout.split("\n\n"):
        target, _, files = block.partition(":")
        if copy in files and target in wanted:
            entry = wanted[target]
            yield shlex.split(entry["command"]), entry["file"]


def _object(command: str) -> str:
    return shlex.split(command)[shlex.split(command).index("-o") + 1]


def _code(command: list[str], unit: str, copy: Path, tree: Tree) -> str:
    """The assembly of a unit, with the file of the copy in the place of the original."""
    source = Path(unit)
    text = source.read_text() if "unity_" in source.name else f'#include "{unit}"\n'
    folder = str(tree.source)
    text = re.sub(re.escape(folder) + r"/([^\"]*)", lambda found: _place(found[1], copy), text)
    made = copy / "unit.cpp"
    made.write_text(text)
    kept = [word.replace(folder, str(ROOT)) for word in command[: command.index("-o")]]
    kept = [word for word in kept if not word.endswith("mutants.h") and word != "-include"]
    plain = [word for word in kept if "cmake_pch" not in word]
    words = [*plain, f"-I{copy / 'csrc'}", "-S", "-g0", "-o", "-", "-x", "c++", str(made)]
    include = words.index(plain[1])
    words.insert(include, f"-I{copy / 'csrc'}")
    done = subprocess.run(words, cwd=tree.build, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"{copy}: {done.stderr}"  # differs from everything
    return done.stdout.replace(str(copy), "")


def _place(name: str, copy: Path) -> str:
    own = copy / name
    return str(own if own.is_file() else ROOT / name)
