# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend on a driver that is unusual, and nowhere wrong."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LIBRARIES = Path(os.environ.get("PUONE_LIB_DIR", ROOT / "build" / "lib"))


def choose(oddity: str) -> None:
    """Let the reference backend, not imported yet, use the odd driver."""
    os.environ["PUONE_DRIVER"] = str(LIBRARIES / "libpuone_odd.so")
    os.environ["PUONE_LIAR"] = oddity
    os.environ["PUONE_LIAR_TARGET"] = str(LIBRARIES / "libpuone_sim.so")
