# SPDX-License-Identifier: BSD-3-Clause
"""The table of operators says what the dispatcher says, and why."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def generator(root: Path) -> ModuleType:
    """docs/operators.py, which is a program and in no package."""
    specification = importlib.util.spec_from_file_location("operators", root / "docs/operators.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_table_and_the_dispatcher_agree(generator: ModuleType) -> None:
    assert not generator.problems(), "csrc/aten/operators.yaml"


def test_the_table_is_what_the_dispatcher_says(generator: ModuleType) -> None:
    table = generator.PAGE.read_text()
    if f"PyTorch {generator.version()}," not in table:
        pytest.skip(f"the table is of another PyTorch than this one, {generator.version()}")
    assert table == generator.page(), "run `make operators`"


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
def test_statuses_are_told_apart(generator: ModuleType, name: str, status: str) -> None:
    assert generator.status(name) == status
