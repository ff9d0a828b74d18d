# SPDX-License-Identifier: BSD-3-Clause
"""The table of operators says what the dispatcher says, and why."""

from __future__ import annotations

import operators
import pytest


def test_the_table_and_the_dispatcher_agree() -> None:
    assert not operators.problems(), "csrc/aten/operators.yaml"


def test_the_table_is_what_the_dispatcher_says() -> None:
    table = operators.PAGE.read_text()
    if f"PyTorch {operators.version()}," not in table:
        pytest.skip(f"the table is of another PyTorch than this one, {operators.version()}")
    assert table == operators.page(), "run `make operators`"


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("add.out", "native"),
        ("add_.Tensor", "native"),
        ("tril_", "native"),
        ("matmul", "composite"),
        ("linalg_eig", "fallback"),
        ("cudnn_convolution", "absent"),
    ],
)
def test_statuses_are_told_apart(name: str, status: str) -> None:
    assert operators.status(name) == status
