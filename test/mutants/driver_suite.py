# SPDX-License-Identifier: BSD-3-Clause
"""The suite of drivers (`hal_conformance`) before the simulated driver with mutants.

Its requirements are of every driver below the backend, so it is asked about mutants of the driver
and its kernels that the suite of backends did not notice.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch

import mutant_switch
import reach_log
from mutants import reach
from mutants.reach import Coverage
from mutants.sample import DRIVERS
from mutants.tree import HERE, ROOT, Tree, modules
from mutants.verdicts import Verdict

#: What a driver consists of.
SOURCES = ("csrc/drivers/sim/*", "csrc/kernels/*")
#: Seconds that a test may take, and a run of all tests of a mutant.
DEADLINE, PATIENCE = 30, 600
_FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?(\w+\.py::\S+)(?: - (.*))?", re.M)


def is_of_driver(file: str) -> bool:
    """Whether a change of this file changes the driver."""
    return any(fnmatch(file, pattern) for pattern in SOURCES)


class DriverSuite:
    """Runs the tests of drivers, those of several mutants at a time."""

    def __init__(self, tree: Tree, processes: int) -> None:
        self._driver = tree.build / "lib" / "libpuone_sim.so"
        self._folder, self._processes = tree.build / "driver_suite", processes
        self._folder.mkdir(exist_ok=True)

    def coverage(self) -> Coverage:
        """What every test reaches; raises if one fails without a mutant."""
        marks, log = self._folder / "marks", self._folder / "reached.log"
        marks.write_bytes(bytes(mutant_switch.COUNT))
        log.unlink(missing_ok=True)
        env = {reach_log.MARKS: str(marks), reach_log.LOG: str(log)}
        with modules(cold=True) as cache:
            done = self._run(["src/hal_conformance"], ["-p", "driver_reach"], **env, **cache)
        if done.returncode != 0:
            raise RuntimeError(f"the driver suite fails without any mutant:\n{done.stdout[-4000:]}")
        marks.unlink()
        return reach.load([log])

    def judge(self, mutants: Mapping[int, list[str]], cold: Container[int]) -> Iterator[Verdict]:
        """Each mutant before the tests that are named for it, until one of them notices.

        `cold`: those that find no compiled module in the cache.
        """
        with ThreadPoolExecutor(self._processes) as pool:
            tasks = [
                pool.submit(self._judged, number, tests, number in cold)
                for number, tests in mutants.items()
            ]
            for task in as_completed(tasks):
                yield task.result()

    def _judged(self, number: int, tests: list[str], cold: bool) -> Verdict:
        if not tests:
            return Verdict(number, driver_tests=0)
        listed = self._folder / f"{number}.tests"
        listed.write_text("\n".join(tests))
        begin = time.perf_counter()
        try:
            with modules(cold) as cache:
                done = self._run([f"@{listed}"], ["-x"], PUONE_MUTANT=str(number), **cache)
        except subprocess.TimeoutExpired as error:
            return Verdict(number, broken=repr(error))
        finally:
            listed.unlink()
        failed = _FAILED.search(done.stdout)
        if done.returncode not in (0, 1) or (done.returncode == 1) != bool(failed):
            return Verdict(number, broken=done.stdout[-500:])
        return Verdict(
            number,
            killed=bool(failed),
            by=f"{DRIVERS}/{failed[1]}" if failed else "",
            outcome="fail" if failed else "",
            message=(failed[2] or "")[:500] if failed else "",
            driver_tests=len(tests),
            seconds=round(time.perf_counter() - begin, 2),
        )

    def _run(
        self, tests: Iterable[str], options: Iterable[str], **env: str
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        command += [*options, f"--driver={self._driver}", f"--driver-deadline={DEADLINE}", *tests]
        env = {"PYTHONPATH": str(HERE / "path"), "CXX": str(HERE / "compiler"), **env}
        return subprocess.run(
            command,
            cwd=ROOT / "hal_conformance",
            env=os.environ | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
