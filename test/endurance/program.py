# SPDX-License-Identifier: BSD-3-Clause
"""Runs the programs beside it, as their users do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(
    program: Path,
    *arguments: str,
    driver: Path | str = "sim",
    autoload: bool = False,
    timeout: float = 600,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The finished program, of this checkout, without the PUONE_ variables of this process.

    `autoload`: whether `import torch` loads the backend, which torchrun's scripts rely on.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PUONE_")}
    inherited |= {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'reference_backend'}",
        "PUONE_DRIVER": str(driver),
        "OMP_NUM_THREADS": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if autoload else "0",
    }
    return subprocess.run(
        [sys.executable, str(program), *arguments],
        env={**inherited, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
