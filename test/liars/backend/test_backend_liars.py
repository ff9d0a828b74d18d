# SPDX-License-Identifier: BSD-3-Clause
"""The chapters must catch mistakes that a backend makes above its driver, as real ones do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lies import LIES, TRUTH

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture(scope="module")
def trials() -> Any:
    """The verdict of the chapters on every lie and on the truth."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, str(HERE / "lies.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_the_honest_backend_passes(trials: Any) -> None:
    """What the lies are caught by does pass without them: otherwise a catch would prove nothing."""
    complaints = {k: v for k, v in trials["verdicts"][TRUTH].items() if v is not None}
    assert complaints == {}
    assert trials["verdicts"][TRUTH]


@pytest.mark.parametrize("name", LIES)
def test_the_chapters_catch(name: str, trials: Any) -> None:
    """At least one check of every requirement named by the lie fails under it."""
    caught = {
        requirement
        for check, complaint in trials["verdicts"][name].items()
        if complaint is not None
        for requirement in trials["requirements"].get(check, ())
    }
    missed = set(LIES[name].requirements) - caught
    assert not missed, f"{LIES[name].text} {trials['verdicts'][name]}"
