# SPDX-License-Identifier: BSD-3-Clause
"""What the project's own tests share: fresh interpreters, and the places of things."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from interpreter import Python

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def python() -> Python:
    """Runs code in a fresh interpreter. Backends are not autoloaded unless asked for."""

    def run(
        code: str,
        *,
        timeout: float = 60,
        autoload: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        inherited = {key: value for key, value in os.environ.items() if key != "PUONE_DRIVER"}
        paths = [
            str(ROOT),
            str(ROOT / "reference_backend"),
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
        return subprocess.run(
            [sys.executable, "-c", code],
            env={
                **inherited,
                "PYTHONPATH": os.pathsep.join(paths),
                "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if autoload else "0",
                **(env or {}),
            },
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
