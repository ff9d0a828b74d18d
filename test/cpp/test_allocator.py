# SPDX-License-Identifier: BSD-3-Clause
"""The device allocator's C++ tests, plain and under the compiler's sanitizers."""

from __future__ import annotations

import pytest
from sanitizers import BUILDS, REPORTS, SANITIZERS, build, run


@pytest.mark.parametrize("sanitizer", BUILDS)
def test_the_device_allocator_is_clean(sanitizer: str) -> None:
    executable = build(sanitizer, folder_of="lib", target="allocator_tests")
    output = run([executable], SANITIZERS[sanitizer], at_least=27)
    assert REPORTS.search(output) is None, output
