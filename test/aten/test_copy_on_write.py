# SPDX-License-Identifier: BSD-3-Clause
"""What an operator writes to a lazy clone does not reach the tensor that it was cloned from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

DEVICE = torch.device("puone")


def _ramp(*shape: int) -> Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).view(shape).to(DEVICE)


def _indices(*values: int) -> Tensor:
    return torch.tensor(values, device=DEVICE)


WRITES: dict[str, Callable[[Tensor], object]] = {
    "softmax": lambda y: torch.softmax(_ramp(4, 6), 0, out=y),
    "softmax_backward": lambda y: torch.ops.aten._softmax_backward_data.out(
        _ramp(4, 6), _ramp(4, 6), 0, torch.float32, grad_input=y
    ),
    "nll_loss": lambda y: torch.ops.aten.nll_loss_forward.output(
        _ramp(4, 6),
        _indices(0, 1, 2, 3),
        None,
        0,
        -100,
        output=y.view(-1)[:4],
        total_weight=torch.empty((), device=DEVICE),
    ),
    "nll_loss_weight": lambda y: torch.ops.aten.nll_loss_forward.output(
        _ramp(4, 6),
        _indices(0, 1, 2, 3),
        None,
        1,
        -100,
        output=torch.empty((), device=DEVICE),
        total_weight=y[0, 0],
    ),
    "nll_loss_backward": lambda y: torch.ops.aten.nll_loss_backward.grad_input(
        _ramp(4),
        _ramp(4, 6),
        _indices(0, 1, 2, 3),
        None,
        0,
        -100,
        torch.ones((), device=DEVICE),
        grad_input=y,
    ),
    "running_mean": lambda y: functional.batch_norm(
        _ramp(3, 24), y.view(-1), torch.ones(24, device=DEVICE), training=True
    ),
    "running_var": lambda y: functional.batch_norm(
        _ramp(3, 24), torch.ones(24, device=DEVICE), y.view(-1), training=True
    ),
    "cumsum": lambda y: torch.cumsum(_ramp(4, 6), 1, out=y),
    "logcumsumexp": lambda y: torch.logcumsumexp(_ramp(4, 6), 1, out=y),
    "tril": lambda y: torch.tril(_ramp(4, 6), out=y),
    "triu_in_place": lambda y: y.triu_(1),
    "mm": lambda y: torch.mm(_ramp(4, 4), _ramp(4, 6), out=y),
    "addmm_in_place": lambda y: y.addmm_(_ramp(4, 4), _ramp(4, 6)),
    "foreach": lambda y: torch._foreach_mul_([y], 2),
    "sum": lambda y: torch.sum(_ramp(3, 4, 6), 0, out=y),
    "arange": lambda y: torch.arange(24, out=y.view(-1)),
    "index_add": lambda y: y.index_add_(0, _indices(1), _ramp(1, 6) + 1),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing_to_a_lazy_clone_leaves_the_original(name: str) -> None:
    original = _ramp(4, 6) + 100
    before = original.cpu()
    clone = torch._lazy_clone(original)
    WRITES[name](clone)
    torch.testing.assert_close(original.cpu(), before, rtol=0, atol=0)
    assert not torch.equal(clone.cpu(), before), "the operator wrote nothing"


READS: dict[str, Callable[[Tensor], object]] = {
    "softmax": lambda x: torch.softmax(x, 0),
    "mm": lambda x: torch.mm(x, x.t()),
    "max_pool": lambda x: functional.max_pool2d(x.view(1, 1, 4, 6), 2),
    "conv": lambda x: functional.conv2d(x.view(1, 1, 4, 6), torch.ones(1, 1, 2, 2, device=DEVICE)),
    "interpolate": lambda x: functional.interpolate(x.view(1, 1, 4, 6), scale_factor=2),
    "searchsorted": lambda x: torch.searchsorted(torch.arange(9.0, device=DEVICE), x),
    "foreach": lambda x: torch._foreach_add([x], 1),
    "batch_norm_eval": lambda x: functional.batch_norm(
        _ramp(3, 24), x.view(-1), torch.ones(24, device=DEVICE)
    ),
}


@pytest.mark.parametrize("name", READS)
def test_reading_a_lazy_clone_leaves_the_memory_shared(name: str) -> None:
    clone = torch._lazy_clone(_ramp(4, 6))
    READS[name](clone)
    assert torch._C._is_cow_tensor(clone)  # type: ignore[attr-defined]  # not in the stubs
