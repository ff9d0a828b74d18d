# SPDX-License-Identifier: BSD-3-Clause
"""What a run of the tests executed, from the directory that PUONE_PTX_COVERAGE named:

python test/ptx/ptx_coverage.py build/ptx [--all-entries]

With --all-entries it fails if a kernel of the driver was never launched, and names it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

INSTRUCTION = re.compile(r"(?:@!?%\w+\s+)?([a-z][\w.:]*)\b(?!:)")
ENTRY = re.compile(r"\.entry (\w+)")


@dataclass
class Module:
    """Lines of PTX with an instruction, entries, and what of them ran."""

    instructions: dict[int, str]
    entries: list[str]
    counts: Counter[int] = field(default_factory=Counter)
    launched: set[str] = field(default_factory=set)

    @property
    def is_of_driver(self) -> bool:
        """Not one of a test, or compiled at run time."""
        return any(name.startswith("_ZN5puone") for name in self.entries)


def instructions(text: str) -> dict[int, str]:
    """The name of the instruction on each line. Names of parameters, in calls, are none."""
    found = {}
    in_call = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if in_call:
            in_call = not stripped.endswith(";")
            continue
        match = INSTRUCTION.match(stripped)
        if match is None or stripped.endswith(":"):
            continue
        if match[1].startswith("call"):  # what is called is counted there
            in_call = not stripped.endswith(";")
            continue
        found[number] = match[1]
    return found


def read(directory: Path) -> dict[str, Module]:
    modules = {}
    for path in directory.glob("*.ptx"):
        text = path.read_text()
        modules[path.stem] = Module(instructions(text), ENTRY.findall(text))
    for path in directory.glob("*.counts"):
        counts = np.fromfile(path, "<u8")
        for line in np.flatnonzero(counts):
            modules[path.name.split(".")[0]].counts[int(line)] += int(counts[line])
    for path in directory.glob("*.entries"):
        modules[path.name.split(".")[0]].launched.update(path.read_text().split())
    if (kernels := directory / "kernels").exists():
        loaded = {name for module in modules.values() for name in module.entries}
        rest = [name for name in kernels.read_text().split() if name not in loaded]
        if rest:
            modules["not loaded"] = Module({}, rest)
    return modules


def never_launched(modules: dict[str, Module]) -> list[str]:
    """Kernels of the driver, by module."""
    kept = [module for module in modules.values() if module.is_of_driver]
    return [name for m in kept for name in m.entries if name not in m.launched]


def demangled(names: Iterable[str]) -> list[str]:
    filtered = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    )
    return filtered.stdout.splitlines()


@dataclass(frozen=True)
class Summary:
    """How much of what, and how much of it ran."""

    modules: int
    entries: int
    entries_run: int
    lines: int
    lines_run: int
    names: frozenset[str]
    names_run: frozenset[str]
    executed: int  # instructions, by warps


def summary(modules: dict[str, Module]) -> Summary:
    kept = [module for module in modules.values() if module.is_of_driver]
    ran = [(m, line) for m in kept for line in m.instructions if m.counts[line]]
    return Summary(
        modules=len(kept),
        entries=sum(len(m.entries) for m in kept),
        entries_run=sum(name in m.launched for m in kept for name in m.entries),
        lines=sum(len(m.instructions) for m in kept),
        lines_run=len(ran),
        names=frozenset(name for m in kept for name in m.instructions.values()),
        names_run=frozenset(m.instructions[line] for m, line in ran),
        executed=sum(sum(m.counts.values()) for m in kept),
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, help="what PUONE_PTX_COVERAGE named")
    parser.add_argument(
        "--all-entries", action="store_true", help="fail if a kernel was never launched"
    )
    arguments = parser.parse_args()
    modules = read(arguments.directory)
    of = summary(modules)
    print(f"entries of kernels: {of.entries_run} of {of.entries} ran, in {of.modules} modules")
    share = 100 * of.lines_run / max(1, of.lines)
    print(f"instructions of PTX: {of.lines_run} of {of.lines} ran ({share:.1f} %)")
    print(f"names of instructions: {len(of.names_run)} of {len(of.names)} ran")
    print(f"instructions executed by warps: {of.executed}")
    missing = sorted(of.names - of.names_run)
    if missing:
        print("never: " + ", ".join(missing))
    if not arguments.all_entries:
        return 0
    left = demangled(never_launched(modules))
    for name in left:
        print(f"never launched: {name}", file=sys.stderr)
    return 1 if left or not of.entries else 0


if __name__ == "__main__":
    sys.exit(main())
