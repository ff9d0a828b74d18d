# SPDX-License-Identifier: BSD-3-Clause
"""An editable installation of the backend is found before any directory, also before a liar's."""

from __future__ import annotations

import sys


def forget() -> None:
    """Let directories decide again which backend is imported in this process."""
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable_")
    ]
