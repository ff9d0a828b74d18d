# SPDX-License-Identifier: BSD-3-Clause
"""The type of the `python` fixture, and what its code may begin with."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Protocol

#: Forgets the hook of an editable installation, which would find the checkout before any directory.
WITHOUT_EDITABLE = """
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]
"""


#: Beginnings of the names of variables that Python and torch read when they start.
READ_AT_START = ("PYTHON", "LD_", "OMP_", "MKL_", "TORCH", "PYTORCH_")


class Python(Protocol):
    """Runs code in a process of its own, in which this checkout can be imported.

    torch is imported there already: seconds, for each of some hundred tests. `fresh` starts an
    interpreter, for what is about its start, or about what is imported when; so do the variables
    that are read then.
    """

    def __call__(
        self,
        code: str,
        *,
        timeout: float = 60,
        fresh: bool = False,
        autoload: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]: ...
