# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs compute on puone what float64 says, and the sanitizer has nothing to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from suites import SIM

CASES = int(os.environ.get("PUONE_FUZZ_CASES", "20"))  # `make fuzz` takes more


@pytest.mark.fuzz
def test_random_graphs_are_right(tmp_path: Path) -> None:
    script = Path(__file__).with_name("random_graphs.py")
    done = subprocess.run(
        [sys.executable, str(script), "0", str(CASES)],
        env={
            **os.environ,
            "PUONE_DRIVER": str(SIM),
            "PUONE_SANITIZE": "raise",
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
            "PUONE_MODULE_CACHE": str(tmp_path / "modules"),
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
