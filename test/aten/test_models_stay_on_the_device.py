# SPDX-License-Identifier: BSD-3-Clause
"""Training of the suite's models borrows no operator of the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_model_of_the_suite_trains_without_a_fallback(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--backend=puone", "--check=model/*", "--fallback=forbid", f"--report={report}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "conformance", *options],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    totals = json.loads(report.read_text())["totals"]
    assert totals["pass"] >= 100
