# SPDX-License-Identifier: BSD-3-Clause
"""Operators that take an index or a mask are called with wrong arguments."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import index, zeros_index
from torch_conformance.checks.contract._calls import Write, ones


def _nonzero_in_place(x: Tensor) -> Tensor:
    memory = x.flatten().fill_(1)
    return torch.nonzero(memory[:10], out=memory[1:11].view(10, 1))


INDICES: dict[str, Write] = {
    "gather_dtype": lambda x: x.gather(1, x),
    "gather_dimensions": lambda x: x.gather(1, zeros_index(x, 3)),
    "gather_size": lambda x: x.gather(1, zeros_index(x, 5, 4)),
    "scatter_dtype": lambda x: x.scatter(1, zeros_index(x, 3, 1), x.long()),
    "scatter_size": lambda x: x.scatter(1, zeros_index(x, 3, 5), x),
    "index_select_dtype": lambda x: x.index_select(0, x[0]),
    "index_select_matrix": lambda x: x.index_select(0, zeros_index(x, 2, 2)),
    "index_add_size": lambda x: x.index_add(0, index(x, 0, 1), x),
    "index_copy_size": lambda x: x.index_copy(0, index(x, 0, 1), x),
    "index_fill_complex": lambda x: x.index_fill(0, index(x, 0), 1j),
    "index_put_nothing": lambda x: x.index_put([], ones(x, 1)),
    "index_put_number": lambda x: x.index_put([x.sum() != 0], ones(x, 4)),
    "index_too_many": lambda x: x[index(x, 0), index(x, 0), index(x, 0)],
    "index_sizes": lambda x: x[index(x, 0, 1, 2), index(x, 0, 1)],
    "index_mask_size": lambda x: x[ones(x, 2).bool()],
    "masked_fill_dtype": lambda x: x.masked_fill(x, 1.0),
    "masked_fill_value": lambda x: x.masked_fill(x > 0, ones(x, 2)),
    "masked_select_dtype": lambda x: x.masked_select(x),
    "take_dtype": lambda x: x.take(x),
    "masked_fill_number": lambda x: x.to(torch.int8).masked_fill_(x > 0, 300),
    "masked_fill_tensor": lambda x: x.to(torch.int8).masked_fill_(x > 0, torch.tensor(300)),
    "index_fill_number": lambda x: x.to(torch.int8).index_fill_(0, index(x, 0), 300),
    "index_fill_tensor": lambda x: x.to(torch.int8).index_fill_(0, index(x, 0), torch.tensor(300)),
    "scatter_number": lambda x: x.to(torch.int8).scatter_(1, zeros_index(x, 3, 1), 300),
    "repeats_of_fractions": lambda x: x.repeat_interleave(ones(x, 3), 0),
    "one_hot_floats": lambda x: functional.one_hot(x),
    "index_fill_dtype": lambda x: x.index_fill(0, x[0], 1.0),
    "index_fill_matrix": lambda x: x.index_fill(0, zeros_index(x, 2, 2), 1.0),
    "index_fill_value": lambda x: x.index_fill(0, index(x, 0), ones(x, 2)),
    "index_add_dtype": lambda x: x.index_add(0, x[0], x),
    "index_add_matrix": lambda x: x.index_add(0, zeros_index(x, 3, 1), x),
    "index_copy_dtype": lambda x: x.index_copy(0, x[:, 0], x),
    "index_copy_matrix": lambda x: x.index_copy(0, zeros_index(x, 3, 1), x),
    "index_reduce_name": lambda x: x.index_reduce(0, index(x, 0, 1, 2), x, "median"),
    "scatter_add_size": lambda x: x.scatter_add(1, zeros_index(x, 3, 5), x),
    "scatter_reduce_name": lambda x: x.scatter_reduce(1, zeros_index(x, 3, 4), x, "median"),
    "put_count": lambda x: x.put(index(x, 0, 1), ones(x, 3)),
    "masked_scatter_dtype": lambda x: x.masked_scatter(x, x),
    "repeat_interleave_count": lambda x: x.repeat_interleave(index(x, 1, -1, 1), 0),
    "take_from_nothing": lambda x: x[:0].take(index(x, 0)),
    "take_out_dtype": lambda x: torch.take(x, index(x, 0), out=zeros_index(x, 1)),
    "put_dtype": lambda x: x.put(index(x, 0), zeros_index(x, 1)),
    "put_index_dtype": lambda x: x.put(x[0], x[0]),
    "put_from_nothing": lambda x: x[:0].put(index(x, 0), ones(x, 1)),
    "masked_scatter_source_dtype": lambda x: x.masked_scatter(x > 0, zeros_index(x, 12)),
    "index_select_out_dtype": lambda x: torch.index_select(
        x, 0, index(x, 0), out=zeros_index(x, 1, 4)
    ),
    "gather_out_dtype": lambda x: torch.gather(
        x, 0, zeros_index(x, 1, 4), out=zeros_index(x, 1, 4)
    ),
    "masked_select_out_dtype": lambda x: torch.masked_select(x, x > 0, out=zeros_index(x, 0)),
    "nonzero_out_of_its_memory": lambda x: _nonzero_in_place(x.long()),
    "nonzero_out_dtype": lambda x: torch.nonzero(x, out=ones(x, 12, 2)),
    "index_put_broadcast": lambda x: x.index_put((index(x, 0, 1),), ones(x, 3, 4)),
    "index_add_source_dtype": lambda x: x.index_add(0, index(x, 0), zeros_index(x, 1, 4)),
    "index_add_columns": lambda x: x.index_add(0, index(x, 0), ones(x, 1, 5)),
    "index_copy_source_dtype": lambda x: x.index_copy(0, index(x, 0), zeros_index(x, 1, 4)),
    "index_copy_columns": lambda x: x.index_copy(0, index(x, 0), ones(x, 1, 5)),
    "index_reduce_source_dtype": lambda x: x.index_reduce(
        0, index(x, 0), zeros_index(x, 1, 4), "amax"
    ),
    "index_reduce_dtype": lambda x: x.index_reduce(0, x[0, :1], x[:1], "amax"),
    "scatter_index_dtype": lambda x: x.scatter(0, x, x),
    "scatter_dimensions": lambda x: x.scatter(0, zeros_index(x, 3), x),
    "scatter_add_dtype": lambda x: x.scatter_add(0, zeros_index(x, 1, 4), zeros_index(x, 1, 4)),
    "scatter_add_index_dtype": lambda x: x.scatter_add(0, x, x),
    "scatter_reduce_dtype": lambda x: x.scatter_reduce(
        0, zeros_index(x, 1, 4), zeros_index(x, 1, 4), "amax"
    ),
    "scatter_source_columns": lambda x: x.scatter(0, zeros_index(x, 2, 4), x[:1]),
    "nonzero_static_size": lambda x: torch.nonzero_static(x, size=-1),
}
