# SPDX-License-Identifier: BSD-3-Clause
"""The tests of both programs: `pytest examples/testing`. Those of the racy one fail."""

from __future__ import annotations

from types import ModuleType

import prefetch
import prefetch_racy
import pytest
import torch

pytestmark = pytest.mark.puone(schedules=5, fallback="forbid")


@pytest.mark.parametrize("program", [prefetch, prefetch_racy], ids=["right", "racy"])
def test_the_mean_is_that_of_all_batches(program: ModuleType) -> None:
    batches = [torch.full((4096,), float(i)).pin_memory() for i in range(6)]
    assert program.mean(batches) == 2.5
