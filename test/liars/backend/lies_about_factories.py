# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of the functions that make tensors."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie


@lie("FACT-004", "factory/second_device:zeros factory/second_device:empty")
def the_device_index_is_ignored(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every allocation is on device 0."""
    if "device" in kwargs:
        kwargs = {**kwargs, "device": torch.device(BACKEND, 0)}
    return call(*args, **kwargs)
