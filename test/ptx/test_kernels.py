# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc made of the kernels gives their known answers, without an error in device code."""

from __future__ import annotations

import ctypes
from functools import partial

import pytest
from ptx_executor import needs_ptx
from ptx_kernels import SHOWN, check, families, in_child, wrong_answers
from suites import FAKE_CUBLAS, OVER_FAKE_CUBLAS

from hal_conformance.answers import INTEGERS
from hal_conformance.known_answers import known_answers

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


def around_a_library(kernel: str) -> tuple[list[str], int]:
    """What is wrong where a library multiplies floats, and how many products it had."""
    cases = (case for case in known_answers(kernel) if not set(case.types) & set(INTEGERS))
    _, wrong = wrong_answers(cases)
    return wrong, ctypes.CDLL(str(FAKE_CUBLAS)).fakeCublasProducts()


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", ["gemm", "convolution"])
def test_kernels_give_the_known_answers_around_products_by_a_library(kernel: str) -> None:
    wrong, products = in_child(partial(around_a_library, kernel), environment=OVER_FAKE_CUBLAS)
    assert not wrong, "\n".join(wrong[:SHOWN])
    assert products, "no product was the library's"
