# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: views of a tensor, and where a copy begins and ends."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device

View = Callable[[torch.Tensor], torch.Tensor]
CopyTo = Callable[[torch.Tensor, torch.device], torch.Tensor]

BASE = (8, 12)

#: Views of an (8, 12) tensor; every element of the result is a separate memory location.
LAYOUTS: dict[str, View] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[1::2, ::3],
    "row_slice": lambda x: x[2:5],
    "offset": lambda x: x.flatten()[3:],
    "odd_offset_strided": lambda x: x.flatten()[1::5],
    "permuted": lambda x: x.view(2, 4, 3, 4).permute(3, 1, 0, 2),
    "channels_last": lambda x: x.view(2, 4, 4, 3).permute(0, 3, 1, 2),
    "diagonal": lambda x: x.diagonal(),
    "rank_eight": lambda x: x.view(2, 2, 2, 2, 2, 3, 1, 1).permute(7, 3, 5, 0, 6, 2, 4, 1),
    "zero_dim": lambda x: x[3, 5],
    "blocks": lambda x: x.view(2, 4, 4, 3)[:, 1:3],
    "every_second_block": lambda x: x.view(4, 2, 4, 3)[1:, ::2],
    "rows_of_blocks": lambda x: x.view(2, 4, 4, 3)[:, :, 1:3],
    "blocks_reordered": lambda x: x.view(2, 4, 4, 3).transpose(0, 1)[1:],
    "single": lambda x: x.view(8, 1, 12, 1)[::2, :, 3:7],
    "single_strided": lambda x: x.as_strided((4, 1, 5, 1), (24, 7, 2, 3), 3),
    "empty": lambda x: x[:0],
    "empty_inner": lambda x: x[:, 4:4],
}

#: Views in which several elements share one location: they can be read, not written.
OVERLAPPING: dict[str, View] = {
    "expanded_rows": lambda x: x[:1].expand(5, -1),
    "expanded_columns": lambda x: x[:, 2:3].expand(-1, 7),
    "expanded_scalar": lambda x: x[3, 5].expand(4, 4),
    "windows": lambda x: x.flatten().unfold(0, 4, 2),
    "as_strided": lambda x: x.as_strided((5, 6), (1, 1), 2),
}

READABLE = {**LAYOUTS, **OVERLAPPING}

_CPU = torch.device("cpu")

#: Where a copy reads and where it writes.
Ends = Callable[[Device], tuple[torch.device, torch.device]]
DIRECTIONS: dict[str, Ends] = {
    "h2d": lambda dev: (_CPU, dev.device()),
    "d2h": lambda dev: (dev.device(), _CPU),
    "d2d": lambda dev: (dev.device(), dev.device()),
}

UNTOUCHED = 123  # no value of a ramp, nor what memory holds by chance
