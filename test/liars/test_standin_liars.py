# SPDX-License-Identifier: BSD-3-Clause
"""What the stand-in for CUDA is for: defects of the cuda driver's host code are caught over it."""

from __future__ import annotations

import os
import subprocess

import hal_suite
import pytest
from mutate import load
from suites import FAKE_NVRTC, LIBRARIES, OVER_FAKE_NCCL, ROOT, build_target, needs_standin

pytestmark = [needs_standin, pytest.mark.nightly]

LIES = load(ROOT / "test" / "standin")
BUILD = LIBRARIES.parent
LIBRARY = BUILD / "liars" / "lib" / "libpuone_lying_cuda_standin.so"
SMALL = {
    "PUONE_DRIVER": str(LIBRARY),
    "PUONE_CUDA_NVRTC": str(FAKE_NVRTC),
    "PUONE_STANDIN_MEMORY": "64",
    "PUONE_STANDIN_DEVICES": "1",
    **OVER_FAKE_NCCL,
}


@pytest.fixture(scope="module", autouse=True)
def _liars() -> None:
    build_target("standin_liars")


def program_of(check: str) -> str:
    """The driver's C++ tests that have it."""
    for tests in ("driver", "blas", "dnn"):
        if f"TEST({check})" in (ROOT / "test" / "standin" / f"test_{tests}.cpp").read_text():
            return f"lying_standin_{tests}_tests"
    raise AssertionError(f"no test is named {check}")


def passes(check: str, lie: str) -> bool:
    """Whether the driver's C++ test passes while the lie is told."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PUONE_")}
    command = [str(BUILD / "liars" / program_of(check)), check]
    environment = {**clean, "PUONE_LIE": lie}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_cuda_is_caught(lie: str) -> None:
    requirements, checks = LIES[lie].requirements, LIES[lie].checks
    assert requirements or checks
    assert [check for check in checks if passes(check, lie)] == []
    if requirements:
        _, failed = hal_suite.judge(requirements, {**SMALL, "PUONE_LIE": lie})
        assert set(requirements) <= set(failed)


def test_the_truth_passes_where_the_lies_fail() -> None:
    checks = {check for lie in LIES.values() for check in lie.checks}
    requirements = {name for lie in LIES.values() for name in lie.requirements}
    assert [check for check in sorted(checks) if not passes(check, "")] == []
    ran, failed = hal_suite.judge(sorted(requirements), {**SMALL, "PUONE_LIE": ""})
    assert failed == {}
    assert requirements <= set(ran)
