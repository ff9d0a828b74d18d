# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: calls that write to a tensor, and tensors of ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

#: A call that writes to `x`.
Write = Callable[[Tensor], Any]
#: A call that writes to `y` and reads `x`, which are of one shape.
Between = Callable[[Tensor, Tensor], Any]


def ones(like: Tensor, *shape: int) -> Tensor:
    """Ones of that shape, where `like` is."""
    return torch.ones(shape, device=like.device)
