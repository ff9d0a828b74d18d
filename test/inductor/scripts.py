# SPDX-License-Identifier: BSD-3-Clause
"""The scripts of this folder, each in a process that shares no cache with others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def caches(directory: Path) -> dict[str, str]:
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"),
        "PUONE_MODULE_CACHE": str(directory / "modules"),
    }


def run(script: str, *arguments: object, directory: Path, **environment: str) -> None:
    """Run it and require status 0. `directory` has its caches."""
    path = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)],
        env={**os.environ, **caches(directory), **path, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
