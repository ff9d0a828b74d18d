# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs compute on puone what float64 says, and the sanitizer has nothing to say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scripts import run
from suites import SIM

CASES = int(os.environ.get("PUONE_FUZZ_CASES", "2"))  # `make fuzz` takes more


@pytest.mark.fuzz
def test_random_graphs_are_right(tmp_path: Path) -> None:
    environment = {"PUONE_DRIVER": str(SIM), "PUONE_SANITIZE": "raise"}
    run("random_graphs.py", 0, CASES, directory=tmp_path, **environment)
