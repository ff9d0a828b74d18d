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


class Python(Protocol):
    """Runs code in a fresh interpreter that can import this checkout."""

    def __call__(
        self,
        code: str,
        *,
        timeout: float = 60,
        autoload: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]: ...
