# SPDX-License-Identifier: BSD-3-Clause
"""What the operator tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import torch_puone as puone


@pytest.fixture(autouse=True)
def _undisturbed() -> Iterator[None]:
    """Every test starts from one seed and no counts, and its late errors are its own."""
    torch.manual_seed(0)
    puone._reset_fallback_counts()
    yield
    for index in range(puone.device_count()):
        puone.synchronize(index)
