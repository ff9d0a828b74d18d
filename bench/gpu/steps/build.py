# SPDX-License-Identifier: BSD-3-Clause
"""Building the backend, the driver under test and sim, against the torch of this Python."""

from __future__ import annotations

import re
import sys

from bench.gpu.machine import tool
from bench.gpu.outcome import Outcome, done, failed, not_run
from bench.gpu.run import Run

ALWAYS = ("_C", "puone_sim")
DRIVER = "puone_cuda"
# The process group, where this torch has distributed; the driver, where there is nvcc.
OFFERED = ("_distributed", DRIVER)


def build(run: Run) -> Outcome:
    """cmake, with all cores; what can be built is, also when something else cannot."""
    if tool("cmake") is None:
        return not_run("cmake is missing")
    ninja = tool("ninja") is not None
    configured = run.call(
        "build",
        *("cmake", "-S", run.root, "-B", run.build, *(("-G", "Ninja") if ninja else ())),
        f"-DPython_EXECUTABLE={sys.executable}",
        "-DPUONE_CUDA=ON",
    )
    if configured.code != 0:
        return failed(f"cmake: {configured.why()}")
    offered = run.call("targets", "cmake", "--build", run.build, "--target", "help")
    targets = offered.log.read_text()
    wanted: list[str] = [*ALWAYS, *(name for name in OFFERED if _offers(targets, name))]
    go_on = ("--", "-k", "0") if ninja else ("--", "-k")
    ended = run.call(
        "build",
        *("cmake", "--build", run.build, "--parallel", str(run.cores), "--target"),
        *wanted,
        *go_on,
    )
    if ended.code != 0:
        return failed(ended.why())
    if DRIVER not in wanted and not run.rehearsal:
        return failed(f"there is no target {DRIVER}: cmake found no nvcc; see build.log")
    _announce(run)
    return done(targets=wanted)


def _offers(text: str, target: str) -> bool:
    # Ninja prints "name: phony", make "... name".
    return re.search(rf"^(?:\.\.\. )?{target}(?=:|\s|$)", text, re.MULTILINE) is not None


def _announce(run: Run) -> None:
    """What an installed backend has for `import torch` to find it, without installing anything."""
    folder = run.site / "torch_puone-0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-puone\nVersion: 0\n")
    (folder / "entry_points.txt").write_text("[torch.backends]\npuone = torch_puone:_autoload\n")
