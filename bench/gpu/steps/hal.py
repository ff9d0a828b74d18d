# SPDX-License-Identifier: BSD-3-Clause
"""The HAL suite on the driver."""

from __future__ import annotations

import importlib.util
import os
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.gpu.outcome import Outcome, done, failed, not_run
from bench.gpu.run import Run

MODULES = ("pytest", "yaml", "numpy", "mpmath")
SUITE = Path("hal_conformance/src/hal_conformance")
# They compare the device's free memory, which is everybody's: these run when nobody else does.
ALONE = ("test_memory.py", "test_device.py", "test_driver.py")
MOST_WORKERS = 8
# Some tests hold a stream up and expect others to go on: as many as the hardware can tell apart,
# and no kernel may be loaded meanwhile, for which CUDA may wait until all streams stand still.
SETTINGS = ("env", "CUDA_DEVICE_MAX_CONNECTIONS=32", "CUDA_MODULE_LOADING=EAGER")
# On a card it takes seconds until a process can use it, the longer the more processes ask.
PATIENT = ("--share-process", "--driver-deadline=30")
REHEARSED = ("--requirement=HAL-003", "--requirement=HAL-086")


def hal(run: Run) -> Outcome:
    """All tests: those that can share the card side by side, then the others one by one."""
    if not run.library.is_file():
        return not_run(f"{run.library} is not there: see the step build")
    parallel = importlib.util.find_spec("xdist") is not None
    workers = ("-n", str(min(MOST_WORKERS, run.cores))) if parallel else ()
    libraries = f"LD_LIBRARY_PATH={_libraries()}"
    every = sorted(path.name for path in (run.root / SUITE).glob("test_*.py"))
    shared = [name for name in every if name not in ALONE]
    groups: dict[str, tuple[Sequence[str], tuple[str, ...]]] = {
        "hal": (shared, workers),
        "hal-alone": (ALONE, ()),
    }
    counts: Counter[str] = Counter()
    wrong = []
    for log, (files, options) in groups.items():
        if run.rehearsal:
            options = (*options, *REHEARSED)
        report = run.work / f"{log}.xml"
        paths = [str(SUITE / name) for name in files]
        general = ("-q", "-p", "no:cacheprovider", f"--junitxml={report}", *PATIENT)
        driver = f"--driver={run.library}"
        words = ("-m", "pytest", *paths, driver, *general, *options)
        ended = run.python(log, *words, before=(*SETTINGS, libraries))
        counts += _verdicts(report)
        # pytest's 5 is "no tests": a rehearsal may leave none to a group.
        if ended.code != 0 and not (run.rehearsal and ended.code == 5):
            wrong.append(ended.why())
    if wrong:
        return failed("\n".join(wrong), **counts)
    return done(**counts) if counts["passed"] else failed("no test ran", **counts)


def _libraries() -> str:
    """LD_LIBRARY_PATH with the libraries that came with torch, which this suite does not import.

    The driver looks for cuBLAS, cuDNN, NCCL and NVRTC.
    """
    spec = importlib.util.find_spec("nvidia")
    places = (spec and spec.submodule_search_locations) or ()
    folders = sorted(str(folder) for place in places for folder in Path(place).glob("*/lib"))
    return os.pathsep.join([*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])


def _verdicts(junit: Path) -> Counter[str]:
    if not junit.is_file():
        return Counter()
    words = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    return Counter(
        next((words[child.tag] for child in case if child.tag in words), "passed")
        for case in ElementTree.parse(junit).iter("testcase")
    )
