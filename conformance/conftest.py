# SPDX-License-Identifier: BSD-3-Clause
"""`pytest conformance` runs the suite of this checkout, whether or not one is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parent / "src"
sys.path.insert(0, str(SOURCES))

from torch_conformance import PACKAGE  # noqa: E402  (the path comes first)

if PACKAGE.parent != SOURCES:
    raise pytest.UsageError(
        f"{SOURCES.parent} is another copy of the suite than the installed one, {PACKAGE}: run "
        "that one with `pytest --pyargs torch_conformance`, or uninstall it (pip uninstall "
        "torch-conformance)"
    )

pytest_plugins = ["torch_conformance.plugin", "torch_conformance.pytest_plugin.plugin"]
