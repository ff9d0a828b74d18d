# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in what operators do with memory when they fail."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie

_kept: list[Any] = []


@lie("MEM-019", "memory/after_exception:operator")
def failures_keep_their_operands(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator that fails keeps what it was given."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        _kept.append(args)
        raise


@lie("MEM-019", "memory/after_half")
def first_results_are_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator without memory for its second result forgets to return that of the first."""
    if not name.startswith("sort"):
        return call(*args, **kwargs)
    _kept.append(torch.empty_like(args[0]))
    result = call(*args, **kwargs)
    _kept.pop()
    return result
