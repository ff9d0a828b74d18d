# SPDX-License-Identifier: BSD-3-Clause
"""``make gpu``, or ``python -m bench.gpu``: build, test and measure on a machine with a GPU.

Takes the steps below in this order, each with its own deadline, all within --minutes. A step that
fails, hangs or lacks something leaves the others to run. Results are written as they come: a JSON
file and a short page beside it, by default into docs/results, to be committed. Nothing is fetched
from a network; what this Python lacks is taken from build/wheels (`make gpu-wheels`).

On a machine without a GPU, --rehearse takes the same way through every step, on a stand-in driver
and with sizes that prove nothing; its results go to build/gpu-rehearsal.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from itertools import chain, count
from pathlib import Path
from typing import Any, NoReturn

from bench.gpu import machine, page, wheels
from bench.gpu.plan import MINUTES, STEPS
from bench.gpu.result import Result, file_name
from bench.gpu.run import PATIENCE, Run, Step, take_all

ROOT = Path(__file__).resolve().parents[2]
EXITS = {
    0: "no step failed; the page says which targets were met and what was not run",
    1: "a step failed",
    2: "wrong usage",
    3: "no GPU, or no torch: nothing was run or written",
    4: "the folder for the results cannot be written: nothing was run",
}
FAILED, USAGE, NO_MACHINE, UNWRITABLE = 1, 2, 3, 4
# In the order of preference: the driver's own host code, else just some driver.
STAND_INS = ("libpuone_cuda_standin.so", "libpuone_sim.so")


def main(arguments: Sequence[str] | None = None, steps: Iterable[Step] = STEPS) -> int:
    """See the module's docstring."""
    options = _parser().parse_args(arguments)
    chosen = [step for step in steps if not options.step or step.name in options.step]
    signal.signal(signal.SIGTERM, _end)
    begin = time.monotonic()
    about = machine.describe()
    lacking = _lacking(about, options.rehearse)
    if lacking:
        print(lacking, file=sys.stderr)
        return NO_MACHINE
    run = _prepare(options, about)
    if isinstance(run, str):
        print(run, file=sys.stderr)
        return UNWRITABLE
    run.begin = begin
    does = {step.name: step.does for step in chosen}
    run.result.start(about, machine.source(ROOT), does, options.rehearse)
    good = take_all(run, chosen)
    run.result.finish(run.passed())
    _publish(run, options.archive)
    return 0 if good else FAILED


def _parser() -> argparse.ArgumentParser:
    steps = "\n".join(f"  {step.name:<18}{step.does} ({step.seconds:g} s)" for step in STEPS)
    exits = "\n".join(f"  {code}  {meaning}" for code, meaning in EXITS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu",
        description=__doc__,
        epilog=f"steps:\n{steps}\n\nexit codes:\n{exits}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    names = [step.name for step in STEPS]
    add("--step", action="append", choices=names, metavar="NAME", help="only this; repeatable")
    add("--minutes", type=float, help=f"for everything (default: {MINUTES:g})")
    add("--results", type=Path, metavar="DIR", help="where the JSON file and its page go")
    add("--archive", type=Path, metavar="FILE", help="also pack all logs and reports (.tar.gz)")
    add("--build", type=Path, metavar="DIR", help="folder of cmake (default: build/gpu)")
    patience = f"on a stand-in driver, without a GPU, and with {PATIENCE} times the time"
    add("--rehearse", action="store_true", help=patience)
    add("--library", type=Path, metavar="FILE", help="with --rehearse: this driver")
    return parser


def _lacking(about: dict[str, Any], rehearsal: bool) -> str | None:
    """Why nothing can be run here."""
    if about["torch"] is None:
        return f"torch cannot be imported by {sys.executable}: choose another with PYTHON=..."
    if not rehearsal and not about["gpus"]:
        return "no GPU: nvidia-smi finds none. Without one there is --rehearse (docs/gpu.md)"
    return None


def _prepare(options: argparse.Namespace, about: dict[str, Any]) -> Run | str:
    """The run with its folders, or why there can be none."""
    rehearsal: bool = options.rehearse
    scratch = ROOT / "build" / "gpu-rehearsal"
    build = options.build or ROOT / "build" / ("" if rehearsal else "gpu")
    results = options.results or (scratch if rehearsal else page.FOLDER)
    if rehearsal and results.resolve() == page.FOLDER:
        return f"{page.FOLDER} is for measurements: a rehearsal proves nothing"
    work = results / "run" if rehearsal else build / "run"
    name = file_name(about["gpu"], datetime.now(timezone.utc))
    file = results / name if rehearsal else unused(results / name)
    try:
        for folder in (results, work, work / "site"):
            folder.mkdir(parents=True, exist_ok=True)
        for old in work.iterdir():
            if old.is_file():
                old.unlink()
        with tempfile.TemporaryFile(dir=results):
            pass
    except OSError as error:
        return f"results cannot be written: {error}"
    print("brought along:", ", ".join(wheels.unpack(work / "site")) or "nothing", flush=True)
    library = build / "lib" / "libpuone_cuda.so"
    if rehearsal:
        library = (options.library or _stand_in(build)).resolve()
    return Run(
        root=ROOT,
        build=build.resolve(),
        work=work.resolve(),
        site=(work / "site").resolve(),
        driver=str(library) if rehearsal else "cuda",
        library=library,
        rehearsal=rehearsal,
        result=Result(file.resolve()),
        seconds=60 * (options.minutes or MINUTES * (PATIENCE if rehearsal else 1)),
    )


def unused(file: Path) -> Path:
    """The file, or with a number if it is there: a measurement replaces no other."""
    names = (file.with_stem(f"{file.stem}-{number}") for number in count(2))
    return next(path for path in chain([file], names) if not path.exists())


def _stand_in(build: Path) -> Path:
    there = [build / "lib" / name for name in STAND_INS if (build / "lib" / name).is_file()]
    return there[0] if there else build / "lib" / STAND_INS[-1]


def _publish(run: Run, archive: Path | None) -> None:
    if run.result.file.parent == page.FOLDER:
        page.refresh(page.FOLDER)
    if archive:
        with tarfile.open(archive, "w:gz") as packed:
            for file in sorted(run.work.iterdir()):
                if file.is_file() and file.suffix in (".log", ".json", ".jsonl", ".xml"):
                    packed.add(file, f"run/{file.name}")
    print(run.result.file.with_suffix(".md").read_text())
    print(f"results: {run.result.file}\nlogs and reports: {run.work}")


def _end(number: int, frame: object) -> NoReturn:
    """Leave in order, so that what was started is ended."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
