# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes at the edges of operators: odd sizes, no dimensions, NaN, long sums, equal elements."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie

#: Elements of a vector, and of a block of a reduction.
_VECTOR, _BLOCK = 4, 256
#: Products that are added before they are rounded to 16 bits.
_TILE = 8


def _in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    """As many elements from where the tensor starts, whatever its strides say."""
    return tensor.as_strided(tensor.shape, torch.empty(tensor.shape, device="meta").stride())


# ---- sizes -------------------------------------------------------------------------------------


@lie("NUM-001", "numerics/size:exp")
def the_last_vector_is_not_computed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """exp computes whole vectors of four and leaves the elements after them."""
    result = call(*args, **kwargs)
    if name == "exp" and result.dim() == 1:
        result[result.numel() // _VECTOR * _VECTOR :] = 0
    return result


@lie("NUM-001", "numerics/size:sum")
def the_last_block_is_not_summed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sum adds whole blocks of 256 and drops what is left after them."""
    if name == "sum" and args[0].numel() > _BLOCK:
        args = (args[0].flatten()[: args[0].numel() // _BLOCK * _BLOCK],)
    return call(*args, **kwargs)


@lie("NUM-001", "numerics/size:add")
def the_last_element_is_doubled(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """add takes the last element of an odd number of them from its first operand only."""
    result = call(*args, **kwargs)
    if name == "add.Tensor" and result.dim() == 1 and result.numel() % 2:
        result[-1] = args[0][-1]
    return result


@lie("NUM-001", "numerics/shape:matmul")
def the_last_column_is_not_multiplied(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A matrix product writes whole tiles of four columns."""
    result = call(*args, **kwargs)
    if name == "mm":
        result[:, result.size(1) // _VECTOR * _VECTOR :] = 0
    return result


@lie("NUM-001", "numerics/shape:flip")
def flips_read_in_a_row(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """flip starts at the end of its memory and goes back, whatever the strides."""
    if name == "flip":
        args = (_in_a_row(args[0]), args[1])
    return call(*args, **kwargs)


# ---- no dimensions -----------------------------------------------------------------------------


@lie("NUM-002", "numerics/zero_dim:scan")
def scans_need_a_dimension(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """cumsum of a tensor without dimensions finds no dimension 0."""
    if name == "cumsum" and not args[0].dim():
        raise IndexError("dimension out of range")
    return call(*args, **kwargs)


@lie("NUM-002", "numerics/zero_dim:reduction_dim")
def sums_have_a_dimension(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sum over dimension 0 of a tensor without any has one element in one dimension."""
    result = call(*args, **kwargs)
    return result[None] if name == "sum.dim_IntList" and not args[0].dim() else result


# ---- NaN and infinities ------------------------------------------------------------------------


@lie("NUM-003", "numerics/special_binary:maximum")
def maximum_prefers_numbers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """maximum is the fmax of the device, which drops NaN."""
    return torch.fmax(*args) if name == "maximum" else call(*args, **kwargs)


@lie("NUM-003", "numerics/nan:max")
def max_skips_nan(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """max() starts with minus infinity and keeps what is greater, which NaN never is."""
    if name == "max":
        args = (torch.where(args[0].isnan(), float("-inf"), args[0]),)
    return call(*args, **kwargs)


@lie("NUM-010", "numerics/special_unary:relu")
def relu_of_nan_is_zero(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """relu keeps what is greater than zero and writes zero for the rest."""
    if name == "relu":
        return torch.where(args[0] > 0, args[0], 0.0)
    return call(*args, **kwargs)


@lie("NUM-003", "numerics/nan:sort")
def nan_is_sorted_to_the_front(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """sort takes NaN for the least number."""
    if name == "sort.stable":
        key = torch.where(args[0].isnan(), float("-inf"), args[0])
        order = call(key, *args[1:], **kwargs)[1]
        return args[0].gather(kwargs.get("dim", -1), order), order
    return call(*args, **kwargs)


# ---- long sums ---------------------------------------------------------------------------------


@lie("NUM-004", "numerics/long_sum:sum:float16 numerics/long_sum:sum:bfloat16")
def sums_are_accumulated_in_half(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sum of 16-bit numbers is rounded to 16 bits after each addition."""
    if name == "sum" and args[0].is_floating_point() and args[0].element_size() == 2:
        total = torch.zeros((), dtype=args[0].dtype)
        for value in args[0].cpu().flatten():
            total += value
        return total.to(args[0].device)
    return call(*args, **kwargs)


@lie("NUM-004", "numerics/long_sum:matmul:bfloat16 numerics/long_sum:matmul:float16")
def products_are_accumulated_in_half(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A matrix product adds what its tiles of eight give in 16 bits."""
    if name != "mm" or args[0].element_size() != 2:
        return call(*args, **kwargs)
    tiles = zip(args[0].cpu().split(_TILE, 1), args[1].cpu().split(_TILE, 0), strict=True)
    total = torch.zeros(args[0].size(0), args[1].size(1), dtype=args[0].dtype)
    for first, second in tiles:
        total += first @ second
    return total.to(args[0].device)


# ---- whole numbers -----------------------------------------------------------------------------


@lie("NUM-005", "numerics/integer_sum:sum:int32")
def sums_of_integers_overflow(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sum of integers is accumulated in 32 bits and widened at the end."""
    result = call(*args, **kwargs)
    narrow = name == "sum" and not args[0].is_floating_point() and args[0].element_size() <= 4
    return result.to(torch.int32).to(result.dtype) if narrow else result


@lie("NUM-005", "numerics/integer_sum:cumsum:int8")
def scans_keep_their_type(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """cumsum of integers has the type of its input."""
    result = call(*args, **kwargs)
    return result.to(args[0].dtype) if name == "cumsum" else result


@lie("NUM-011", "numerics/integer:remainder:int32 numerics/integer:remainder:int64")
def remainders_have_the_sign_of_c(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """remainder of integers is C's, whose sign is the dividend's."""
    return torch.fmod(*args) if name == "remainder.Tensor" else call(*args, **kwargs)


@lie("NUM-011", "numerics/integer:floor_divide:int32")
def floors_are_towards_zero(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Floor division of integers is C's, which rounds towards zero."""
    if name == "floor_divide":
        return torch.div(*args, rounding_mode="trunc")
    return call(*args, **kwargs)


# ---- equal elements ----------------------------------------------------------------------------


@lie("NUM-006", "numerics/ties:argmax")
def argmax_names_the_last(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Of equal elements, argmax names the last."""
    if name == "argmax" and len(args) > 1 and args[1] is not None:
        return args[0].size(args[1]) - 1 - call(args[0].flip(args[1]), *args[1:], **kwargs)
    return call(*args, **kwargs)


@lie("NUM-006", "numerics/ties:sort_stable")
def stable_sorts_are_not(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """sort accepts stable=True and reverses equal elements."""
    if name == "sort.stable":
        dim = kwargs.get("dim", -1)
        values, order = call(args[0].flip(dim), *args[1:], **kwargs)
        return values, args[0].size(dim) - 1 - order
    return call(*args, **kwargs)


# ---- the same bits -----------------------------------------------------------------------------


@lie("NUM-007", "numerics/repeated:sum")
def sums_depend_on_who_comes_first(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Blocks add their sums in the order in which they end, also with deterministic algorithms."""
    if name == "sum" and args[0].is_floating_point():
        flat = args[0].flatten()
        order = torch.randperm(flat.numel()).to(flat.device)
        return sum(call(part, **kwargs) for part in flat[order].split(flat.numel() // 8 + 1))
    return call(*args, **kwargs)


@lie("NUM-007", "numerics/repeated:index_add")
def scattered_sums_are_atomic(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """index_add_ adds atomically, in any order, also with deterministic algorithms."""
    if name == "index_add_":
        target, dim, index, source = args
        order = torch.randperm(index.numel()).to(index.device)
        args = (target, dim, index[order], source.index_select(dim, order))
    return call(*args, **kwargs)


# ---- broadcasting ------------------------------------------------------------------------------


@lie("NUM-008", "numerics/broadcast:mul")
def inner_dimensions_are_not_repeated(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product reads its smaller operand from the start again when it ends."""
    if name == "mul.Tensor" and isinstance(args[1], torch.Tensor):
        shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
        if 0 not in shape and args[1].numel() > 1 and shape.numel() % args[1].numel() == 0:
            times = shape.numel() // args[1].numel()
            args = (args[0], args[1].flatten().repeat(times).view(shape))
    return call(*args, **kwargs)


@lie("NUM-012", "numerics/broadcast_refused:in_place")
def growing_in_place_is_cut(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An in-place sum with a larger tensor takes as much of it as fits."""
    if name == "add_.Tensor" and args[0].dim() == args[1].dim():
        args = (args[0], args[1][tuple(slice(size) for size in args[0].shape)])
    return call(*args, **kwargs)


# ---- the same bits -----------------------------------------------------------------------------

_CALLS: list[str] = []


@lie("NUM-007 NUM-009", "numerics/repeated:sum numerics/repeated_anyway:sum")
def sums_are_added_as_they_come(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The partial sums of a reduction are added in the order in which they are ready."""
    result = call(*args, **kwargs)
    if name == "sum":
        _CALLS.append(name)
        result = result * (1 + len(_CALLS) % 2 * 2 * torch.finfo(result.dtype).eps)
    return result


@lie("NUM-007", "numerics/repeated_on_streams:index_add")
def rows_are_added_atomically(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """index_add adds atomically, in any order, also where that is not to be."""
    if name == "index_add_" and len(args[2]) > 1:
        _CALLS.append(name)
        if len(_CALLS) % 2:
            args = (*args[:2], args[2].flip(0), args[3].flip(0))
    return call(*args, **kwargs)
