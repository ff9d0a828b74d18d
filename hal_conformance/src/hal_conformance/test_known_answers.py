# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel that the driver offers gives the known answers."""

from __future__ import annotations

import pytest

from hal_conformance.answering import answer, not_taken
from hal_conformance.covers import covers
from hal_conformance.driver import Driver
from hal_conformance.known_answers import known_answers

# Wrong answers that a failure shows.
SHOWN = 10


@covers("HAL-129", patience=12)
def test_a_kernel_gives_the_known_answers(hal: Driver, answered_kernel: str) -> None:
    if hal.kernel_info(answered_kernel) is None:
        pytest.skip(f"not offered: the kernel {answered_kernel}")
    cases = known_answers(answered_kernel)
    assert cases, f"hal_conformance.known_answers has no case of {answered_kernel}"
    lacking = {reason for case in cases if (reason := not_taken(hal, case))}
    taken = [case for case in cases if not not_taken(hal, case)]
    if not taken:
        pytest.skip(f"not offered: {', '.join(sorted(lacking))}")
    wrong = []
    for case in taken:
        try:
            answer(hal, case)
        except AssertionError as error:
            wrong.append(str(error))
    shown = "\n".join(wrong[:SHOWN])
    assert not wrong, f"{len(wrong)} of {len(taken)} launches gave wrong answers:\n{shown}"
