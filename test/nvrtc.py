# SPDX-License-Identifier: BSD-3-Clause
"""The compiler for cards, which needs none."""

from __future__ import annotations

import pytest
from suites import ROOT

#: From the wheel of requirements/nvrtc.txt, which `make build-all` installs.
NVRTC = ROOT / "build" / "nvrtc" / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13"
needs_nvrtc = pytest.mark.skipif(
    not NVRTC.exists(), reason="NVRTC was not installed: `make build-all` does that"
)
