# SPDX-License-Identifier: BSD-3-Clause
"""`pytest hal_conformance --driver=PATH` runs the suite of this checkout, installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parent / "src"
sys.path.insert(0, str(SOURCES))

import hal_conformance  # noqa: E402  (the path comes first)

INSTALLED = Path(hal_conformance.__file__).resolve().parent
if INSTALLED.parent != SOURCES:
    raise pytest.UsageError(
        f"{SOURCES.parent} is another copy of the suite than the installed one, {INSTALLED}: run "
        "that one with `pytest --pyargs hal_conformance --driver=PATH`, or uninstall it (pip "
        "uninstall puone-hal-conformance)"
    )

pytest_plugins = ["hal_conformance.harness"]
