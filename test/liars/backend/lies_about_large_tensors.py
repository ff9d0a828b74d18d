# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that only tensors of more than 2^31 elements or bytes show."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie

#: What a signed number of 32 bits cannot count any more.
_MANY = 2**31


@lie("LARGE-001", "large/in_place:31")
def launches_are_counted_in_31_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """add_ computes the first 2^31 elements."""
    if name == "add_.Tensor" and args[0].numel() > _MANY:
        call(args[0].flatten()[:_MANY], *args[1:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


@lie("LARGE-002", "large/reduction:nine_31")
def positions_have_32_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """argmax keeps the position in an int."""
    result = call(*args, **kwargs)
    return result.to(torch.int32).to(torch.int64) if name == "argmax" else result


@lie("LARGE-003", "large/index_read:31")
def indices_have_31_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """index_select multiplies index and stride in 31 bits."""
    if name == "index_select":
        args = (*args[:2], args[2] % _MANY)
    return call(*args, **kwargs)


@lie("LARGE-004", "large/wide:work:int64")
def rows_far_away_are_not_summed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Sums of rows that begin more than 2^31 bytes behind the first are left out."""
    result = call(*args, **kwargs)
    if name == "sum.dim_IntList" and args[0].nbytes > _MANY:
        row = args[0].stride(0) * args[0].itemsize
        result[_MANY // row + 1 :] = 0
    return result


@lie("LARGE-005", "large/copy:to_host")
def transfers_end_after_31_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A transfer to the host moves 2^31 bytes at most."""
    result = call(*args, **kwargs)
    if name == "_to_copy" and result.is_cpu and result.nbytes > _MANY:
        result.flatten().view(torch.uint8)[_MANY:] = 0
    return result
