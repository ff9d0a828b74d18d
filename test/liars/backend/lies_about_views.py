# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes about memory that tensors share."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie


@lie("VIEW-002 VIEW-003", "view/shared:slice view/write:slice")
def a_slice_is_a_copy(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Slicing gives memory of its own."""
    result = call(*args, **kwargs)
    return result.clone() if name == "slice.Tensor" else result


@lie("VIEW-003 OP-003", "view/write:transpose operator/in_place:mul")
def writes_to_strided_views_are_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An in-place product with a view that is not contiguous is computed in a temporary."""
    if name in ("mul_.Tensor", "mul_.Scalar") and not args[0].is_contiguous():
        call(args[0].clone(memory_format=torch.contiguous_format), *args[1:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


@lie("VIEW-008", "view/resize_grow:*")
def resizing_forgets(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """resize_ gives fresh memory."""
    result = call(*args, **kwargs)
    return result.zero_() if name == "resize_" else result


@lie("VIEW-009 SER-004", "view/set:* serialization/sharing:views")
def set_copies(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """set_ to a storage copies it."""
    if name.startswith("set_.source_Storage"):
        args = (args[0], args[1].clone(), *args[2:])
    return call(*args, **kwargs)
