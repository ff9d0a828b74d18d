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
