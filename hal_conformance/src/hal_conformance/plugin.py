# SPDX-License-Identifier: BSD-3-Clause
"""What pytest loads where the suite is installed. It sleeps until a run asks for the suite.

A run asks for it by ``--pyargs hal_conformance``, or by a path inside the package. Other runs get
no option and no fixture from it.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    known = early_config.known_args_namespace
    if any(_is_ours(path.partition("::")[0], known.pyargs) for path in known.file_or_dir):
        early_config.pluginmanager.import_plugin("hal_conformance.harness")


def _is_ours(path: str, pyargs: bool) -> bool:
    if pyargs and path.partition(".")[0] == "hal_conformance":
        return True
    return Path(path).resolve().is_relative_to(Path(__file__).resolve().parent)
