# SPDX-License-Identifier: BSD-3-Clause
"""`pytest` finds all the tests that there are."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

TEST = Path(__file__).resolve().parents[1]


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """By default pytest passes over folders called `build`, `dist` or `venv`, and says nothing."""
    patterns = pytestconfig.getini("norecursedirs")
    files = [file.relative_to(TEST) for file in TEST.rglob("test_*.py")]
    folders = {part for file in files if "node_modules" not in file.parts for part in file.parts}
    assert not [name for name in folders if any(fnmatch(name, one) for one in patterns)]
