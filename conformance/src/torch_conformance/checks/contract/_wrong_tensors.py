# SPDX-License-Identifier: BSD-3-Clause
"""Functions that make, join, view or read tensors are called with wrong arguments."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import noise, zeros_index
from torch_conformance.checks.contract._calls import Write

TENSORS: dict[str, Write] = {
    "cat_dimensions": lambda x: torch.cat([x, x[0]]),
    "cat_dimension": lambda x: torch.cat([x, x], 2),
    "stack_sizes": lambda x: torch.stack([x, x.t()]),
    "flip_twice": lambda x: x.flip(1, 1),
    "triangular_vector": lambda x: x[0].tril(),
    "full_value": lambda x: torch.full((2,), 300, dtype=torch.int8, device=x.device),
    "arange_step": lambda x: torch.arange(0, 5, -1, device=x.device),
    "linspace_steps": lambda x: torch.linspace(0, 1, -1, device=x.device),
    "eye_size": lambda x: torch.eye(-1, device=x.device),
    "full_size": lambda x: torch.full((-1,), 1.0, device=x.device),
    "repeat_dimensions": lambda x: x.repeat(2),
    "unfold_size": lambda x: x.unfold(1, 9, 1),
    "roll_lengths": lambda x: x.roll((1, 2), 0),
    "diag_of_batch": lambda x: x[None].diag(),
    "diagonal_twice": lambda x: x.diagonal(0, 1, 1),
    "range_step": lambda x: torch.range(0, 5, -1, device=x.device),
    "arange_infinite": lambda x: torch.arange(0, float("inf"), device=x.device),
    "arange_zero": lambda x: torch.arange(0, 5, 0, device=x.device),
    "logspace_steps": lambda x: torch.logspace(0, 1, -1, device=x.device),
    "tril_indices_size": lambda x: torch.tril_indices(-1, 2, device=x.device),
    "expand_size": lambda x: x.expand(3, 5),
    "view_size": lambda x: x.view(5),
    "view_dtype": lambda x: x[:, :3].view(torch.float64),
    "narrow_length": lambda x: x.narrow(0, 1, 3),
    "select_index": lambda x: x.select(0, 3),
    "split_sizes": lambda x: x.split((1, 1)),
    "permute_twice": lambda x: x.permute(1, 1),
    "as_strided_size": lambda x: x.as_strided((2, 2), (1,)),
    "as_strided_memory": lambda x: x.as_strided((3, 5), (5, 1)),
    "view_as_complex_columns": lambda x: torch.view_as_complex(x[:, :3]),
    "view_as_real_of_floats": lambda x: torch.view_as_real(x),
    "set_data_sparse": lambda x: setattr(x, "data", noise((3, 4)).to_sparse()),
    "truth_of_nothing": lambda x: bool(x[:0]),
    "truth_of_many": lambda x: bool(x),
    "item_of_nothing": lambda x: x[:0].item(),
    "item_of_many": lambda x: x.item(),
    "cat_out_dtype": lambda x: torch.cat([x, x], out=zeros_index(x, 6, 4)),
    "kaiser_window_length": lambda x: torch.kaiser_window(-1, device=x.device),
    "hann_window_length": lambda x: torch.hann_window(-1, device=x.device),
    "hann_window_of_integers": lambda x: torch.hann_window(3, dtype=torch.int64, device=x.device),
    "repeat_negative": lambda x: x.repeat(-1, 1),
    "flip_dimension": lambda x: x.flip(2),
    "roll_dimension": lambda x: x.roll(1, 2),
}
