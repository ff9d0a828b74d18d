# SPDX-License-Identifier: BSD-3-Clause
"""Whether a mutant that survived gives other results at all: random calls with and without it.

A call whose result differs is a defect that the suite has no check for, and says where to look.
Where no result differs, the mutant is most likely no defect.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import msgspec
from mutants.tree import HERE

#: Checks whose calls are made for one mutant, of those that reach it.
CHECKS = 300
#: Seconds for the calls of a mutant: many times what they take.
PATIENCE = 900
#: Without a mutant all calls are made twice: what differs then says nothing.
TWICE = ("first", "second")
#: Samples come in the order of a set, here and there. The suite, whose process this is, loads the
#: backend itself and tells PyTorch not to.
_FIXED = {"PYTHONHASHSEED": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}


class Comparison(msgspec.Struct, frozen=True):
    """What random calls say about a mutant."""

    number: int
    calls: int
    """Calls that give the same result each time without the mutant."""
    differs: str = ""
    """The first of them that gives another with it."""


class Differential:
    """Makes random calls with and without mutants, those of several mutants at a time."""

    def __init__(self, folder: Path, environment: Mapping[str, str], processes: int) -> None:
        self._folder, self._environment = folder, dict(environment)
        self._processes = processes
        folder.mkdir(exist_ok=True)

    def compare(self, mutants: Mapping[int, Sequence[str]]) -> Iterator[Comparison]:
        """Each mutant with the backend as it is, by the calls of the checks that are named."""
        every = sorted({check for checks in mutants.values() for check in checks})
        with ThreadPoolExecutor(self._processes) as pool:
            without = list(pool.map(self._results, TWICE, (every, every)))
            for name, (status, _) in zip(TWICE, without, strict=True):
                if status:
                    said = self._log(name).read_text()[-2000:]
                    raise RuntimeError(
                        f"random calls fail without any mutant: status {status}\n{said}"
                    )
            stable = dict(without[0][1].items() & without[1][1].items())
            tasks = [
                pool.submit(self._compared, number, checks, stable)
                for number, checks in mutants.items()
            ]
            for task in as_completed(tasks):
                yield task.result()

    def _compared(
        self, number: int, checks: Sequence[str], stable: Mapping[str, str]
    ) -> Comparison:
        wanted = set(checks)
        own = {call: text for call, text in stable.items() if call.partition("#")[0] in wanted}
        _, found = self._results(str(number), checks, PUONE_MUTANT=str(number))
        if first_difference(own, found):
            # In a process that makes fewer calls memory lies elsewhere, and where it lies some
            # libraries of the CPU round in another way: the same calls without the mutant.
            _, asleep = self._results(f"{number}-asleep", checks)
            own = dict(own.items() & asleep.items())
        return Comparison(number, len(own), first_difference(own, found))

    def _results(self, name: str, checks: Iterable[str], **env: str) -> tuple[int, dict[str, str]]:
        """The exit status, and the result of each call that was made until then."""
        listed, written = (self._folder / f"{name}.{kind}" for kind in ("checks", "results"))
        listed.write_text("".join(f"{check}\n" for check in checks))
        written.write_text("")
        program = HERE / "random_calls.py"
        try:
            with self._log(name).open("w") as log:
                status = subprocess.run(
                    [sys.executable, str(program), str(listed), str(written)],
                    env=os.environ | self._environment | env | _FIXED,
                    cwd=self._folder,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    timeout=PATIENCE,
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired:
            status = 1
        return status, read(written)

    def _log(self, name: str) -> Path:
        """What a process of that name wrote to stderr."""
        return self._folder / f"{name}.log"


def read(file: Path) -> dict[str, str]:
    """The results in a file, without a last line that is cut off."""
    whole = [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return dict(line.split() for line in whole)


def first_difference(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """The first call by name that gives another result, or none because the process ended."""
    return min((call for call in expected if found.get(call) != expected[call]), default="")
