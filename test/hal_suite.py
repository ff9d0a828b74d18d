# SPDX-License-Identifier: BSD-3-Clause
"""Running the HAL suite in a process of its own, and where the built drivers are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = Path(os.environ.get("PUONE_LIB_DIR", ROOT / "build" / "lib"))
SIM = LIBRARIES / "libpuone_sim.so"
TEMPLATE = LIBRARIES / "libpuone_template.so"


def run_suite(
    driver: Path, folder: Path, environment: dict[str, str], *options: str, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """`pytest conformance/hal --driver=...`; its results go to folder/hal.xml."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PUONE_")}
    command = [sys.executable, "-m", "pytest", "conformance/hal", f"--driver={driver}"]
    command += ["-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={folder / 'hal.xml'}"]
    return subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
