# SPDX-License-Identifier: BSD-3-Clause
"""`pytest hal_conformance --driver=PATH` runs the suite of this checkout, installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

pytest_plugins = ["hal_conformance.harness"]
