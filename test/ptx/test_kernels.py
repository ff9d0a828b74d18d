# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc made of the kernels gives their known answers, without an error in device code."""

from __future__ import annotations

import pytest
from ptx_executor import needs_ptx
from ptx_kernels import check, families

pytestmark = needs_ptx

#: One or two of each idiom, which take seconds together.
FEW = (
    "add",
    "amax",
    "avg_pool",
    "batch_norm_scale",
    "cat",
    "cumprod",
    "delay",
    "dropout",
    "erf",
    "fill",
    "foreach_add",
    "fused_sgd",
    "group_norm",
    "index_get",
    "masked_fill",
    "softmax",
    "where",
)


@pytest.mark.parametrize("name", FEW)
def test_a_few_kernels_give_the_known_answers(name: str) -> None:
    check([name])


@pytest.mark.nightly
@pytest.mark.parametrize("family", dict(families()))
def test_every_kernel_gives_the_known_answers(family: str) -> None:
    check(dict(families())[family])
