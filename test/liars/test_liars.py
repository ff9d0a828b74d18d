# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite catches liars, and says nothing to a backend that does not lie."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from suites import ROOT

pytestmark = pytest.mark.nightly

JUDGE = Path(__file__).parent / "judge.py"


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The matrix of one liar for each surface and each layer."""
    file = tmp_path_factory.mktemp("liars") / "matrix.json"
    command = [sys.executable, str(JUDGE), "--fast", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert file.exists(), done.stdout + done.stderr
    return json.loads(file.read_text())


def test_the_suite_catches_a_liar_of_each_surface_and_layer(fast: Any) -> None:
    alive = [liar["id"] for liar in fast["liars"] if not liar["killed"]]
    assert not alive


def test_they_are_caught_under_the_requirements_that_they_break(fast: Any) -> None:
    missed = {liar["id"]: liar["missed"] for liar in fast["liars"] if not liar["intended"]}
    assert not missed


def test_the_truth_passes_the_checks_that_catch_them(fast: Any) -> None:
    assert fast["complaints"] == []
    assert all(liar["checks_run"] for liar in fast["liars"])
