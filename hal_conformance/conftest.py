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

pytest_plugins = ["hal_conformance.harness"]


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to collect this copy with the modules of another one."""
    if INSTALLED.parent != SOURCES and not config.option.pyargs:
        raise pytest.UsageError(
            f"{SOURCES.parent} is another copy of the suite than the installed one, {INSTALLED}: "
            "run that one with `pytest --pyargs hal_conformance --driver=PATH`, or uninstall it "
            "(pip uninstall puone-hal-conformance)"
        )
