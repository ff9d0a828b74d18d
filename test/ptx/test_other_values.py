# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc made of the kernels gives sim's results for values that nobody chose."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from ptx_executor import needs_ptx
from ptx_kernels import SHOWN, families, in_child
from ptx_redrawn import COMPARABLE, NOT_COMPARED, SEEDS, unlike_sim

pytestmark = needs_ptx


@pytest.mark.parametrize("kernel", ["atan2", "sigmoid", "sin"])
def test_a_few_kernels_agree_with_sim_on_random_values(kernel: str) -> None:
    agrees(kernel)


def test_a_kernel_agrees_with_sim_after_this_process_has_used_sim() -> None:
    torch.ones(1, device="puone")
    agrees("where")


@pytest.mark.nightly
@pytest.mark.parametrize("family", COMPARABLE)
def test_every_kernel_agrees_with_sim_on_random_values(family: str) -> None:
    for kernel in dict(families())[family]:
        agrees(kernel)


def agrees(kernel: str) -> None:
    taken, wrong = in_child(partial(unlike_sim, kernel, SEEDS))
    assert taken or kernel in NOT_COMPARED, f"no case of {kernel} is compared"
    assert not wrong, "\n".join(wrong[:SHOWN])
