# SPDX-License-Identifier: BSD-3-Clause
"""Operators give on what nvcc made of the kernels what they give on sim; random numbers to the last
bit. These are the cases of `make gpu` (bench/gpu/parity)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ptx_executor import CUDA_PTX, needs_ptx
from ptx_kernels import ENVIRONMENT
from suites import ROOT, SIM

pytestmark = needs_ptx


def run(*arguments: str | Path, driver: Path = SIM) -> str:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PUONE_")}
    kept = {key: value for key, value in os.environ.items() if key.startswith("PUONE_PTX_")}
    done = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        env={**inherited, **kept, **ENVIRONMENT, "PUONE_DRIVER": str(driver)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("size", ["small", pytest.param("usual", marks=pytest.mark.nightly)])
def test_operators_agree_with_sim(size: str, tmp_path: Path) -> None:
    options = ["--small"] if size == "small" else []
    files = {name: tmp_path / name for name in ("sim", "ptx")}
    for name, driver in (("sim", SIM), ("ptx", CUDA_PTX)):
        said = run("bench.gpu.parity.collect", "--out", files[name], *options, driver=driver)
        assert said.splitlines()[0] == f"driver: {driver}"
    said = run("bench.gpu.parity.compare", files["sim"], files["ptx"], *options)
    counts = json.loads(said.splitlines()[-1])
    assert counts["apart"] == 0 and counts["cases"] > 100
