# SPDX-License-Identifier: BSD-3-Clause
"""Code in a fork of the nursery writes what it would write in a fresh interpreter."""

from __future__ import annotations

import os
from pathlib import Path

import nursery
import pytest


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_fork_writes_what_its_code_writes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    own = nursery._Nursery()
    done = own.run(["-c", "print('written')"], tmp_path, os.environ, 60)
    own._end()
    assert (done.returncode, done.stdout, done.stderr) == (0, "written\n", "")


@pytest.mark.parametrize(("wanted", "written"), [("1", "loaded\nran\n"), ("0", "ran\n")])
def test_a_fork_loads_the_backends_that_importing_torch_would_load(
    tmp_path: Path, wanted: str, written: str
) -> None:
    (tmp_path / "freshly.py").write_text("def load():\n    print('loaded')\n")
    announced = tmp_path / "freshly-1.0.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text("Metadata-Version: 2.1\nName: freshly\nVersion: 1.0\n")
    (announced / "entry_points.txt").write_text("[torch.backends]\nfreshly = freshly:load\n")
    env = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": wanted,
        "PUONE_DRIVER": "sim",
    }
    done = nursery.run_code("import torch\nprint('ran')", cwd=tmp_path, env=env, timeout=60)
    assert (done.returncode, done.stdout) == (0, written), done.stderr
