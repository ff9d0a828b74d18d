# SPDX-License-Identifier: BSD-3-Clause
"""Run a program as `python` runs it, in the scope that is open."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence


def run_script(script: str, arguments: Sequence[str]) -> None:
    """`python script arguments`: the same `sys.argv`, `sys.path[0]` and `__main__`.

    Raises what the script raises, SystemExit included.
    """
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


def run_module(module: str, arguments: Sequence[str]) -> None:
    """`python -m module arguments`."""
    sys.argv = [module, *arguments]
    sys.path[0] = os.getcwd()
    runpy.run_module(module, run_name="__main__", alter_sys=True)
