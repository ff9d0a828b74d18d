# SPDX-License-Identifier: BSD-3-Clause
"""How many changed instructions the tests of `make ptx` notice.

python test/ptx/ptx_mutants.py [--seed N] [--count N] [--family NAME] [--coverage build/ptx]

One instruction is changed at a time, anywhere in the kernels, such that the module is still
understood. The known answers of the kernels of that source, their far addresses, and the same
launches with other values beside sim should notice it. Of a change that they do not notice, still
other values of the same launches decide whether it changes any result: one that does not is not
counted, and another takes its place. What `make ptx` executed, in the directory of --coverage,
spares the tests that never come to the instruction; modules that are not in it are tested whole.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from ptx_coverage import instructions, read
from ptx_executor import DeviceCodeError, Module
from ptx_kernels import ExactLaunch, families, in_child, wrong_answers
from ptx_redrawn import COMPARABLE, SEEDS, Redrawn, unlike_sim
from test_far_addresses import LEFT_OUT, FarLaunch, far_cases

from hal_conformance import contract
from hal_conformance.answers import Case
from hal_conformance.known_answers import known_answers

#: Instructions of a grid of which those of the known answers have a tenth.
LIMIT = 300_000_000
SECONDS = 900
#: Of the values that decide whether a change that nobody noticed changes any result.
OTHER_SEEDS = (1000, 1001, 1002)

NAMES = [
    (r"add\.(cc\.)?([suf]\d+)", r"sub.\1\2"),
    (r"add\.rn\.(f\d+)", r"sub.rn.\1"),
    (r"sub\.(cc\.)?([suf]\d+)", r"add.\1\2"),
    (r"mul\.lo\.(\w+)", r"add.\1"),
    (r"mul\.(f\d+)", r"add.\1"),
    (r"mul\.wide\.s(\d+)", r"mul.wide.u\1"),
    (r"mul\.wide\.u(\d+)", r"mul.wide.s\1"),
    (r"min\.(\w+)", r"max.\1"),
    (r"max\.(\w+)", r"min.\1"),
    (r"and\.(\w+)", r"or.\1"),
    (r"or\.(\w+)", r"and.\1"),
    (r"xor\.(\w+)", r"or.\1"),
    (r"not\.(\w+)", r"mov.\1"),
    (r"(?:neg|abs)\.(\w+)", r"mov.\1"),
    (r"shl\.b(\d+)", r"shr.u\1"),
    (r"shr\.[us](\d+)", r"shl.b\1"),
    (r"shr\.u(\d+)", r"shr.s\1"),
    (r"shr\.s(\d+)", r"shr.u\1"),
    (r"setp\.lt\.(\w+)", r"setp.le.\1"),
    (r"setp\.le\.(\w+)", r"setp.lt.\1"),
    (r"setp\.gt\.(\w+)", r"setp.ge.\1"),
    (r"setp\.ge\.(\w+)", r"setp.gt.\1"),
    (r"setp\.eq\.([sub]\w+)", r"setp.ne.\1"),
    (r"setp\.ne\.([sub]\w+)", r"setp.eq.\1"),
    (r"setp\.eq\.(f\d+)", r"setp.neu.\1"),
    (r"setp\.neu\.(f\d+)", r"setp.eq.\1"),
    (r"setp\.nan\.(\w+)", r"setp.num.\1"),
    (r"setp\.num\.(\w+)", r"setp.nan.\1"),
    (r"setp\.(lt|gt|le|ge)u\.(\w+)", r"setp.\1.\2"),
    (r"cvt\.rni\.(\S+)", r"cvt.rzi.\1"),
    (r"cvt\.r[zmp]i\.(\S+)", r"cvt.rni.\1"),
    (r"cvt\.s(\d+)\.s(\d+)", r"cvt.u\1.u\2"),
    (r"cvt\.u(\d+)\.u(\d+)", r"cvt.s\1.s\2"),
    (r"div\.(\w+)", r"rem.\1"),
    (r"rem\.(\w+)", r"div.\1"),
    (r"div\.rn\.(\w+)", r"mul.rn.\1"),
    (r"rcp\.rn\.(\w+)", r"neg.\1"),
    (r"sqrt\.rn\.(\w+)", r"neg.\1"),
    (r"copysign\.f32", r"max.f32"),
    (r"copysign\.f64", r"max.f64"),
    (r"shfl\.sync\.bfly(\S+)", r"shfl.sync.down\1"),
    (r"shfl\.sync\.up(\S+)", r"shfl.sync.down\1"),
    (r"bar\.sync \d+;", r""),
    (r"ld\.(\w+)\.s(8|16|32)", r"ld.\1.u\2"),
]


def variants(line: str) -> Iterator[str]:
    """The line with another name, other operands, or another number."""
    if line.lstrip().startswith("."):
        return
    guard = re.match(r"\s*@(!?)%", line)
    if guard:
        yield line.replace("@!%", "@%", 1) if guard[1] else line.replace("@%", "@!%", 1)
    for pattern, replacement in NAMES:
        changed, found = re.subn(rf"(?<![\w.]){pattern}(?![\w.])", replacement, line, count=1)
        if found:
            yield changed
    match = re.match(r"(\s*(?:sub|div|rem|selp|shl|shr|fma|mad|copysign)\S*\s+\S+), (.*);", line)
    if match:
        operands = match[2].split(", ")
        for i, j in ((0, 1), (1, 2)):
            if j < len(operands) and operands[i] != operands[j]:
                swapped = list(operands)
                swapped[i], swapped[j] = operands[j], operands[i]
                yield f"{match[1]}, {', '.join(swapped)};"
    for number in re.finditer(r"(?<=[ +,])(-?\d+)(?=[,;\]}])", line):
        if "bar.sync" not in line and "[" not in line[: number.start()]:
            yield line[: number.start()] + str(int(number[0]) + 1) + line[number.end() :]
    for number in re.finditer(r"\+(-?\d+)\]", line):
        yield f"{line[: number.start()]}+{int(number[1]) + 4}]{line[number.end() :]}"
    for number in re.finditer(r"0([fd])([0-9A-F]+)", line):
        digits = f"{int(number[2][0], 16) ^ 8:X}{number[2][1:]}"  # another sign
        yield f"{line[: number.start()]}0{number[1]}{digits}{line[number.end() :]}"


@dataclass(frozen=True)
class Mutant:
    """A line of a module of a family of kernels, and what stands there instead."""

    family: str
    module: str
    line: int
    before: str
    after: str

    @property
    def change(self) -> str:
        return f"{self.module} {self.line} {self.after or '//'}"

    def __str__(self) -> str:
        return f"{self.family}, line {self.line}: {self.before.strip()} -> {self.after.strip()}"


def modules() -> dict[str, tuple[str, str]]:
    """By name of a module: the family of kernels that it was compiled from, and its text."""
    found: dict[str, tuple[str, str]] = {}
    for family, kernels in families():
        with tempfile.TemporaryDirectory() as directory:
            in_child(partial(_launch_one, kernels, directory))
            for path in Path(directory).glob("*.ptx"):
                found.setdefault(path.stem, (family, path.read_text()))
    return found


def _launch_one(kernels: list[str], directory: str) -> None:
    os.environ["PUONE_PTX_COVERAGE"] = directory
    for name in kernels[:2]:
        wrong_answers(islice(known_answers(name), 5))


def is_understood(text: str, mutant: Mutant) -> bool:
    """Whether the kernel with the line, or a kernel that calls its function, can be decoded."""
    lines = text.split("\n")
    lines[mutant.line - 1] = mutant.after
    begins = [
        i for i, line in enumerate(lines) if re.match(r"\.(visible |weak )?\.?(entry|func)", line)
    ]
    start = max((i for i in begins if i < mutant.line), default=None)
    if start is None:
        return False
    try:
        module = Module("\n".join(lines))
        entry = re.search(r"\.entry (\w+)", lines[start])
        if entry:
            module.parameter_bytes(entry[1])
    except DeviceCodeError:
        return False
    return True


def mutants(texts: dict[str, tuple[str, str]], draw: random.Random) -> Iterator[Mutant]:
    """At random, for ever."""
    places = [(id, line) for id, (_, text) in sorted(texts.items()) for line in instructions(text)]
    while True:
        id, number = draw.choice(places)
        family, text = texts[id]
        line = text.split("\n")[number - 1]
        choices = [new for new in variants(line) if new != line]
        if not choices:
            continue
        mutant = Mutant(family, id, number, line, draw.choice(choices))
        if is_understood(text, mutant):
            yield mutant


# ---- who notices ----


def with_change(mutant: Mutant | None, work: Callable[[], Any]) -> Any:
    """What `work` gives over the changed module; None if the process does not come to its end."""

    def run() -> Any:
        os.environ["PUONE_PTX_LIMIT"] = str(LIMIT)
        if mutant is not None:
            os.environ["PUONE_PTX_CHANGE"] = mutant.change
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        return work()

    try:
        return in_child(run, SECONDS)
    except AssertionError:
        return None


def no_cases(kernel: str) -> tuple[Case, ...]:
    """Of no kernel."""
    return ()


def first_wrong(kernels: list[str]) -> str:
    """What the tests say first; nothing if they say nothing."""
    family = contract.kernels()[kernels[0]].family
    far = no_cases if family in LEFT_OUT else far_cases
    for cases, launch in ((known_answers, ExactLaunch), (far, FarLaunch)):
        for name in kernels:
            _, wrong = wrong_answers(cases(name), launch, at_most=1)
            if wrong:
                return wrong[0]
    if family in COMPARABLE:
        for name in kernels:
            _, wrong = unlike_sim(name, SEEDS, at_most=1)
            if wrong:
                return wrong[0]
    return ""


class Hashed(Redrawn):
    """Whose outputs are kept, as hashes."""

    kept: ClassVar[list[str]] = []

    def _judge(self) -> None:
        for block in self._outputs():
            raw = np.ascontiguousarray(self._read(block)).tobytes()
            self.kept.append(hashlib.sha256(raw).hexdigest())


def outputs(kernels: list[str]) -> list[str]:
    """Of the kernels' launches, with values that the tests do not draw."""
    for name in kernels:
        for seed in OTHER_SEEDS:
            Redrawn.seed = seed
            cases = (case for case in known_answers(name) if case.fails is None)
            _, wrong = wrong_answers(cases, Hashed)
            Hashed.kept += [text.split(":")[0] for text in wrong]
    return Hashed.kept


Places = frozenset[tuple[str, int]]


def executed(directory: Path) -> Places:
    """Modules and lines that the processes that left their coverage there came to."""
    return frozenset((id, line) for id, module in read(directory).items() for line in module.counts)


@dataclass(frozen=True)
class Unchanged:
    """What other inputs give over the kernels as they are, and the places that they come to."""

    outputs: list[str] | None
    places: Places

    @staticmethod
    def of(work: Callable[[], Any]) -> Unchanged:
        with tempfile.TemporaryDirectory() as directory:

            def covered() -> Any:
                os.environ["PUONE_PTX_COVERAGE"] = directory
                return work()

            return Unchanged(with_change(None, covered), executed(Path(directory)))


class Trial:
    """Tries one mutant after the other."""

    def __init__(self, kernels: dict[str, list[str]], tested: Places) -> None:
        self.kernels, self.tested = kernels, tested
        self.covered = {module for module, _ in tested}
        self.unchanged: dict[str, Unchanged] = {}
        self.noticed, self.missed, self.equal = 0, 0, 0

    def judge(self, mutant: Mutant) -> str:
        """Count it; a line about it."""
        kernels, place = self.kernels[mutant.family], (mutant.module, mutant.line)
        said: str | None = ""
        if mutant.module not in self.covered or place in self.tested:
            said = with_change(mutant, partial(first_wrong, kernels))
        if said != "":
            self.noticed += 1
            return f"noticed: {mutant}: {(said or 'it did not end')[:100]!r}"
        other = partial(outputs, kernels)
        if mutant.family not in self.unchanged:
            self.unchanged[mutant.family] = Unchanged.of(other)
        unchanged = self.unchanged[mutant.family]
        if place not in unchanged.places:
            self.equal += 1
            return f"not reached: {mutant}"
        if with_change(mutant, other) == unchanged.outputs:
            self.equal += 1
            return f"changes nothing: {mutant}"
        self.missed += 1
        return f"MISSED: {mutant}"

    @property
    def score(self) -> str:
        counted = self.noticed + self.missed
        return f"{self.noticed} of {counted} noticed, {self.equal} changed nothing"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--family", action="append", help="only this one; repeatable")
    parser.add_argument("--coverage", type=Path, help="that `make ptx` left, of the same kernels")
    arguments = parser.parse_args()
    kernels = dict(families())
    chosen = arguments.family or list(kernels)
    texts = {id: found for id, found in modules().items() if found[0] in chosen}
    print(f"{len(texts)} modules", flush=True)
    trial = Trial(kernels, executed(arguments.coverage) if arguments.coverage else frozenset())
    started = time.monotonic()
    for mutant in mutants(texts, random.Random(arguments.seed)):
        if trial.noticed + trial.missed == arguments.count:
            break
        print(trial.judge(mutant), flush=True)
    print(f"{trial.score}, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
