# SPDX-License-Identifier: BSD-3-Clause
"""An operator refuses to write to a tensor whose elements share memory."""

from __future__ import annotations

import torch
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, index, raised, zeros_index
from torch_conformance.checks.contract._calls import Write, ones
from torch_conformance.checks.contract._unsupported import is_unsupported

#: Element-wise operators, which write to a matrix of 3 x 4.
_ELEMENTWISE: dict[str, Write] = {
    "add": lambda x: x.add_(1),
    "sub": lambda x: x.sub_(ones(x, 3, 4), alpha=2),
    "mul": lambda x: x.mul_(ones(x, 3, 1)),
    "div": lambda x: x.div_(2),
    "div_floor": lambda x: x.div_(2, rounding_mode="floor"),
    "remainder": lambda x: x.remainder_(2),
    "fmod": lambda x: x.fmod_(2),
    "pow": lambda x: x.pow_(2),
    "clamp": lambda x: x.clamp_(0, 0.4),
    "clamp_min": lambda x: x.clamp_min_(0.7),
    "clamp_tensor": lambda x: x.clamp_(ones(x, 3, 4)),
    "relu": lambda x: x.relu_(),
    "neg": lambda x: x.neg_(),
    "abs": lambda x: x.abs_(),
    "sin": lambda x: x.sin_(),
    "exp": lambda x: x.exp_(),
    "sigmoid": lambda x: x.sigmoid_(),
    "tanh": lambda x: x.tanh_(),
    "sqrt": lambda x: x.sqrt_(),
    "round": lambda x: x.round_(),
    "nan_to_num": lambda x: x.nan_to_num_(),
    "erfinv": lambda x: x.erfinv_(),
    "elu": lambda x: functional.elu_(x),
    "celu": lambda x: torch.celu_(x),
    "leaky_relu": lambda x: functional.leaky_relu_(x),
    "hardtanh": lambda x: functional.hardtanh_(x),
    "addcmul": lambda x: x.addcmul_(ones(x, 3, 4), ones(x, 3, 4)),
    "addcdiv": lambda x: x.addcdiv_(ones(x, 3, 4), ones(x, 3, 4)),
    "lerp": lambda x: x.lerp_(ones(x, 3, 4), 0.5),
    "lerp_tensor": lambda x: x.lerp_(ones(x, 3, 4), ones(x, 3, 4)),
    "atan2": lambda x: x.atan2_(ones(x, 3, 4)),
    "hypot": lambda x: x.hypot_(ones(x, 3, 4)),
    "eq": lambda x: x.eq_(1),
    "logical_not": lambda x: x.logical_not_(),
    "logical_and": lambda x: x.logical_and_(ones(x, 3, 4)),
    "foreach_add": lambda x: torch._foreach_add_([x], 1),
    "foreach_mul": lambda x: torch._foreach_mul_([x], [ones(x, 3, 4)]),
    "add_out": lambda x: torch.add(ones(x, 3, 4), 1, out=x),
    "mul_out": lambda x: torch.mul(ones(x, 3, 4), ones(x, 4), out=x),
    "sin_out": lambda x: torch.sin(ones(x, 3, 4), out=x),
    "pow_out": lambda x: torch.pow(ones(x, 3, 4), 2, out=x),
    "eq_out": lambda x: torch.eq(ones(x, 3, 4), 1, out=x),
    "clamp_out": lambda x: torch.clamp(ones(x, 3, 4), 0, 1, out=x),
    "lerp_out": lambda x: torch.lerp(ones(x, 3, 4), ones(x, 3, 4), 0.5, out=x),
    "where_out": lambda x: torch.where(ones(x, 3, 4) > 0, ones(x, 4), ones(x, 1), out=x),
}

#: Other operators, of which the CPU refuses the same.
_OTHERS: dict[str, Write] = {
    "copy": lambda x: x.copy_(ones(x, 3, 4)),
    "copy_from_host": lambda x: x.copy_(torch.ones(3, 4)),
    "masked_scatter": lambda x: x.masked_scatter_(x > 0, ones(x, 12)),
    "index_copy": lambda x: x.index_copy_(0, index(x, 1), ones(x, 1, 4)),
    "index_add": lambda x: x.index_add_(0, index(x, 1), ones(x, 1, 4)),
    "scatter": lambda x: x.scatter_(0, zeros_index(x, 1, 4), ones(x, 1, 4)),
    "scatter_value": lambda x: x.scatter_(0, zeros_index(x, 1, 4), 1.0),
    "scatter_add": lambda x: x.scatter_add_(0, zeros_index(x, 1, 4), ones(x, 1, 4)),
    "scatter_reduce": lambda x: x.scatter_reduce_(0, zeros_index(x, 1, 4), ones(x, 1, 4), "amax"),
    "put": lambda x: x.put_(index(x, 1), ones(x, 1)),
    "normal": lambda x: x.normal_(),
    "uniform": lambda x: x.uniform_(),
    "random": lambda x: x.random_(),
    "bernoulli": lambda x: x.bernoulli_(0.5),
    "bernoulli_tensor": lambda x: x.bernoulli_(ones(x, 3, 4)),
    "exponential": lambda x: x.exponential_(),
    "cauchy": lambda x: x.cauchy_(),
    "log_normal": lambda x: x.log_normal_(),
    "geometric": lambda x: x.geometric_(0.5),
    "renorm": lambda x: x.renorm_(2, 0, 0.1),
    "addmm": lambda x: x.addmm_(ones(x, 3, 2), ones(x, 2, 4)),
    "addr": lambda x: x.addr_(ones(x, 3), ones(x, 4)),
    "addbmm": lambda x: x.addbmm_(ones(x, 1, 3, 2), ones(x, 1, 2, 4)),
    "mm_out": lambda x: torch.mm(ones(x, 3, 2), ones(x, 2, 4), out=x),
    "matmul_out": lambda x: torch.matmul(ones(x, 3, 2), ones(x, 2, 4), out=x),
    "cat_out": lambda x: torch.cat([ones(x, 2, 4), ones(x, 1, 4)], out=x),
    "stack_out": lambda x: torch.stack([ones(x, 4)] * 3, out=x),
    "gather_out": lambda x: torch.gather(ones(x, 3, 4), 1, zeros_index(x, 3, 4), out=x),
    "index_select_out": lambda x: torch.index_select(ones(x, 3, 4), 0, index(x, 0, 1, 2), out=x),
    "take_out": lambda x: torch.take(ones(x, 3, 4), zeros_index(x, 3, 4), out=x),
    "softmax_out": lambda x: torch.softmax(ones(x, 3, 4), 1, out=x),
    "scatter_out": lambda x: torch.scatter(ones(x, 3, 4), 0, zeros_index(x, 1, 4), 1.0, out=x),
    "index_add_out": lambda x: torch.index_add(ones(x, 3, 4), 0, index(x, 1), ones(x, 1, 4), out=x),
    "index_reduce": lambda x: x.index_reduce_(0, index(x, 1), ones(x, 1, 4), "amax"),
    "nonzero_out": lambda x: torch.nonzero(x > 0, out=zeros_index(x, 1, 1).expand(12, 2)),
    "masked_select_out": lambda x: torch.masked_select(ones(x, 3), ones(x, 3) > 0, out=x[:, 0]),
    "avg_pool_out": lambda x: torch.ops.aten.avg_pool2d.out(
        ones(x, 1, 6, 8), [2, 2], [2, 2], out=x[None]
    ),
    "log_softmax_out": lambda x: torch.log_softmax(ones(x, 3, 4), 1, out=x),
    "mse_loss_out": lambda x: torch.ops.aten.mse_loss.out(ones(x, 3, 4), ones(x, 3, 4), 0, out=x),
    "gelu_out": lambda x: torch.ops.aten.gelu.out(ones(x, 3, 4), out=x),
    "bernoulli_out": lambda x: torch.bernoulli(ones(x, 3, 4), out=x),
    "dropout": lambda x: functional.dropout(x, 0.5, inplace=True),
    "arange_out": lambda x: torch.arange(3, out=x[:, 0]),
    "linspace_out": lambda x: torch.linspace(0, 1, 3, out=x[:, 0]),
    "randn_out": lambda x: torch.randn(3, 4, out=x),
    "normal_out": lambda x: torch.normal(ones(x, 3, 4), 1.0, out=x),
}


def _shared_memory_is_refused(dev: Device, write: Write) -> None:
    """A write to three rows in the place of one raises the CPU's error, and writes nothing."""
    expected = raised(lambda: write(torch.full((1, 4), 0.5).expand(3, 4)))
    row = torch.full((1, 4), 0.5, device=dev.device())
    error = raised(lambda: write(row.expand(3, 4)), by=dev.synchronize)
    is_unsupported(error, expected)
    dev.assert_equal(row, torch.full((1, 4), 0.5))


@check("contract/internal_overlap", "CONTRACT-001", cases=_ELEMENTWISE)
def elements_that_share_memory_are_not_written(dev: Device, case: str) -> None:
    """An element-wise operator refuses to write to an expanded tensor, which it does not change."""
    _shared_memory_is_refused(dev, _ELEMENTWISE[case])


@check("contract/internal_overlap_others", "CONTRACT-003", cases=_OTHERS)
def other_operators_refuse_shared_memory(dev: Device, case: str) -> None:
    """An operator that is not element-wise refuses to write to an expanded tensor, as the CPU."""
    _shared_memory_is_refused(dev, _OTHERS[case])
