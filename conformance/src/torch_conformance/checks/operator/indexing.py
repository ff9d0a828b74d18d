# SPDX-License-Identifier: BSD-3-Clause
"""Indexing: tensors are read and written at indices, by masks, by scatters and through views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, Program, agree, check, ramp
from torch_conformance.checks.operator._programs import ints, x2, x3

_INDEX: dict[str, Program] = {
    "rows": lambda d: x2(d)[ints(d, 2, 0, 2)],
    "none_first": lambda d: x2(d)[:, ints(d, 3, 1)],
    "none_middle": lambda d: x3(d)[ints(d, 1, 0), :, ints(d, 2, 3)],
    "none_last": lambda d: x3(d)[:, ints(d, 1, 2), :],
    "adjacent": lambda d: x3(d)[:, ints(d, 1, 2), ints(d, 0, 3)],
    "broadcast": lambda d: x3(d)[ints(d, 0, 1).view(2, 1), ints(d, 0, 2, 1)],
    "negative": lambda d: x2(d)[ints(d, -1, -4)],
    "mask": lambda d: x2(d)[x2(d) > 0],
    "mask_rows": lambda d: x2(d)[torch.tensor([True, False, True, True], device=d)],
    "mask_and_index": lambda d: x2(d)[
        torch.tensor([True, False, True, False], device=d), ints(d, 1)
    ],
    "uint8_index_dtype": lambda d: x2(d)[ints(d, 1, 3).to(torch.int32)],
    "empty_index": lambda d: x2(d)[ints(d)],
    "empty_self": lambda d: x2(d)[:0][ints(d)],
    "empty_mask": lambda d: x2(d)[torch.zeros(4, 6, dtype=torch.bool, device=d)],
    "two_dim_index": lambda d: x2(d)[ints(d, 0, 1, 2, 3).view(2, 2)],
    "list": lambda d: x2(d)[[3, 1]],
    "with_slice": lambda d: x3(d)[1:, ints(d, 0, 2)],
    "with_new_axis": lambda d: x2(d)[None, ints(d, 1, 2)],
    "strided_self": lambda d: x2(d).t()[ints(d, 5, 0)],
    "host_index": lambda d: x2(d)[torch.tensor([1, 3])],
    "int64_values": lambda d: ramp((4, 6), torch.int64).to(d)[ints(d, 1), :],
    "bool_values": lambda d: ramp((4, 6), torch.bool).to(d)[ints(d, 1), :],
    "index_select": lambda d: x2(d).index_select(1, ints(d, 5, 0, 5)),
    "take": lambda d: x2(d).take(ints(d, 0, 23, 7)),
    "take_negative": lambda d: x2(d).t().take(ints(d, -1, -24, 3)),
    "take_along_dim": lambda d: x2(d).take_along_dim(x2(d).argsort(1), 1),
    "gather": lambda d: x2(d).gather(1, ints(d, 0, 5, 1, 4).view(4, 1)),
    "masked_select": lambda d: x2(d).masked_select(x2(d) > 3),
    "nonzero": lambda d: (x2(d) > 0).nonzero(),
    "nonzero_tuple": lambda d: (x2(d) > 0).nonzero(as_tuple=True),
    "argwhere": lambda d: torch.argwhere(x2(d) > 0),
    "where_one": lambda d: torch.where(x2(d) > 0),
}


@check("operator/index", "OP-001", cases=tuple(_INDEX))
def indexing_reads_what_the_cpu_reads(dev: Device, case: str) -> None:
    """x[...] with tensors, masks, None, slices and empties gives the CPU's result."""
    agree(dev, _INDEX[case])


def _put(value: Any, *indices: Any, accumulate: bool = False) -> Program:
    """A program that calls index_put_ on a (2, 3, 4) tensor."""

    def program(device: torch.device) -> Tensor:
        x = x3(device)
        where = tuple(None if i is None else ints(device, *i) for i in indices)
        what = value.to(device) if isinstance(value, Tensor) else torch.tensor(value, device=device)
        torch.ops.aten.index_put_(x, where, what, accumulate)
        return x

    return program


def _assign(*index: Any, value: Any) -> Program:
    def program(device: torch.device) -> Tensor:
        x = x2(device)
        where = tuple(i(device) if callable(i) else i for i in index)
        x[where] = value.to(device) if isinstance(value, Tensor) else value
        return x

    return program


INDEX_PUT: dict[str, Program] = {
    "first": _put(7.0, (1,)),
    "none_then_index": _put(7.0, None, (0, 2)),
    "none_between": _put(7.0, (1, 0), None, (3, 2)),
    "leading_nones": _put(7.0, None, None, (0, 3)),
    "values": _put(ramp((2, 2, 4)), None, (0, 2)),
    "broadcast_values": _put(ramp((4,)), None, (0, 2)),
    "accumulate": _put(ramp((2, 3, 4)), None, None, (0, 1, 0, 1), accumulate=True),
    "accumulate_repeated": _put(1.0, (0, 0, 0), (1, 1, 1), accumulate=True),
    "empty": _put(7.0, ()),
    "assign_mask": _assign(lambda d: x2(d) > 0, value=0.5),
    "assign_rows": _assign(lambda d: ints(d, 3, 1), value=ramp((2, 6)) * 2),
    "assign_column": _assign(slice(None), lambda d: ints(d, 2), value=9.0),
    "assign_int": _assign(1, lambda d: ints(d, 2, 3), value=9),
    "assign_empty_mask": _assign(lambda d: x2(d) > 1e6, value=0.5),
}


@check("operator/index_put", "OP-001", cases=tuple(INDEX_PUT))
def indexed_writes_write_what_the_cpu_writes(dev: Device, case: str) -> None:
    """index_put_ and assignments with optional indices change exactly the CPU's elements."""
    agree(dev, INDEX_PUT[case])


_SCATTER: dict[str, Program] = {
    "scatter": lambda d: x2(d).scatter_(1, ints(d, 0, 5, 2, 3).view(4, 1), 9.0),
    "scatter_tensor": lambda d: x2(d).scatter_(1, ints(d, 0, 5, 2, 3).view(4, 1), x2(d) * 2),
    "scatter_add": lambda d: x2(d).scatter_add_(0, ints(d, 0, 0, 1, 2, 3, 0).view(1, 6), x2(d)),
    "scatter_reduce": lambda d: x2(d).scatter_reduce(
        0, ints(d, 0, 0, 1, 2, 3, 0).view(1, 6), x2(d), "amax"
    ),
    "index_add": lambda d: x2(d).index_add_(0, ints(d, 1, 1), ramp((2, 6)).to(d), alpha=2),
    "index_copy": lambda d: x2(d).index_copy_(1, ints(d, 5, 0), ramp((4, 2)).to(d)),
    "index_fill": lambda d: x2(d).index_fill_(1, ints(d, 5, 0), 3.5),
    "index_fill_negative": lambda d: x2(d).index_fill_(1, ints(d, -1, 2), 3.5),
    "masked_fill": lambda d: x2(d).masked_fill_(x2(d) > 0, -1.0),
    "masked_fill_tensor": lambda d: x2(d).masked_fill(x2(d) > 0, torch.tensor(2.5, device=d)),
    "masked_scatter": lambda d: x2(d).masked_scatter_(x2(d) > 0, ramp((24,)).to(d)),
    "put": lambda d: x2(d).put_(ints(d, 3, 9), torch.tensor([1.5, 2.5], device=d)),
    "put_negative": lambda d: x2(d).put_(ints(d, -2, 9), torch.tensor([1.5, 2.5], device=d)),
    "select_scatter": lambda d: x2(d).select_scatter(ramp((6,)).to(d), 0, 2),
    "slice_scatter": lambda d: x2(d).slice_scatter(ramp((4, 2)).to(d), 1, 2, 4),
    "diagonal_scatter": lambda d: x2(d).diagonal_scatter(ramp((4,)).to(d) * 2),
    "as_strided_scatter": lambda d: x2(d).as_strided_scatter(ramp((2, 2)).to(d), (2, 2), (7, 2), 1),
    "fill_diagonal": lambda d: x2(d).fill_diagonal_(9.0),
}


@check("operator/scatter", "OP-001", cases=tuple(_SCATTER))
def scatters_agree(dev: Device, case: str) -> None:
    """The scatter, index_* and masked_* families agree with the CPU."""
    agree(dev, _SCATTER[case])


_PUT_STRIDED: dict[str, Callable[[torch.device, Tensor], Any]] = {
    "put": lambda d, x: x.__setitem__(ints(d, 0, 3), 5.0),
    "put_flat": lambda d, x: x.put_(ints(d, 2, 7), torch.tensor([5.0, 6.0], device=d)),
    "fill": lambda d, x: x.index_fill_(1, ints(d, 1), 5.0),
    "masked": lambda d, x: x.masked_fill_(x > 0, 5.0),
}


@check("operator/index_strided", "OP-001", cases=_PUT_STRIDED)
def indexed_writes_reach_through_views(dev: Device, case: str) -> None:
    """Indexed in-place operators on a strided view change the view's base and nothing else."""

    def program(device: torch.device) -> Tensor:
        base = ramp((6, 8)).to(device, copy=True)
        _PUT_STRIDED[case](device, base.t()[1::2, 2:])
        return base

    agree(dev, program)
