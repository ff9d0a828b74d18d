# SPDX-License-Identifier: BSD-3-Clause
"""The cuda driver's kernels give their known answers where libraries compute some of them."""

from __future__ import annotations

import ctypes

import pytest
from driver_in_child import with_driver
from suites import (
    FAKE_CUBLAS,
    FAKE_CUDNN,
    OVER_FAKE_CUBLAS,
    OVER_FAKE_CUDNN,
    STANDIN,
    build_target,
    needs_standin,
)

from hal_conformance.answering import answer, not_taken
from hal_conformance.driver import Driver
from hal_conformance.known_answers import known_answers

pytestmark = needs_standin

#: Kernel -> the environment, the library, its count of calls, and how many there are at least.
AROUND = {
    "gemm": (OVER_FAKE_CUBLAS, FAKE_CUBLAS, "fakeCublasLtProducts", 150),
    "convolution": (OVER_FAKE_CUDNN, FAKE_CUDNN, "fakeCudnnConvolutions", 60),
    "convolution_weight": (OVER_FAKE_CUDNN, FAKE_CUDNN, "fakeCudnnConvolutions", 50),
}


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", AROUND)
def test_kernels_give_the_known_answers_around_a_library(kernel: str) -> None:
    environment, library, count, at_least = AROUND[kernel]
    build_target(library.stem.removeprefix("lib"))

    def work(driver: Driver) -> int:
        driver.ok(driver.api.init())
        for case in known_answers(kernel):
            if not_taken(driver, case) is None:
                answer(driver, case)
        return int(getattr(ctypes.CDLL(str(library)), count)())

    ending = with_driver(STANDIN, environment, work, 600)
    assert str(ending) == "exit status 0", ending
    assert int(ending.payload) >= at_least
