# SPDX-License-Identifier: BSD-3-Clause
"""The cuda driver's modules: what NVRTC makes of sources in the dialect runs on the executor."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvrtc import NVRTC, needs_nvrtc
from ptx_executor import CUDA_PTX, PTX_NVRTC, needs_ptx
from ptx_kernels import ENVIRONMENT
from suites import run_pytest

pytestmark = [needs_ptx, needs_nvrtc]


@pytest.mark.nightly
def test_modules_satisfy_the_requirements(tmp_path: Path) -> None:
    environment = {
        **ENVIRONMENT,
        "PUONE_STANDIN_MEMORY": "64",
        "PUONE_MODULE_CACHE": str(tmp_path),
        "PUONE_CUDA_NVRTC": str(PTX_NVRTC),
        "PUONE_PTX_NVRTC": str(NVRTC),
    }
    options = ["--should=fail", "--driver-deadline=120", "--tb=short", "-k", "test_module"]
    done = run_pytest(
        ["hal_conformance", f"--driver={CUDA_PTX}", *options], environment, timeout=1800
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout
