# SPDX-License-Identifier: BSD-3-Clause
"""A draw fills the view that it is given and nothing else, and may have no elements."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check

#: Views of a matrix of 16 x 24.
_VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda base: base.t()[:10],
    "sliced": lambda base: base[1::3, ::2],
    "offset": lambda base: base.flatten()[5:77],
}


@check("generator/strided", "GEN-019", needs=("generator",), cases=_VIEWS)
def random_fills_honour_strides(dev: Device, case: str) -> None:
    """An in-place draw into a view fills the view and nothing else."""
    torch.manual_seed(2)
    base = torch.full((16, 24), -1.0, device=dev.device())
    view = _VIEWS[case](base)
    view.uniform_()
    host = view.cpu()
    assert float(host.min()) >= 0.0
    assert host.unique().numel() > host.numel() // 2
    assert int((base.cpu() == -1.0).sum()) == base.numel() - view.numel()


@check("generator/empty", "GEN-019", needs=("generator",))
def drawing_no_numbers_works(dev: Device) -> None:
    """Random operators accept tensors without elements."""
    assert torch.rand(0, 3, device=dev.device()).shape == (0, 3)
    assert torch.empty(0, device=dev.device()).normal_().numel() == 0
    assert torch.randint(0, 5, (0,), device=dev.device()).numel() == 0
