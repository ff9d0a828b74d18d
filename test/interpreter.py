# SPDX-License-Identifier: BSD-3-Clause
"""The type of the `python` fixture."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Protocol


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
