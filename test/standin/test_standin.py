# SPDX-License-Identifier: BSD-3-Clause
"""The stand-in for CUDA's runtime, and the cuda driver over it: C++ tests, under sanitizers too."""

from __future__ import annotations

import pytest
from sanitizers import REPORTS, SANITIZERS, build, run
from suites import LIBRARIES, build_target, needs_standin

pytestmark = needs_standin

# Executable -> fewer tests than this mean that something went wrong.
TESTS = {
    "standin_tests": 30,
    "standin_driver_tests": 10,
    "standin_device_error_tests": 10,
    "standin_blas_tests": 15,
    "standin_dnn_tests": 10,
}
# Sanitizers watch the driver with its simplest kernels, which multiply no matrices.
SANITIZED = ("standin_tests", "standin_driver_tests", "standin_device_error_tests")


@pytest.mark.parametrize("tests", TESTS)
def test_every_promise_is_kept(tests: str) -> None:
    build_target(tests)
    run([str(LIBRARIES.parent / "test" / "standin" / tests)], {}, at_least=TESTS[tests])


@pytest.mark.nightly
@pytest.mark.parametrize("tests", SANITIZED)
@pytest.mark.parametrize("sanitizer", [name for name in SANITIZERS if name])
def test_it_is_clean(sanitizer: str, tests: str) -> None:
    program = build(sanitizer, "test_standin", tests)
    output = run([program], SANITIZERS[sanitizer], at_least=TESTS[tests])
    assert REPORTS.search(output) is None, output
