# SPDX-License-Identifier: BSD-3-Clause
"""Copies, joins, fills and sequences, in full precision and in half of it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Inputs
from torch_conformance.checks.sizes._sizes import LENGTHS, MILLION, ROWS, Work


def _permuted(*order: int) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        x, y = m.steps(65, 37, 129).permute(order), m.steps(65, 37, 129, seed=1).permute(order)
        filled = torch.zeros_like(m.steps(65, 37, 129)).permute(order)
        filled[:, 1:].copy_(y[:, 1:])
        return [x.contiguous(), filled, x.contiguous().copy_(y), x.reshape(-1)]

    return program


COPIED: dict[str, Work] = {
    "transposed": lambda m: [m.steps(1031, 970).t().contiguous(), m.steps(3, ROWS).t().clone()],
    "permuted_021": _permuted(0, 2, 1),
    "permuted_102": _permuted(1, 0, 2),
    "permuted_120": _permuted(1, 2, 0),
    "permuted_201": _permuted(2, 0, 1),
    "permuted_210": _permuted(2, 1, 0),
    "channels_last": lambda m: [
        m.steps(3, 65, 33, 37).to(memory_format=torch.channels_last),
        m.steps(3, 65, 33, 37).to(memory_format=torch.channels_last).contiguous(),
        m.steps(2, 129, 5, 7, 9).to(memory_format=torch.channels_last_3d),
    ],
    "strided": lambda m: [m.steps(262_151)[::2].clone(), m.steps(1031, 257)[::3, 5:].clone()],
    "into_strided": lambda m: _into(m.steps(1031, 257), m.steps(344, 126, seed=1)),
    "broadcast": lambda m: [m.steps(257).expand(1031, 257).clone(), m.steps(3).repeat(40_001)],
    "cat_many": lambda m: torch.cat([m.steps(i % 7, 5, seed=i % 7) for i in range(1500)]),
    "cat_rows": lambda m: torch.cat([m.steps(1031, n, seed=n) for n in (65, 129, 3, 257)], 1),
    "cat_long": lambda m: torch.cat([m.steps(n) for n in (*LENGTHS, MILLION)]),
    "stack": lambda m: [
        torch.stack([m.steps(65, 37, seed=i % 5) for i in range(300)], 2),
        torch.stack([m.steps(131_075), m.steps(131_075, seed=1)], 1),
    ],
    "split": lambda m: [part.clone() for part in m.steps(1031, 257).split((65, 129, 63), 1)],
    "flip": lambda m: [m.steps(MILLION).flip(0), m.steps(257, 1031).flip(0, 1)],
    "roll": lambda m: [m.steps(131_075).roll(65_537), m.steps(257, 1031).roll((5, 7), (0, 1))],
    "pad": lambda m: [
        functional.pad(m.steps(65, 1031), (3, 5, 2, 1), value=9),
        functional.pad(m.steps(2, 65, 129, 33), (1, 2, 3, 4), mode="reflect"),
        functional.pad(m.steps(1, 2, 65_537), (7, 9), mode="replicate"),
    ],
    "tril": lambda m: [m.steps(1031, 970).tril(-3), m.steps(3, 257, 301).triu(5)],
    "diagonal": lambda m: [m.steps(1031, 970).diagonal(3).clone(), m.steps(1031).diag_embed()],
    "unfold": lambda m: [
        m.steps(65_537).unfold(0, 9, 4).clone(),
        functional.unfold(m.steps(2, 65, 33, 37), (3, 2), padding=1, stride=(2, 1)),
    ],
    "overlapping": lambda m: m.steps(65_600).as_strided((8_193, 17), (8, 3)).clone(),
    "meshgrid": lambda m: [
        x.clone() for x in torch.meshgrid(m.steps(1031), m.steps(257), indexing="ij")
    ],
    "fill": lambda m: [
        torch.full((MILLION,), 3.0, device=m.device, dtype=m.dtype),
        m.steps(1031, 257).t()[3:, ::2].fill_(2),
        m.steps(MILLION).zero_(),
    ],
    "arange": lambda m: [
        torch.arange(MILLION, device=m.device),
        torch.arange(3, 400_003, 3, device=m.device, dtype=m.dtype),
    ],
    "linspace": lambda m: torch.linspace(0, 65_536, 131_073, device=m.device, dtype=m.dtype),
    "eye": lambda m: torch.eye(1031, 970, device=m.device, dtype=m.dtype),
    "indices": lambda m: [
        torch.tril_indices(1031, 257, 2, device=m.device),
        torch.triu_indices(257, 1031, -2, device=m.device),
    ],
    "window": lambda m: torch.hann_window(65_537, device=m.device, dtype=m.dtype),
}


def _into(target: Tensor, source: Tensor) -> Tensor:
    """The whole of a tensor, after a copy into every third row of its second half of columns."""
    target[::3, 131:].copy_(source)
    return target
