# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that only more elements than one block, launch or 16-bit number holds show."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie

#: What an unsigned number of 16 bits cannot count any more; and the elements of a long row.
_MANY = 2**16
#: The channels, features or columns of one tile.
_TILE = 64
#: The tensors of a list that one launch takes.
_LAUNCH = 64


def _cut(tensor: torch.Tensor, length: int = _MANY) -> torch.Tensor:
    """What is behind the first so many elements of the last dimension becomes zero."""
    if tensor.dim() and tensor.size(-1) > length:
        tensor[..., length:] = 0
    return tensor


@lie("SIZE-001", "sizes/pointwise:exp")
def grids_end_after_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """exp computes the first 2^16 elements."""
    result = call(*args, **kwargs)
    return _cut(result) if name == "exp" else result


@lie("SIZE-002", "sizes/layout:*")
def broadcast_rows_end_after_a_tile(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """mul takes the first tile of a broadcast row for all others."""
    if name == "mul.Tensor" and isinstance(args[1], torch.Tensor) and args[1].dim() == 1:
        row = args[1].clone()
        row[_TILE:] = row[0] if row.numel() else 0
        args = (args[0], row)
    return call(*args, **kwargs)


@lie("SIZE-003", "sizes/reduction:sum")
def long_rows_are_summed_in_part(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sum over a dimension takes its first 2^16 elements."""
    if name == "sum.dim_IntList" and args[0].dim():
        (dim,) = args[1] if len(args[1]) == 1 else (0,)
        args = (args[0].narrow(dim, 0, min(_MANY, args[0].size(dim))), *args[1:])
    return call(*args, **kwargs)


@lie("SIZE-004", "sizes/scan:cumsum")
def scans_forget_their_state(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """cumsum begins again behind 2^16 elements."""
    result = call(*args, **kwargs)
    if name == "cumsum" and result.size(args[1]) > _MANY:
        rest = result.size(args[1]) - _MANY
        last = result.narrow(args[1], _MANY - 1, 1)
        result.narrow(args[1], _MANY, rest).sub_(last.clone())
    return result


@lie("SIZE-005", "sizes/sort:sort")
def long_rows_are_sorted_in_two_parts(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """sort orders the first 2^16 elements, and then the others, but does not merge the two."""
    result = call(*args, **kwargs)
    if name.startswith("sort") and result[0].dim() == 1 and result[0].numel() > _MANY:
        values, indices = result
        first = indices < _MANY
        order = torch.cat([first.nonzero().flatten(), (~first).nonzero().flatten()])
        return values[order], indices[order]
    return result


@lie("SIZE-006", "sizes/index_read:index")
def indices_have_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """index keeps 16 bits of each index."""
    if name == "index.Tensor":
        kept = [i % _MANY if i is not None and i.dtype == torch.int64 else i for i in args[1]]
        args = (args[0], kept)
    return call(*args, **kwargs)


@lie("SIZE-007", "sizes/copy:*")
def joins_end_after_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """cat writes the first 2^16 elements of each row."""
    result = call(*args, **kwargs)
    return _cut(result) if name == "cat" else result


@lie("SIZE-008", "sizes/product:*")
def the_last_summands_are_left_out(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A matrix product adds whole tiles of 64 summands."""
    if name == "mm" and args[0].size(1) > _TILE:
        whole = args[0].size(1) // _TILE * _TILE
        args = (args[0][:, :whole], args[1][:whole])
    return call(*args, **kwargs)


@lie("SIZE-009", "sizes/convolution:*")
def the_last_channels_are_left_out(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A convolution writes whole tiles of 64 channels."""
    result = call(*args, **kwargs)
    if "convolution" in name and "backward" not in name and result.size(1) > _TILE:
        result[:, result.size(1) // _TILE * _TILE :] = 0
    return result


@lie("SIZE-010", "sizes/softmax:*")
def long_rows_are_normalised_in_part(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """softmax writes the first 2^16 elements of each row."""
    result = call(*args, **kwargs)
    return _cut(result) if name == "_softmax" else result


@lie("SIZE-011", "sizes/list:*")
def the_second_launch_of_a_list_is_left_out(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operators on lists leave the tensors behind the first launch as they are."""
    if name.startswith("_foreach_add_"):
        args = tuple(arg[:_LAUNCH] if isinstance(arg, list) else arg for arg in args)
    return call(*args, **kwargs)


@lie("SIZE-012", "sizes/narrow:copy_cat*")
def joins_of_narrow_numbers_end_after_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """cat writes the first 2^16 elements of each row, if they have 16 bits each."""
    result = call(*args, **kwargs)
    if name == "cat" and result.dtype in (torch.float16, torch.bfloat16):
        return _cut(result)
    return result
