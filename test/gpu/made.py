# SPDX-License-Identifier: BSD-3-Clause
"""Made-up runs and results."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.gpu.result import Result
from bench.gpu.run import Run

MACHINE: dict[str, Any] = {
    "gpu": "Imaginary 9",
    "gpus": [{"name": "Imaginary 9", "driver": "1.2.3", "memory": "4 MiB"}],
    "nvcc": "13.0.88",
    "torch": "2.11.0+cu130",
    "torch_cuda": "13.0",
    "torch_commit": "0" * 40,
    "python": "3.12.3",
    "platform": "Linux",
    "processor": "x86_64",
    "cores": 16,
}
SOURCE: dict[str, Any] = {"commit": "1" * 40, "dirty": False}


def a_run(folder: Path, seconds: float = 60) -> Run:
    """A run without a driver, all of whose time is left."""
    root = Path(__file__).resolve().parents[2]
    return Run(
        root=root,
        build=folder,
        work=folder,
        site=folder / "site",
        driver="sim",
        library=folder / "libnone.so",
        rehearsal=True,
        result=Result(folder / "result.json"),
        seconds=seconds,
        cores=1,
        until=time.monotonic() + seconds,
    )


def a_row(group: str = "pointwise", **changes: Any) -> dict[str, Any]:
    """A measurement as the measuring process writes it: 100 us of ours, 90 of torch.cuda's."""
    return {
        "group": group,
        "name": "made up",
        "clock": "device",
        "work": 0.0,
        "resource": None,
        "gauges": False,
        "puone": spread(100.0),
        "cuda": spread(90.0),
        "problems": {},
        **changes,
    }


def spread(median: float) -> dict[str, Any]:
    """Times that hardly differ."""
    return {"median_us": median, "low_us": median - 1, "high_us": median + 1, "rounds": 15}
