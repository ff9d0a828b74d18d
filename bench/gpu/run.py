# SPDX-License-Identifier: BSD-3-Clause
"""One run: what its steps share, and how they are taken one after another, whatever they do."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.gpu import command, machine, wheels
from bench.gpu.command import Ended
from bench.gpu.outcome import FAILED, Outcome, failed, not_run
from bench.gpu.result import Result

# Where the packages of this checkout are, none of which is installed.
SOURCES = ("", "reference_backend", "conformance/src", "hal_conformance/src")
# Less than this is not enough to start anything.
LEAST = 5.0
# Deadlines are for 16 cores and a card; a rehearsal may be on less of both.
PATIENCE = 3


@dataclass
class Run:
    """The places, the driver under test, and the time that is left."""

    root: Path
    build: Path  # of cmake
    work: Path  # logs and reports, emptied at the start
    site: Path  # Python packages that were brought along
    driver: str  # for PUONE_DRIVER: a name or a path
    library: Path
    rehearsal: bool
    result: Result
    seconds: float  # for everything
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    begin: float = field(default_factory=time.monotonic)
    until: float = 0.0  # when the current step has to end

    def passed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.begin

    def left(self) -> float:
        """Seconds left to the current step."""
        return max(0.0, self.until - time.monotonic())

    def environment(self, driver: str | None = None) -> dict[str, str]:
        """Of every program: this checkout, the brought packages and the driver; nothing of puone's
        own that was set outside."""
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith("PUONE_")
        }
        own = (*(self.root / name for name in SOURCES), self.site)
        paths = [*map(str, own), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **inherited,
            "PATH": machine.path(),
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONUNBUFFERED": "1",
            "PUONE_DRIVER": driver or self.driver,
        }

    def python(
        self,
        log: str,
        *arguments: str | Path,
        before: Sequence[str | Path] = (),
        driver: str | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> Ended:
        """`before python arguments...` in the checkout, until the step's time is over."""
        return self.call(log, *before, sys.executable, *arguments, driver=driver, tick=tick)

    def call(
        self,
        log: str,
        *words: str | Path,
        driver: str | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> Ended:
        """Any program, likewise."""
        file = self.work / f"{log}.log"
        environment = self.environment(driver)
        return command.run(words, file, self.left(), environment, self.root, tick)


@dataclass(frozen=True)
class Step:
    """`take` does it; `modules` are the Python packages without which it cannot."""

    name: str
    does: str
    seconds: float
    take: Callable[[Run], Outcome]
    modules: tuple[str, ...] = ()


def take_all(run: Run, steps: Iterable[Step]) -> bool:
    """Take the steps; True if none failed. Whatever one does, the next is taken."""
    good = True
    for step in steps:
        print(f"[{run.passed():4.0f} s] {step.name}: {step.does}", flush=True)
        begin = time.monotonic()
        outcome = take(run, step)
        seconds = time.monotonic() - begin
        run.result.enter(step.name, outcome, seconds)
        print(f"[{run.passed():4.0f} s] {step.name}: {outcome} ({seconds:.1f} s)", flush=True)
        good = good and outcome.status != FAILED
    return good


def take(run: Run, step: Step) -> Outcome:
    """One step, within its own time and that of the run."""
    missing = wheels.missing(step.modules, run.site)
    if missing:
        return not_run(f"{', '.join(missing)} is missing: run `make gpu-wheels` (docs/gpu.md)")
    left = run.seconds - run.passed()
    if left < LEAST:
        return not_run("the time is used up")
    patience = PATIENCE if run.rehearsal else 1
    run.until = time.monotonic() + min(step.seconds * patience, left)
    try:
        return _without_places(step.take(run), run)
    except Exception as error:
        traceback.print_exc()
        return failed(f"the step itself broke: {type(error).__name__}: {error}")


def _without_places(outcome: Outcome, run: Run) -> Outcome:
    """Without the names of folders of this machine, which are of no interest elsewhere."""
    places = sorted(map(str, (sys.prefix, run.root)), key=len, reverse=True)
    pattern = "|".join(map(re.escape, places))
    return replace(outcome, reason=re.sub(rf"(?<![\w/.])(?:{pattern})/", "", outcome.reason))
