# SPDX-License-Identifier: BSD-3-Clause
"""`make gpu` rehearsed: the same program through the same steps, on a stand-in driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from suites import ROOT, SIM

from bench.gpu import machine, page
from bench.gpu.__main__ import NO_MACHINE, UNWRITABLE
from bench.gpu.document import Results
from torch_backend_ci import document


def make_gpu(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What `make gpu` runs, here."""
    return subprocess.run(
        [sys.executable, "-m", "bench.gpu", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def rehearse(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Likewise, with the driver that is always there."""
    return make_gpu("--rehearse", "--library", SIM, "--results", folder, *arguments)


def committed() -> dict[Path, int]:
    """The directory of real results."""
    return {file: file.stat().st_mtime_ns for file in page.FOLDER.iterdir()}


@pytest.mark.nightly
def test_a_rehearsal_takes_every_step_and_writes_results_beside_the_real_ones(
    tmp_path: Path,
) -> None:
    before = committed()
    steps = ("hal", "parity", "compiled", "benchmark", "conformance-core", "sanitizer")
    archive = tmp_path / "logs.tar.gz"
    options = [word for step in steps for word in ("--step", step)]
    done = rehearse(tmp_path, *options, "--archive", archive)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("*.json")
    result = json.loads(file.read_text())
    document.read(file, Results)
    assert result["complete"] and result["rehearsal"]
    statuses = {step["name"]: step["status"] for step in result["steps"]}
    watched = statuses.pop("sanitizer")
    assert set(statuses.values()) == {"done"}
    assert watched == ("not run" if machine.tool("compute-sanitizer") is None else "done")
    groups = {row["group"] for row in result["measurements"] if row["puone"]}
    assert {"pointwise", "reduction", "softmax", "layer norm", "copy", "matmul", "issue"} <= groups
    assert all(
        why.startswith("not run")
        for row in result["measurements"]
        for why in row["problems"].values()
    )
    assert "Rehearsal, not a measurement" in file.with_suffix(".md").read_text()
    with tarfile.open(archive) as packed:
        assert "run/benchmark.log" in packed.getnames()
    assert committed() == before


def test_a_driver_that_cannot_be_loaded_fails_its_steps_and_no_others(tmp_path: Path) -> None:
    broken = tmp_path / "libbroken.so"
    broken.write_text("no library")
    options = ("--rehearse", "--library", broken, "--results", tmp_path)
    done = make_gpu(*options, "--step", "benchmark", "--step", "sanitizer")
    assert done.returncode == 1
    (file,) = tmp_path.glob("*.json")
    benchmark, sanitizer = json.loads(file.read_text())["steps"]
    assert benchmark["status"] == "failed" and "libbroken.so" in benchmark["reason"]
    assert sanitizer["status"] != "done"


def test_a_rehearsal_cannot_be_written_among_the_measurements() -> None:
    before = committed()
    done = rehearse(page.FOLDER)
    assert done.returncode == UNWRITABLE
    assert "a rehearsal proves nothing" in done.stderr
    assert committed() == before


def test_results_that_cannot_be_written_are_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = rehearse(tmp_path / "file" / "results")
    assert done.returncode == UNWRITABLE
    assert "results cannot be written" in done.stderr
    assert "hal:" not in done.stdout


@pytest.mark.skipif(bool(machine.gpus()), reason="needs a machine without a GPU")
def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    before = committed()
    done = make_gpu()
    assert done.returncode == NO_MACHINE
    assert "no GPU: nvidia-smi finds none" in done.stderr and "--rehearse" in done.stderr
    assert committed() == before


def test_a_python_without_torch_is_told_apart() -> None:
    # -S: without the packages of this Python.
    environment = {**os.environ, "PYTHONNOUSERSITE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", "from bench.gpu import machine; print(machine.describe())"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_its_help_names_steps_and_exit_codes() -> None:
    text = make_gpu("--help").stdout
    for words in ("conformance-core", "--rehearse", "a step failed", "no GPU"):
        assert words in text
