# SPDX-License-Identifier: BSD-3-Clause
"""Contracts that every operator keeps: overlapping memory, ignored inputs, in-place gradients.

What they are is the same for every operator; each table lists the calls that are tried.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from torch_conformance.authoring.api import (
    Device,
    agree,
    check,
    gradients,
    leaf,
    noise,
    raised,
)
from torch_conformance.authoring.api import index as _index
from torch_conformance.authoring.api import zeros_index as _zeros_index

CPU = torch.device("cpu")
_UNSUPPORTED = "unsupported operation"


def _ones(like: Tensor, *shape: int) -> Tensor:
    return torch.ones(shape, device=like.device)


# ---- elements that share memory ----------------------------------------------------------------

#: A call that writes to `x`.
Write = Callable[[Tensor], Any]

#: Element-wise operators, which write to a matrix of 3 x 4.
_ELEMENTWISE: dict[str, Write] = {
    "add": lambda x: x.add_(1),
    "sub": lambda x: x.sub_(_ones(x, 3, 4), alpha=2),
    "mul": lambda x: x.mul_(_ones(x, 3, 1)),
    "div": lambda x: x.div_(2),
    "div_floor": lambda x: x.div_(2, rounding_mode="floor"),
    "remainder": lambda x: x.remainder_(2),
    "fmod": lambda x: x.fmod_(2),
    "pow": lambda x: x.pow_(2),
    "clamp": lambda x: x.clamp_(0, 0.4),
    "clamp_min": lambda x: x.clamp_min_(0.7),
    "clamp_tensor": lambda x: x.clamp_(_ones(x, 3, 4)),
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
    "addcmul": lambda x: x.addcmul_(_ones(x, 3, 4), _ones(x, 3, 4)),
    "addcdiv": lambda x: x.addcdiv_(_ones(x, 3, 4), _ones(x, 3, 4)),
    "lerp": lambda x: x.lerp_(_ones(x, 3, 4), 0.5),
    "lerp_tensor": lambda x: x.lerp_(_ones(x, 3, 4), _ones(x, 3, 4)),
    "atan2": lambda x: x.atan2_(_ones(x, 3, 4)),
    "hypot": lambda x: x.hypot_(_ones(x, 3, 4)),
    "eq": lambda x: x.eq_(1),
    "logical_not": lambda x: x.logical_not_(),
    "logical_and": lambda x: x.logical_and_(_ones(x, 3, 4)),
    "foreach_add": lambda x: torch._foreach_add_([x], 1),
    "foreach_mul": lambda x: torch._foreach_mul_([x], [_ones(x, 3, 4)]),
    "add_out": lambda x: torch.add(_ones(x, 3, 4), 1, out=x),
    "mul_out": lambda x: torch.mul(_ones(x, 3, 4), _ones(x, 4), out=x),
    "sin_out": lambda x: torch.sin(_ones(x, 3, 4), out=x),
    "pow_out": lambda x: torch.pow(_ones(x, 3, 4), 2, out=x),
    "eq_out": lambda x: torch.eq(_ones(x, 3, 4), 1, out=x),
    "clamp_out": lambda x: torch.clamp(_ones(x, 3, 4), 0, 1, out=x),
    "lerp_out": lambda x: torch.lerp(_ones(x, 3, 4), _ones(x, 3, 4), 0.5, out=x),
    "where_out": lambda x: torch.where(_ones(x, 3, 4) > 0, _ones(x, 4), _ones(x, 1), out=x),
}

#: Other operators, of which the CPU refuses the same.
_OTHERS: dict[str, Write] = {
    "copy": lambda x: x.copy_(_ones(x, 3, 4)),
    "copy_from_host": lambda x: x.copy_(torch.ones(3, 4)),
    "masked_scatter": lambda x: x.masked_scatter_(x > 0, _ones(x, 12)),
    "index_copy": lambda x: x.index_copy_(0, _index(x, 1), _ones(x, 1, 4)),
    "index_add": lambda x: x.index_add_(0, _index(x, 1), _ones(x, 1, 4)),
    "scatter": lambda x: x.scatter_(0, _zeros_index(x, 1, 4), _ones(x, 1, 4)),
    "scatter_value": lambda x: x.scatter_(0, _zeros_index(x, 1, 4), 1.0),
    "scatter_add": lambda x: x.scatter_add_(0, _zeros_index(x, 1, 4), _ones(x, 1, 4)),
    "scatter_reduce": lambda x: x.scatter_reduce_(0, _zeros_index(x, 1, 4), _ones(x, 1, 4), "amax"),
    "put": lambda x: x.put_(_index(x, 1), _ones(x, 1)),
    "normal": lambda x: x.normal_(),
    "uniform": lambda x: x.uniform_(),
    "random": lambda x: x.random_(),
    "bernoulli": lambda x: x.bernoulli_(0.5),
    "bernoulli_tensor": lambda x: x.bernoulli_(_ones(x, 3, 4)),
    "exponential": lambda x: x.exponential_(),
    "cauchy": lambda x: x.cauchy_(),
    "log_normal": lambda x: x.log_normal_(),
    "geometric": lambda x: x.geometric_(0.5),
    "renorm": lambda x: x.renorm_(2, 0, 0.1),
    "addmm": lambda x: x.addmm_(_ones(x, 3, 2), _ones(x, 2, 4)),
    "addr": lambda x: x.addr_(_ones(x, 3), _ones(x, 4)),
    "addbmm": lambda x: x.addbmm_(_ones(x, 1, 3, 2), _ones(x, 1, 2, 4)),
    "mm_out": lambda x: torch.mm(_ones(x, 3, 2), _ones(x, 2, 4), out=x),
    "matmul_out": lambda x: torch.matmul(_ones(x, 3, 2), _ones(x, 2, 4), out=x),
    "cat_out": lambda x: torch.cat([_ones(x, 2, 4), _ones(x, 1, 4)], out=x),
    "stack_out": lambda x: torch.stack([_ones(x, 4)] * 3, out=x),
    "gather_out": lambda x: torch.gather(_ones(x, 3, 4), 1, _zeros_index(x, 3, 4), out=x),
    "index_select_out": lambda x: torch.index_select(_ones(x, 3, 4), 0, _index(x, 0, 1, 2), out=x),
    "take_out": lambda x: torch.take(_ones(x, 3, 4), _zeros_index(x, 3, 4), out=x),
    "softmax_out": lambda x: torch.softmax(_ones(x, 3, 4), 1, out=x),
    "scatter_out": lambda x: torch.scatter(_ones(x, 3, 4), 0, _zeros_index(x, 1, 4), 1.0, out=x),
    "index_add_out": lambda x: torch.index_add(
        _ones(x, 3, 4), 0, _index(x, 1), _ones(x, 1, 4), out=x
    ),
    "index_reduce": lambda x: x.index_reduce_(0, _index(x, 1), _ones(x, 1, 4), "amax"),
    "nonzero_out": lambda x: torch.nonzero(x > 0, out=_zeros_index(x, 1, 1).expand(12, 2)),
    "masked_select_out": lambda x: torch.masked_select(_ones(x, 3), _ones(x, 3) > 0, out=x[:, 0]),
    "avg_pool_out": lambda x: torch.ops.aten.avg_pool2d.out(
        _ones(x, 1, 6, 8), [2, 2], [2, 2], out=x[None]
    ),
    "log_softmax_out": lambda x: torch.log_softmax(_ones(x, 3, 4), 1, out=x),
    "mse_loss_out": lambda x: torch.ops.aten.mse_loss.out(_ones(x, 3, 4), _ones(x, 3, 4), 0, out=x),
    "gelu_out": lambda x: torch.ops.aten.gelu.out(_ones(x, 3, 4), out=x),
    "bernoulli_out": lambda x: torch.bernoulli(_ones(x, 3, 4), out=x),
    "dropout": lambda x: functional.dropout(x, 0.5, inplace=True),
    "arange_out": lambda x: torch.arange(3, out=x[:, 0]),
    "linspace_out": lambda x: torch.linspace(0, 1, 3, out=x[:, 0]),
    "randn_out": lambda x: torch.randn(3, 4, out=x),
    "normal_out": lambda x: torch.normal(_ones(x, 3, 4), 1.0, out=x),
}


def _shared_memory_is_refused(dev: Device, write: Write) -> None:
    """A write to three rows in the place of one raises the CPU's error, and writes nothing."""
    expected = raised(lambda: write(torch.full((1, 4), 0.5).expand(3, 4)))
    row = torch.full((1, 4), 0.5, device=dev.device())
    error = raised(lambda: write(row.expand(3, 4)), by=dev.synchronize)
    _is_unsupported(error, expected)
    dev.assert_equal(row, torch.full((1, 4), 0.5))


def _is_unsupported(error: Exception, expected: Exception) -> None:
    assert _UNSUPPORTED in str(expected), f"the CPU raises something else: {expected}"
    assert isinstance(error, RuntimeError), repr(error)
    assert _UNSUPPORTED in str(error), str(error)


@check("contract/internal_overlap", "CONTRACT-001", cases=_ELEMENTWISE)
def elements_that_share_memory_are_not_written(dev: Device, case: str) -> None:
    """An element-wise operator refuses to write to an expanded tensor, which it does not change."""
    _shared_memory_is_refused(dev, _ELEMENTWISE[case])


@check("contract/internal_overlap_others", "CONTRACT-003", cases=_OTHERS)
def other_operators_refuse_shared_memory(dev: Device, case: str) -> None:
    """An operator that is not element-wise refuses to write to an expanded tensor, as the CPU."""
    _shared_memory_is_refused(dev, _OTHERS[case])


# ---- outputs that overlap with inputs ------------------------------------------------------------

#: A call that writes to `y` and reads `x`, which are of one shape.
Between = Callable[[Tensor, Tensor], Any]

_BETWEEN: dict[str, Between] = {
    "add": lambda y, x: y.add_(x),
    "sub": lambda y, x: y.sub_(x, alpha=2),
    "mul": lambda y, x: y.mul_(x),
    "div": lambda y, x: y.div_(x),
    "maximum_out": lambda y, x: torch.maximum(x, _ones(x, 3, 4), out=y),
    "add_out": lambda y, x: torch.add(x, 1, out=y),
    "add_out_second": lambda y, x: torch.add(_ones(x, 3, 4), x, out=y),
    "mul_out": lambda y, x: torch.mul(x, x, out=y),
    "sin_out": lambda y, x: torch.sin(x, out=y),
    "neg_out": lambda y, x: torch.neg(x, out=y),
    "exp_out": lambda y, x: torch.exp(x, out=y),
    "pow_out": lambda y, x: torch.pow(x, 2, out=y),
    "clamp_out": lambda y, x: torch.clamp(x, 0, 1, out=y),
    "clamp_bound": lambda y, x: y.clamp_(min=x),
    "where_out": lambda y, x: torch.where(_ones(x, 3, 4) > 0, x, _ones(x, 1), out=y),
    "addcmul_first": lambda y, x: y.addcmul_(x, _ones(x, 3, 4), value=2),
    "addcmul_second": lambda y, x: y.addcmul_(_ones(x, 3, 4), x, value=2),
    "addcdiv": lambda y, x: y.addcdiv_(_ones(x, 3, 4), x, value=2),
    "lerp_end": lambda y, x: y.lerp_(x, 0.25),
    "lerp_weight": lambda y, x: y.lerp_(_ones(x, 3, 4), x),
    "atan2": lambda y, x: y.atan2_(x),
    "sigmoid_out": lambda y, x: torch.sigmoid(x, out=y),
    # These seldom have kernels of their own.
    "i0_out": lambda y, x: torch.special.i0(x, out=y),
    "bessel_out": lambda y, x: torch.special.bessel_j0(x, out=y),
}

#: Operators that read elements in another order than they write them.
_REORDERING: dict[str, Between] = {
    "index_select_out": lambda y, x: torch.index_select(x, 0, _index(x, 2, 1, 0), out=y),
    "gather_out": lambda y, x: torch.gather(x, 1, _zeros_index(x, 3, 4), out=y),
    "take_out": lambda y, x: torch.take(x, _zeros_index(x, 3, 4), out=y),
    "cat_out": lambda y, x: torch.cat([x[:1], x[1:]], out=y),
    "index_copy": lambda y, x: y.index_copy_(0, _index(x, 2, 1, 0), x),
    "index_add": lambda y, x: y.index_add_(0, _index(x, 2, 1, 0), x),
    "scatter": lambda y, x: y.scatter_(0, _zeros_index(x, 3, 4), x),
    "scatter_add": lambda y, x: y.scatter_add_(0, _zeros_index(x, 3, 4), x),
    "put": lambda y, x: y.put_(_index(x, 0, 5), x[0, :2]),
    "index_put": lambda y, x: y.index_put_((_index(x, 2, 1, 0),), x),
}


def _values() -> Tensor:
    return torch.linspace(0.25, 0.99, 13)


def _overlap_is_refused(dev: Device, write: Between, shift: int) -> None:
    """A write to a matrix that begins `shift` elements behind that which is read is refused.

    A fallback works on copies, by which it cannot see the overlap: then the result must be that of
    the numbers that were there before.
    """
    expected = raised(lambda: _overlapping(_values(), write, shift))
    base = _values().to(dev.device(), copy=True)
    try:
        _overlapping(base, write, shift)
        dev.synchronize()  # a device that is far away refuses a call when it has returned
    except RuntimeError as error:
        _is_unsupported(error, expected)
        dev.assert_equal(base, _values())
    else:
        native = dev.has("fallback_counter") and not dev.fallbacks()
        assert not native, "nothing was raised"
        dev.assert_close(base, _of_copies(write, shift))


def _overlapping(base: Tensor, write: Between, shift: int) -> object:
    return write(base[1:].view(3, 4), base[1 - shift : 13 - shift].view(3, 4))


def _of_copies(write: Between, shift: int) -> Tensor:
    """What the write leaves on the CPU if what it reads is a copy."""
    base = _values()
    write(base[1:].view(3, 4), base[1 - shift : 13 - shift].view(3, 4).clone())
    return base


@check("contract/partial_overlap", "CONTRACT-002", cases=_BETWEEN)
def outputs_that_overlap_in_part_are_refused(dev: Device, case: str) -> None:
    """An element-wise operator refuses to write one element behind what it reads."""
    _overlap_is_refused(dev, _BETWEEN[case], 1)


@check("contract/partial_overlap_reordering", "CONTRACT-003", cases=_REORDERING)
def reordering_operators_refuse_outputs_that_overlap(dev: Device, case: str) -> None:
    """An operator that reads in another order refuses to write one element behind what it reads."""
    _overlap_is_refused(dev, _REORDERING[case], 1)


@check("contract/partial_overlap_reordering:copy", "CONTRACT-003")
def copies_refuse_outputs_that_overlap(dev: Device) -> None:
    """copy_ refuses to write one element behind what it reads."""
    _overlap_is_refused(dev, lambda y, x: y.copy_(x), 1)


@check("contract/same_memory_reordering", "CONTRACT-003", cases=_REORDERING)
def reordering_operators_refuse_their_own_memory(dev: Device, case: str) -> None:
    """An operator that reads in another order refuses to write where it reads."""
    _overlap_is_refused(dev, _REORDERING[case], 0)


def _in_same_memory(device: torch.device, write: Between) -> Tensor:
    """Write to the matrix that is read, by another tensor of the same memory."""
    base = _values().to(device, copy=True)
    _overlapping(base, write, 0)
    return base


@check("contract/same_memory", "CONTRACT-004", cases=_BETWEEN)
def outputs_may_be_inputs(dev: Device, case: str) -> None:
    """An element-wise operator may write where it reads, also by another tensor of that memory."""
    agree(dev, lambda device: _in_same_memory(device, _BETWEEN[case]))


@check("contract/same_memory:transposed", "CONTRACT-004")
def outputs_may_be_strided_inputs(dev: Device) -> None:
    """Every element-wise operator of the table may write where it reads in a transposed matrix."""

    def program(device: torch.device) -> list[Tensor]:
        bases = []
        for write in _BETWEEN.values():
            base = _values()[:12].view(4, 3).to(device, copy=True)
            write(base.t(), base.t())
            bases.append(base)
        return bases

    agree(dev, program)


# ---- inputs that are ignored ---------------------------------------------------------------------

_A, _B = noise((3, 5)), noise((5, 4), seed=1)

#: A product of matrices that is added to an input: its name, shape and operands.
_PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[Tensor, ...]]] = {
    "addmm": ((3, 4), (_A, _B)),
    "addmv": ((3,), (_A, _B[:, 0])),
    "addr": ((3, 4), (_A[:, 0], _B[0])),
    "addbmm": ((3, 4), (_A.expand(2, 3, 5), _B.expand(2, 5, 4))),
    "baddbmm": ((2, 3, 4), (_A.expand(2, 3, 5), _B.expand(2, 5, 4))),
    "addmm_inner_empty": ((3, 4), (_A[:, :0], _B[:0])),
    "addmv_inner_empty": ((3,), (_A[:, :0], _B[:0, 0])),
    "addbmm_inner_empty": ((3, 4), (_A.expand(2, 3, 5)[..., :0], _B.expand(2, 5, 4)[:, :0])),
    "baddbmm_inner_empty": ((2, 3, 4), (_A.expand(2, 3, 5)[..., :0], _B.expand(2, 5, 4)[:, :0])),
}

#: How a product is called: with its name, input and operands.
_CALLS: dict[str, Callable[..., Tensor]] = {
    "returned": lambda name, x, *given: getattr(torch, name)(x, *given, beta=0, alpha=2),
    "in_place": lambda name, x, *given: getattr(x, name + "_")(*given, beta=0, alpha=2),
    "out": lambda name, x, *given: getattr(torch, name)(
        x, *given, beta=0, alpha=2, out=torch.full_like(x, float("nan"))
    ),
    "out_is_input": lambda name, x, *given: getattr(torch, name)(x, *given, beta=0, alpha=2, out=x),
}
#: Values that would show if they were multiplied by zero.
_LOUD = (float("nan"), float("inf"))


def _strides(x: Tensor) -> list[Tensor]:
    """The same elements in row-major and in column-major order."""
    return [x, x.mT.contiguous().mT] if x.dim() > 1 else [x]


@check(
    "contract/ignored_input",
    "CONTRACT-005",
    cases=_PRODUCTS,
    dtypes=("float32", "bfloat16", "float64"),
)
def a_factor_of_zero_ignores_the_input(dev: Device, case: str, dtype: torch.dtype) -> None:
    """With beta=0 NaN and infinity of the input do not reach the result of any form of the call."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float64", "bfloat16"})
    name = case.removesuffix("_inner_empty")
    shape, operands = _PRODUCTS[case]
    given = [operand.to(dtype) for operand in operands]
    there = [operand.to(dev.device()) for operand in given]
    expected = getattr(torch, name)(torch.zeros(shape, dtype=dtype), *given, beta=0, alpha=2)
    for loud in _LOUD:
        for call in _CALLS.values():
            for x in _strides(torch.full(shape, loud, dtype=dtype)):
                dev.assert_close(call(name, x.to(dev.device()), *there), expected)


@check("contract/ignored_input_row", "CONTRACT-005", cases=("addmm", "addbmm", "baddbmm", "addr"))
def a_factor_of_zero_ignores_a_row(dev: Device, case: str) -> None:
    """With beta=0 an input that is expanded, or of infinities, is ignored as well."""
    shape, operands = _PRODUCTS[case]
    there = [operand.to(dev.device()) for operand in operands]
    expected = getattr(torch, case)(torch.zeros(shape), *operands, beta=0)
    for loud in _LOUD:
        row = torch.full(shape[-1:], loud, device=dev.device())
        dev.assert_close(getattr(torch, case)(row, *there, beta=0), expected)


@check("contract/ignored_gradient", "CONTRACT-005", cases=("addmm", "addmv", "addbmm", "baddbmm"))
def an_ignored_input_has_no_gradient(dev: Device, case: str) -> None:
    """With beta=0 the gradient of an input of NaN is zero, and those of the factors are right."""
    shape, operands = _PRODUCTS[case]

    def program(device: torch.device) -> list[Tensor]:
        x = torch.full(shape, float("nan")).to(device).requires_grad_()
        leaves = [operand.to(device, copy=True).requires_grad_() for operand in operands]
        return gradients(getattr(torch, case)(x, *leaves, beta=0, alpha=2), x, *leaves)

    agree(dev, program)


# ---- in-place calls and autograd -----------------------------------------------------------------

#: An in-place call on `x`, with another tensor `y` of its shape; both have gradients.
_IN_PLACE: dict[str, Between] = {
    "add": lambda x, y: x.add_(y, alpha=-1.75),
    "sub": lambda x, y: x.sub_(y, alpha=2.5),
    "sub_number": lambda x, y: x.sub_(1.5, alpha=2.5),
    "mul": lambda x, y: x.mul_(y),
    "mul_row": lambda x, y: x.mul_(y[:1]),
    "div": lambda x, y: x.div_(y.abs() + 1),
    "div_trunc": lambda x, y: x.div_(0.3, rounding_mode="trunc"),
    "pow_number": lambda x, y: x.abs_().add_(1).pow_(2.5),
    "pow": lambda x, y: x.abs_().add_(1).pow_(y),
    "addcmul": lambda x, y: x.addcmul_(y, y.sin(), value=-0.7),
    "addcdiv": lambda x, y: x.addcdiv_(y, y.abs() + 1, value=1.7),
    "lerp": lambda x, y: x.lerp_(y, 0.3),
    "lerp_beyond": lambda x, y: x.lerp_(y, 1.6),
    "lerp_tensor": lambda x, y: x.lerp_(y, y.sigmoid()),
    "clamp": lambda x, y: x.clamp_(-0.4, 0.6),
    "clamp_min": lambda x, y: x.clamp_(min=-0.2),
    "clamp_max": lambda x, y: x.clamp_(max=0.2),
    "clamp_crossed": lambda x, y: x.clamp_(0.6, -0.4),
    "clamp_tensors": lambda x, y: x.clamp_(y - 0.5, y + 0.5),
    "leaky_relu": lambda x, y: functional.leaky_relu_(x, 0.3),
    "elu": lambda x, y: functional.elu_(x, 1.7),
    "elu_scaled": lambda x, y: torch.ops.aten.elu_(x, 1.7, 0.6, 0.4),
    "celu": lambda x, y: torch.celu_(x, 2.5),
    "selu": lambda x, y: torch.selu_(x),
    "hardtanh": lambda x, y: functional.hardtanh_(x, -0.3, 0.7),
    "relu6": lambda x, y: functional.relu6(x, inplace=True),
    "threshold": lambda x, y: functional.threshold(x, 0.4, -3.0, inplace=True),
    "rrelu_evaluation": lambda x, y: functional.rrelu_(x, 0.1, 0.5, False),
    "hardswish": lambda x, y: functional.hardswish(x, inplace=True),
    "hardsigmoid": lambda x, y: functional.hardsigmoid(x, inplace=True),
    "silu": lambda x, y: functional.silu(x, inplace=True),
    "mish": lambda x, y: functional.mish(x, inplace=True),
    "relu": lambda x, y: x.relu_(),
    "abs": lambda x, y: x.abs_(),
    "square": lambda x, y: x.square_(),
    "sqrt": lambda x, y: x.abs_().add_(1).sqrt_(),
    "rsqrt": lambda x, y: x.abs_().add_(1).rsqrt_(),
    "reciprocal": lambda x, y: x.abs_().add_(1).reciprocal_(),
    "exp": lambda x, y: x.exp_(),
    "expm1": lambda x, y: x.expm1_(),
    "log": lambda x, y: x.abs_().add_(1).log_(),
    "log1p": lambda x, y: x.abs_().log1p_(),
    "sin": lambda x, y: x.sin_(),
    "tanh": lambda x, y: x.tanh_(),
    "sigmoid": lambda x, y: x.sigmoid_(),
    "logit": lambda x, y: x.mul_(0.1).add_(0.5).logit_(0.45),
    "atan2": lambda x, y: x.atan2_(y),
    "hypot": lambda x, y: x.hypot_(y),
    "xlogy": lambda x, y: x.xlogy_(y.abs() + 1),
    "fmod": lambda x, y: x.fmod_(0.4),
    "remainder": lambda x, y: x.remainder_(y.abs() + 1),
    "nan_to_num": lambda x, y: x.div_((x > 0).float()).nan_to_num_(2.0, 3.0, -4.0),
    "masked_fill": lambda x, y: x.masked_fill_(y > 0, -3.0),
    "masked_scatter": lambda x, y: x.masked_scatter_(y > 0, y.cos()),
    "index_fill": lambda x, y: x.index_fill_(1, _index(x, 3, 0), 2.5),
    "index_add": lambda x, y: x.index_add_(1, _index(x, 3, 0, 3), y[:, :3], alpha=1.5),
    "index_copy": lambda x, y: x.index_copy_(1, _index(x, 3, 0), y[:, :2]),
    "index_put": lambda x, y: x.index_put_((_index(x, 2, 0),), y[:2]),
    "index_put_added": lambda x, y: x.index_put_((_index(x, 2, 2),), y[:2], accumulate=True),
    "scatter": lambda x, y: x.scatter_(1, _index(x, 3, 0, 1, 2).expand(4, 4), y),
    "scatter_add": lambda x, y: x.scatter_add_(1, _zeros_index(x, 4, 4), y),
    "copy": lambda x, y: x.copy_(y[:1]),
    "fill": lambda x, y: x.fill_(y.sum()),
    "zero": lambda x, y: x[1:].zero_(),
    "cumsum": lambda x, y: x.cumsum_(1),
    "cumprod": lambda x, y: x.cumprod_(0),
    "tril": lambda x, y: x.tril_(1),
    "triu": lambda x, y: x.triu_(-1),
    "renorm": lambda x, y: x.renorm_(2, 1, 0.5),
    "addmm": lambda x, y: x.addmm_(y, y.t() @ y, beta=0.5, alpha=-2),
    "addmv": lambda x, y: x[0].addmv_(y.t() @ y, y[1], beta=0.5, alpha=-2),
    "addr": lambda x, y: x.addr_(y[:, 0], y[0], beta=0.5, alpha=-2),
    "addbmm": lambda x, y: x.addbmm_(y[None], (y.t() @ y)[None], beta=0.5, alpha=-2),
    "baddbmm": lambda x, y: x[None].baddbmm_(y[None], (y.t() @ y)[None], beta=0.5, alpha=-2),
    "foreach_addcmul": lambda x, y: torch._foreach_addcmul_([x], [y], [y], value=-0.7),
    "foreach_lerp": lambda x, y: torch._foreach_lerp_([x], [y], 0.3),
}

#: What the call changes, a result of 6 x 6: its memory, or a part of it by a view.
_TARGETS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x[:4, :4].mul(1),
    lambda x: x.t()[1:5, 1:5],
)


@check("contract/in_place_gradient", "CONTRACT-006", cases=_IN_PLACE)
def in_place_calls_have_gradients(dev: Device, case: str) -> None:
    """Called in place with arguments of its own, also on a view, an operator has its gradients."""

    def program(device: torch.device) -> list[Tensor]:
        results = []
        for target in _TARGETS:
            x, y = leaf(device, 6, 6), leaf(device, 4, 4, seed=1)
            whole = x * 1.25
            changed = target(whole)
            _IN_PLACE[case](changed, y)
            results += [*_gradients(changed, x, y), *_gradients(whole, x, y)]
        return results

    agree(dev, program, rtol=1e-5, atol=1e-5)


def _gradients(output: Tensor, *inputs: Tensor) -> list[Tensor]:
    """The output and its gradients, zero for what it does not depend on; the graph stays."""
    weight = noise(output.shape, seed=9).to(output.device)
    found = torch.autograd.grad(
        output, inputs, weight, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return [output, *found]


# ---- out= of another size ------------------------------------------------------------------------

#: Calls that write a result of 3 x 4 to out=.
_RESIZED: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "add": lambda x, out: torch.add(x, 1, out=out),
    "mul": lambda x, out: torch.mul(x, x[:1], out=out),
    "mm": lambda x, out: torch.mm(x, x[:, :].t() @ x, out=out),
    "cat": lambda x, out: torch.cat([x[:1], x[1:]], out=out),
    "gather": lambda x, out: torch.gather(x, 1, _zeros_index(x, 3, 4), out=out),
    "index_select": lambda x, out: torch.index_select(x, 0, _index(x, 2, 0, 1), out=out),
    "sum": lambda x, out: torch.sum(x.expand(2, 3, 4), 0, out=out),
    "softmax": lambda x, out: torch.softmax(x, 1, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 1, out=out),
    "where": lambda x, out: torch.where(x > 0, x, -x, out=out),
    "tril": lambda x, out: torch.tril(x, out=out),
}
_SIZES: dict[str, tuple[int, ...]] = {
    "fewer": (2, 4),
    "more": (5, 7),
    "as_many": (4, 3),
    "as_many_in_a_row": (12,),
    "one": (),
}


@check("contract/resized", "OP-034", cases=_RESIZED)
def out_of_any_other_size_is_resized(dev: Device, case: str) -> None:
    """out= with fewer, more or as many elements is resized, with the CPU's warning, each time."""
    for size in _SIZES.values():
        expected = _resized(CPU, _RESIZED[case], size)
        actual = _resized(dev.device(), _RESIZED[case], size)
        assert actual[1:] == expected[1:], f"{actual[1:]} instead of {expected[1:]}"
        dev.assert_close(actual[0], expected[0])


def _resized(
    device: torch.device, write: Callable[[Tensor, Tensor], Any], size: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...], list[str]]:
    """What out= of that size holds at the end, its strides, and the warnings."""
    out = torch.full(size, -7.0, device=device)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            write(noise((3, 4)).to(device), out)
    finally:
        torch.set_warn_always(always)
    # PyTorch's own functions in Python name the sizes in other words.
    said = [str(entry.message).partition(" since ")[0] for entry in caught]
    return out, out.stride(), said


# ---- wrong arguments -----------------------------------------------------------------------------


def _attention(x: Tensor, *dtypes: torch.dtype) -> Tensor:
    query, key, value = (x[None, None].to(dtype) for dtype in dtypes)
    return functional.scaled_dot_product_attention(query, key, value)


#: Calls with wrong arguments, on a matrix of 3 x 4.
#: Element types that a random distribution does not fill.
_UNFILLED: dict[str, tuple[Callable[[Tensor], Any], tuple[torch.dtype, ...]]] = {
    "log_normal": (lambda x: x.log_normal_(), (torch.int32, torch.bool, torch.complex64)),
    "cauchy": (lambda x: x.cauchy_(), (torch.int32, torch.bool, torch.complex64)),
    "exponential": (lambda x: x.exponential_(), (torch.int32, torch.bool, torch.complex64)),
    "geometric": (lambda x: x.geometric_(0.5), (torch.bool, torch.complex64)),
    "normal": (lambda x: x.normal_(), (torch.int32, torch.bool)),
    "uniform": (lambda x: x.uniform_(), (torch.int32, torch.bool)),
    "bernoulli": (lambda x: x.bernoulli_(0.5), (torch.complex64,)),
    "random": (lambda x: x.random_(), (torch.complex64,)),
}


def _nonzero_in_place(x: Tensor) -> Tensor:
    memory = x.flatten().fill_(1)
    return torch.nonzero(memory[:10], out=memory[1:11].view(10, 1))


def _filling(fill: Callable[[Tensor], Any], dtype: torch.dtype) -> Callable[[Tensor], Any]:
    return lambda x: fill(x.to(dtype))


_WRONG: dict[str, Write] = {
    **{
        f"{name}_of_{str(dtype).removeprefix('torch.')}": _filling(fill, dtype)
        for name, (fill, dtypes) in _UNFILLED.items()
        for dtype in dtypes
    },
    "add_sizes": lambda x: x + _ones(x, 3, 5),
    "add_in_place_larger": lambda x: x.add_(_ones(x, 2, 3, 4)),
    "addcmul_sizes": lambda x: torch.addcmul(x, _ones(x, 5), x),
    "lerp_sizes": lambda x: x.lerp(_ones(x, 3, 5), 0.5),
    "where_sizes": lambda x: torch.where(x > 0, x, _ones(x, 5)),
    "where_condition": lambda x: torch.where(x, x, x),
    "mm_sizes": lambda x: torch.mm(x, x),
    "mm_vector": lambda x: torch.mm(x, x[0]),
    "mm_dtypes": lambda x: torch.mm(x, x.t().long()),
    "mv_sizes": lambda x: x.mv(_ones(x, 3)),
    "dot_sizes": lambda x: x[0].dot(x[:, 0]),
    "dot_matrix": lambda x: x.dot(x),
    "bmm_batches": lambda x: torch.bmm(_ones(x, 2, 3, 4), _ones(x, 3, 4, 5)),
    "bmm_matrix": lambda x: torch.bmm(x, x),
    "addmm_input": lambda x: torch.addmm(_ones(x, 7, 7), x, x.t()),
    "baddbmm_input": lambda x: torch.baddbmm(_ones(x, 7, 7), x[None], x.t()[None]),
    "addr_matrix": lambda x: torch.addr(x, x, x[0]),
    "linear_sizes": lambda x: functional.linear(x, _ones(x, 2, 5)),
    "conv_channels": lambda x: functional.conv1d(x[None], _ones(x, 2, 5, 3)),
    "conv_kernel": lambda x: functional.conv1d(x[None], _ones(x, 2, 3, 7)),
    "conv_dimensions": lambda x: functional.conv2d(x, _ones(x, 2, 3, 1, 1)),
    "conv_bias": lambda x: functional.conv1d(x[None], _ones(x, 2, 3, 1), _ones(x, 5)),
    "embedding_dtype": lambda x: functional.embedding(x, x),
    "gather_dtype": lambda x: x.gather(1, x),
    "gather_dimensions": lambda x: x.gather(1, _zeros_index(x, 3)),
    "gather_size": lambda x: x.gather(1, _zeros_index(x, 5, 4)),
    "scatter_dtype": lambda x: x.scatter(1, _zeros_index(x, 3, 1), x.long()),
    "scatter_size": lambda x: x.scatter(1, _zeros_index(x, 3, 5), x),
    "index_select_dtype": lambda x: x.index_select(0, x[0]),
    "index_select_matrix": lambda x: x.index_select(0, _zeros_index(x, 2, 2)),
    "index_add_size": lambda x: x.index_add(0, _index(x, 0, 1), x),
    "index_copy_size": lambda x: x.index_copy(0, _index(x, 0, 1), x),
    "index_too_many": lambda x: x[_index(x, 0), _index(x, 0), _index(x, 0)],
    "index_sizes": lambda x: x[_index(x, 0, 1, 2), _index(x, 0, 1)],
    "index_mask_size": lambda x: x[_ones(x, 2).bool()],
    "masked_fill_dtype": lambda x: x.masked_fill(x, 1.0),
    "masked_fill_value": lambda x: x.masked_fill(x > 0, _ones(x, 2)),
    "masked_select_dtype": lambda x: x.masked_select(x),
    "take_dtype": lambda x: x.take(x),
    "cat_dimensions": lambda x: torch.cat([x, x[0]]),
    "cat_dimension": lambda x: torch.cat([x, x], 2),
    "stack_sizes": lambda x: torch.stack([x, x.t()]),
    "mean_of_integers": lambda x: x.long().mean(),
    "softmax_of_integers": lambda x: x.long().softmax(1),
    "softmax_dimension": lambda x: x.softmax(2),
    "cumsum_dimension": lambda x: x.cumsum(-3),
    "sort_dimension": lambda x: x.sort(2),
    "sum_twice": lambda x: x.sum((0, 0)),
    "flip_twice": lambda x: x.flip(1, 1),
    "topk_many": lambda x: x.topk(5),
    "kthvalue_none": lambda x: x.kthvalue(0),
    "norm_of_integers": lambda x: torch.linalg.vector_norm(x.long()),
    "inverse_shape": lambda x: torch.linalg.inv(x),
    "cholesky_shape": lambda x: torch.linalg.cholesky(x),
    "triangular_vector": lambda x: x[0].tril(),
    "pool_kernel": lambda x: functional.max_pool1d(x[None], 9),
    "pool_padding": lambda x: functional.avg_pool2d(x[None], 2, padding=2),
    "reflection_padding": lambda x: functional.pad(x, (4, 0), mode="reflect"),
    "layer_norm_shape": lambda x: functional.layer_norm(x, (5,)),
    "group_norm_groups": lambda x: functional.group_norm(x, 3),
    "batch_norm_mean": lambda x: functional.batch_norm(x, _ones(x, 5), _ones(x, 5)),
    "nll_classes": lambda x: functional.nll_loss(x, _zeros_index(x, 5)),
    "cross_entropy_weight": lambda x: functional.cross_entropy(
        x, _zeros_index(x, 3), weight=_ones(x, 5)
    ),
    "mse_sizes": lambda x: functional.mse_loss(x, _ones(x, 3, 5)),
    "bce_sizes": lambda x: functional.binary_cross_entropy(x, _ones(x, 4, 3)),
    "bitwise_of_floats": lambda x: x & x,
    "shift_of_floats": lambda x: torch.bitwise_left_shift(x, x),
    "integer_power": lambda x: x.long().pow(-1),
    "clamp_nothing": lambda x: x.clamp(),
    "foreach_lengths": lambda x: torch._foreach_add([x, x], [x]),
    "foreach_nothing": lambda x: torch._foreach_mul([], 2),
    "foreach_fewer_scalars": lambda x: torch._foreach_mul([x, x], [2.0]),
    "foreach_more_scalars": lambda x: torch._foreach_add([x, x], [1.0, 2.0, 3.0]),
    "foreach_no_scalars": lambda x: torch._foreach_div([x, x], []),
    "foreach_in_place_scalars": lambda x: torch._foreach_sub_([x, x], [1.0]),
    "foreach_power_scalars": lambda x: torch._foreach_pow([x, x], [2.0]),
    "foreach_clamp_scalars": lambda x: torch._foreach_clamp_min([x, x], [0.0]),
    "foreach_addcmul_scalars": lambda x: torch._foreach_addcmul([x, x], [x, x], [x, x], [1.0]),
    "foreach_addcmul_lengths": lambda x: torch._foreach_addcmul([x, x], [x, x], [x], 1.0),
    "foreach_addcdiv_lengths": lambda x: torch._foreach_addcdiv([x, x], [x], [x, x], 1.0),
    "foreach_lerp_scalars": lambda x: torch._foreach_lerp([x, x], [x, x], [0.5]),
    "foreach_lerp_lengths": lambda x: torch._foreach_lerp([x, x], [x, x], [x]),
    "foreach_copy_lengths": lambda x: torch._foreach_copy_([x, x], [x]),
    "foreach_maximum_lengths": lambda x: torch._foreach_maximum([x], [x, x]),
    "fill_value": lambda x: x.to(torch.int8).fill_(300),
    "fill_matrix": lambda x: x.fill_(_ones(x, 1)),
    "full_value": lambda x: torch.full((2,), 300, dtype=torch.int8, device=x.device),
    "masked_fill_number": lambda x: x.to(torch.int8).masked_fill_(x > 0, 300),
    "masked_fill_tensor": lambda x: x.to(torch.int8).masked_fill_(x > 0, torch.tensor(300)),
    "index_fill_number": lambda x: x.to(torch.int8).index_fill_(0, _index(x, 0), 300),
    "index_fill_tensor": lambda x: x.to(torch.int8).index_fill_(0, _index(x, 0), torch.tensor(300)),
    "scatter_number": lambda x: x.to(torch.int8).scatter_(1, _zeros_index(x, 3, 1), 300),
    "repeats_of_fractions": lambda x: x.repeat_interleave(_ones(x, 3), 0),
    "bincount_matrix": lambda x: x.long().bincount(),
    "arange_step": lambda x: torch.arange(0, 5, -1, device=x.device),
    "linspace_steps": lambda x: torch.linspace(0, 1, -1, device=x.device),
    "eye_size": lambda x: torch.eye(-1, device=x.device),
    "full_size": lambda x: torch.full((-1,), 1.0, device=x.device),
    "repeat_dimensions": lambda x: x.repeat(2),
    "unfold_size": lambda x: x.unfold(1, 9, 1),
    "roll_lengths": lambda x: x.roll((1, 2), 0),
    "interpolate_size": lambda x: functional.interpolate(x[None], size=0),
    "one_hot_floats": lambda x: functional.one_hot(x),
    "out_of_another_type": lambda x: torch.mm(x, x.t(), out=_zeros_index(x, 3, 3)),
    "out_that_requires_grad": lambda x: torch.add(x, 1, out=x.clone().requires_grad_()),
    "index_fill_dtype": lambda x: x.index_fill(0, x[0], 1.0),
    "index_fill_matrix": lambda x: x.index_fill(0, _zeros_index(x, 2, 2), 1.0),
    "index_fill_value": lambda x: x.index_fill(0, _index(x, 0), _ones(x, 2)),
    "index_add_dtype": lambda x: x.index_add(0, x[0], x),
    "index_add_matrix": lambda x: x.index_add(0, _zeros_index(x, 3, 1), x),
    "index_copy_dtype": lambda x: x.index_copy(0, x[:, 0], x),
    "index_copy_matrix": lambda x: x.index_copy(0, _zeros_index(x, 3, 1), x),
    "index_reduce_name": lambda x: x.index_reduce(0, _index(x, 0, 1, 2), x, "median"),
    "scatter_add_size": lambda x: x.scatter_add(1, _zeros_index(x, 3, 5), x),
    "scatter_reduce_name": lambda x: x.scatter_reduce(1, _zeros_index(x, 3, 4), x, "median"),
    "put_count": lambda x: x.put(_index(x, 0, 1), _ones(x, 3)),
    "masked_scatter_dtype": lambda x: x.masked_scatter(x, x),
    "lerp_weights": lambda x: torch.lerp(x, x, _ones(x, 5)),
    "addcdiv_of_integers": lambda x: torch.addcdiv(x.long(), x.long(), x.long()),
    "cross_dimension": lambda x: torch.linalg.cross(x, x, dim=1),
    "cdist_columns": lambda x: torch.cdist(x, _ones(x, 3, 5)),
    "outer_matrix": lambda x: torch.outer(x, x[0]),
    "trace_of_batch": lambda x: x[None].trace(),
    "diag_of_batch": lambda x: x[None].diag(),
    "diagonal_twice": lambda x: x.diagonal(0, 1, 1),
    "dot_dtypes": lambda x: x[0].dot(x[0].double()),
    "attention_sizes": lambda x: functional.scaled_dot_product_attention(
        x[None], _ones(x, 1, 3, 5), _ones(x, 1, 3, 5)
    ),
    "attention_mask": lambda x: functional.scaled_dot_product_attention(
        x[None], x[None], x[None], _ones(x, 2, 5)
    ),
    "attention_of_integers": lambda x: _attention(x, torch.int64, torch.int64, torch.int64),
    "attention_of_truth": lambda x: _attention(x, torch.bool, torch.bool, torch.bool),
    "attention_query_dtype": lambda x: _attention(x, torch.float64, x.dtype, x.dtype),
    "attention_key_dtype": lambda x: _attention(x, x.dtype, torch.int64, x.dtype),
    "attention_value_dtype": lambda x: _attention(x, x.dtype, x.dtype, torch.float16),
    "attention_mask_dtype": lambda x: functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None], _zeros_index(x, 3, 3)
    ),
    "conv_groups": lambda x: functional.conv1d(x[None], _ones(x, 2, 2, 1), groups=2),
    "conv_stride": lambda x: functional.conv1d(x[None], _ones(x, 2, 3, 1), stride=0),
    "conv_padding": lambda x: functional.conv1d(x[None], _ones(x, 2, 3, 1), padding=-1),
    "conv_dilation": lambda x: functional.conv1d(x[None], _ones(x, 2, 3, 2), dilation=0),
    "conv_dtypes": lambda x: functional.conv1d(x[None], _ones(x, 2, 3, 1).double()),
    "conv_transpose_channels": lambda x: functional.conv_transpose1d(x[None], _ones(x, 5, 2, 1)),
    "embedding_vector": lambda x: functional.embedding(_index(x, 0), x[0]),
    "embedding_bag_mode": lambda x: functional.embedding_bag(_zeros_index(x, 2, 2), x, mode="min"),
    "grid_sizes": lambda x: functional.grid_sample(x[None, None], _ones(x, 2, 1, 1, 2)),
    "grid_columns": lambda x: functional.grid_sample(x[None, None], _ones(x, 1, 1, 1, 3)),
    "interpolate_dimensions": lambda x: functional.interpolate(x[None], (2, 2)),
    "reflection_padding_end": lambda x: functional.pad(x, (0, 4), mode="reflect"),
    "reflection_padding_2d": lambda x: functional.pad(x[None], (0, 0, 0, 3), mode="reflect"),
    "reflection_padding_2d_begin": lambda x: functional.pad(x[None], (0, 0, 3, 0), mode="reflect"),
    "reflection_padding_3d": lambda x: functional.pad(
        x[None, None], (0, 0, 0, 0, 0, 1), mode="reflect"
    ),
    "replication_padding": lambda x: functional.pad(x[None], (1, 1, -3, -2), mode="replicate"),
    "constant_padding": lambda x: functional.pad(x, (-3, -2)),
    "circular_padding": lambda x: functional.pad(x, (5, 0), mode="circular"),
    "pool_2d_kernel": lambda x: functional.max_pool2d(x[None], 5),
    "pool_2d_padding": lambda x: functional.max_pool2d(x[None], 2, padding=2),
    "pool_stride": lambda x: functional.avg_pool1d(x[None], 2, stride=0),
    "pool_divisor": lambda x: functional.avg_pool2d(x[None], 2, divisor_override=0),
    "adaptive_pool_size": lambda x: functional.adaptive_avg_pool2d(x[None], (-1, 2)),
    "unpool_sizes": lambda x: nn.MaxUnpool1d(2)(x[None], _zeros_index(x, 1, 3, 3)),
    "fold_columns": lambda x: functional.fold(x[None], (2, 2), (2, 2)),
    "unfold_kernel": lambda x: functional.unfold(x[None, None], (4, 4)),
    "pixel_shuffle_channels": lambda x: functional.pixel_shuffle(x[None], 2),
    "pixel_unshuffle_sizes": lambda x: functional.pixel_unshuffle(x[None], 2),
    "channel_shuffle_groups": lambda x: functional.channel_shuffle(x[None], 2),
    "layer_norm_weight": lambda x: functional.layer_norm(x, (4,), _ones(x, 5)),
    "rms_norm_shape": lambda x: functional.rms_norm(x, (5,)),
    "group_norm_weight": lambda x: functional.group_norm(x[None], 3, _ones(x, 4)),
    "batch_norm_weight": lambda x: functional.batch_norm(
        x, _ones(x, 4), _ones(x, 4), weight=_ones(x, 5)
    ),
    "nll_dtype": lambda x: functional.nll_loss(x, x[:, 0]),
    "nll_weight": lambda x: functional.nll_loss(x, _zeros_index(x, 3), _ones(x, 5)),
    "nll_2d_sizes": lambda x: functional.nll_loss(x[None, :, None], _zeros_index(x, 1, 2, 4)),
    "cross_entropy_smoothing": lambda x: functional.cross_entropy(
        x, _zeros_index(x, 3), label_smoothing=2.0
    ),
    "multi_margin_target": lambda x: functional.multi_margin_loss(x, _zeros_index(x, 5)),
    "huber_delta": lambda x: functional.huber_loss(x, x, delta=-1.0),
    "smooth_l1_beta": lambda x: functional.smooth_l1_loss(x, x, beta=-1.0),
    "ctc_lengths": lambda x: functional.ctc_loss(
        x[:, None], _zeros_index(x, 1, 2), _index(x, 3, 3), _index(x, 2)
    ),
    "glu_half": lambda x: functional.glu(x[:, :3]),
    "prelu_weights": lambda x: functional.prelu(x, _ones(x, 5)),
    "rrelu_bounds": lambda x: functional.rrelu(x, 2.0, 1.0, training=True),
    "log_softmax_dimension": lambda x: x.log_softmax(2),
    "cumprod_dimension": lambda x: x.cumprod(2),
    "cummax_dimension": lambda x: x.cummax(2),
    "logcumsumexp_dimension": lambda x: x.logcumsumexp(2),
    "prod_dimension": lambda x: x.prod(2),
    "median_dimension": lambda x: x.median(2),
    "mode_dimension": lambda x: x.mode(2),
    "argmax_of_nothing": lambda x: x[:0].argmax(),
    "amax_of_nothing": lambda x: x[:0].amax(0),
    "max_of_nothing": lambda x: x[:0].max(),
    "max_of_no_rows": lambda x: x[:0].max(0),
    "topk_dimension": lambda x: x.topk(1, 2),
    "histc_bins": lambda x: x.histc(0),
    "histc_range": lambda x: x.histc(4, 2.0, 1.0),
    "searchsorted_sizes": lambda x: torch.searchsorted(_ones(x, 2, 4), x),
    "searchsorted_side": lambda x: torch.searchsorted(x[0], x, side="middle"),
    "bucketize_matrix": lambda x: torch.bucketize(x, x),
    "bincount_negative_length": lambda x: _index(x, 1).bincount(minlength=-1),
    "multinomial_none": lambda x: x.abs().multinomial(0),
    "multinomial_many": lambda x: x.abs().multinomial(5),
    "bernoulli_probability": lambda x: x.bernoulli(2.0),
    "normal_deviation": lambda x: x.clone().normal_(0.0, -1.0),
    "uniform_bounds": lambda x: x.clone().uniform_(2.0, 1.0),
    "exponential_rate": lambda x: x.clone().exponential_(-1.0),
    "geometric_probability": lambda x: x.clone().geometric_(0.0),
    "cauchy_scale": lambda x: x.clone().cauchy_(0.0, -1.0),
    "log_normal_deviation": lambda x: x.clone().log_normal_(0.0, -1.0),
    "random_bounds": lambda x: x.clone().random_(5, 5),
    "random_limit": lambda x: x.clone().random_(0),
    "dropout_probability": lambda x: functional.dropout(x, 2.0),
    "randint_bounds": lambda x: torch.randint(5, 5, (2,), device=x.device),
    "randperm_count": lambda x: torch.randperm(-1, device=x.device),
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
    "fft_size": lambda x: torch.fft.fft(x, 0),
    "renorm_exponent": lambda x: x.renorm(-1, 0, 1.0),
    "renorm_limit": lambda x: x.renorm(2, 0, -1.0),
    "norm_of_nothing": lambda x: torch.linalg.vector_norm(x[:0], float("inf")),
    "quantile_range": lambda x: x.quantile(1.5),
    "repeat_interleave_count": lambda x: x.repeat_interleave(_index(x, 1, -1, 1), 0),
    "triangular_solve_shape": lambda x: torch.linalg.solve_triangular(x, x, upper=True),
    "complex_sizes": lambda x: torch.complex(x, _ones(x, 5)),
    "complex_dtypes": lambda x: torch.complex(x, x.double()),
    "adaptive_pool_of_no_rows": lambda x: functional.adaptive_avg_pool2d(x[None, :0], 2),
    "adaptive_max_pool_of_no_rows": lambda x: functional.adaptive_max_pool2d(x[None, :0], 2),
    "adaptive_pool_3d_of_no_columns": lambda x: functional.adaptive_avg_pool3d(
        x[None, None, :, :0], 2
    ),
    "adaptive_pool_3d_of_no_rows": lambda x: functional.adaptive_avg_pool3d(x[None, None, :0], 2),
    "adaptive_pool_3d_of_no_planes": lambda x: functional.adaptive_avg_pool3d(x[None, :0, None], 2),
    "adaptive_max_pool_3d_of_no_columns": lambda x: functional.adaptive_max_pool3d(
        x[None, None, :, :0], 2
    ),
    "truth_of_nothing": lambda x: bool(x[:0]),
    "truth_of_many": lambda x: bool(x),
    "item_of_nothing": lambda x: x[:0].item(),
    "item_of_many": lambda x: x.item(),
    "bincount_weights": lambda x: _index(x, 1, 2).bincount(x[0]),
    "bincount_weights_matrix": lambda x: _index(x, 1, 2, 3).bincount(x),
    "bincount_of_floats": lambda x: x[0].bincount(),
    "bincount_negative": lambda x: _index(x, 1, -2).bincount(),
    "max_all_out_dtype": lambda x: torch.max(x, out=_zeros_index(x)),
    "var_of_integers": lambda x: x.long().var(),
    "renorm_dtype": lambda x: x.long().renorm(2, 0, 1.0),
    "polar_dtypes": lambda x: torch.polar(x, x.double()),
    "take_from_nothing": lambda x: x[:0].take(_index(x, 0)),
    "take_out_dtype": lambda x: torch.take(x, _index(x, 0), out=_zeros_index(x, 1)),
    "put_dtype": lambda x: x.put(_index(x, 0), _zeros_index(x, 1)),
    "put_index_dtype": lambda x: x.put(x[0], x[0]),
    "put_from_nothing": lambda x: x[:0].put(_index(x, 0), _ones(x, 1)),
    "masked_scatter_source_dtype": lambda x: x.masked_scatter(x > 0, _zeros_index(x, 12)),
    "group_norm_matrix": lambda x: functional.group_norm(x[None], 3, _ones(x, 3, 1)),
    "group_norm_bias": lambda x: functional.group_norm(x[None], 3, _ones(x, 3), _ones(x, 4)),
    "group_norm_none": lambda x: functional.group_norm(x, 0),
    "layer_norm_bias": lambda x: functional.layer_norm(x, (4,), _ones(x, 4), _ones(x, 3)),
    "layer_norm_none": lambda x: functional.layer_norm(x, ()),
    "batch_norm_bias": lambda x: functional.batch_norm(
        x, _ones(x, 4), _ones(x, 4), bias=_ones(x, 5)
    ),
    "batch_norm_variance": lambda x: functional.batch_norm(x, _ones(x, 4), _ones(x, 5)),
    "batch_norm_one_value": lambda x: functional.batch_norm(x[:1], None, None, training=True),
    "index_select_out_dtype": lambda x: torch.index_select(
        x, 0, _index(x, 0), out=_zeros_index(x, 1, 4)
    ),
    "gather_out_dtype": lambda x: torch.gather(
        x, 0, _zeros_index(x, 1, 4), out=_zeros_index(x, 1, 4)
    ),
    "masked_select_out_dtype": lambda x: torch.masked_select(x, x > 0, out=_zeros_index(x, 0)),
    "cat_out_dtype": lambda x: torch.cat([x, x], out=_zeros_index(x, 6, 4)),
    "softmax_out_dtype": lambda x: torch.softmax(x, 1, out=_zeros_index(x, 3, 4)),
    "nonzero_out_of_its_memory": lambda x: _nonzero_in_place(x.long()),
    "nonzero_out_dtype": lambda x: torch.nonzero(x, out=_ones(x, 12, 2)),
    "argmax_out_dtype": lambda x: torch.argmax(x, 1, out=_ones(x, 3)),
    "max_out_dtype": lambda x: torch.max(x, 1, out=(_ones(x, 3), _ones(x, 3))),
    "sort_out_dtype": lambda x: torch.sort(x, 1, out=(x.clone(), x.clone())),
    "add_out_dtype": lambda x: torch.add(x, x, out=_zeros_index(x, 3, 4)),
    "sqrt_out_dtype": lambda x: torch.sqrt(x, out=_zeros_index(x, 3, 4)),
    "pow_out_complex": lambda x: torch.pow(x.to(torch.complex64), 2, out=x.clone()),
    "addmm_out_dtype": lambda x: torch.addmm(x, x, _ones(x, 4, 4), out=_zeros_index(x, 3, 4)),
    "dot_out_dtype": lambda x: torch.dot(x[0], x[1], out=_zeros_index(x)),
    "index_put_broadcast": lambda x: x.index_put((_index(x, 0, 1),), _ones(x, 3, 4)),
    "index_add_source_dtype": lambda x: x.index_add(0, _index(x, 0), _zeros_index(x, 1, 4)),
    "index_add_columns": lambda x: x.index_add(0, _index(x, 0), _ones(x, 1, 5)),
    "index_copy_source_dtype": lambda x: x.index_copy(0, _index(x, 0), _zeros_index(x, 1, 4)),
    "index_copy_columns": lambda x: x.index_copy(0, _index(x, 0), _ones(x, 1, 5)),
    "index_reduce_source_dtype": lambda x: x.index_reduce(
        0, _index(x, 0), _zeros_index(x, 1, 4), "amax"
    ),
    "index_reduce_dtype": lambda x: x.index_reduce(0, x[0, :1], x[:1], "amax"),
    "scatter_index_dtype": lambda x: x.scatter(0, x, x),
    "scatter_dimensions": lambda x: x.scatter(0, _zeros_index(x, 3), x),
    "scatter_add_dtype": lambda x: x.scatter_add(0, _zeros_index(x, 1, 4), _zeros_index(x, 1, 4)),
    "scatter_add_index_dtype": lambda x: x.scatter_add(0, x, x),
    "scatter_reduce_dtype": lambda x: x.scatter_reduce(
        0, _zeros_index(x, 1, 4), _zeros_index(x, 1, 4), "amax"
    ),
    "scatter_source_columns": lambda x: x.scatter(0, _zeros_index(x, 2, 4), x[:1]),
    "linear_dtype": lambda x: functional.linear(x, _ones(x, 2, 4).double()),
    "linear_bias": lambda x: functional.linear(x, _ones(x, 2, 4), _ones(x, 3)),
    "bmm_dtypes": lambda x: torch.bmm(x[None], x.t()[None].double()),
    "bmm_sizes": lambda x: torch.bmm(x[None], x[None]),
    "baddbmm_dtypes": lambda x: torch.baddbmm(_ones(x, 1), x[None], x.t()[None].double()),
    "baddbmm_batches": lambda x: torch.baddbmm(_ones(x, 1), x[None], _ones(x, 2, 4, 3)),
    "addbmm_batches": lambda x: torch.addbmm(_ones(x, 1), x[None], _ones(x, 2, 4, 3)),
    "addmm_dtypes": lambda x: torch.addmm(_ones(x, 3).double(), x, x.t()),
    "addmm_vector": lambda x: torch.addmm(x, x, x[0]),
    "addmv_sizes": lambda x: torch.addmv(_ones(x, 3), x, _ones(x, 3)),
    "addmv_input": lambda x: torch.addmv(_ones(x, 5), x, _ones(x, 4)),
    "mv_dtypes": lambda x: x.mv(_ones(x, 4).double()),
    "mv_matrix": lambda x: x.mv(x),
    "addr_sizes": lambda x: torch.addr(x, x[0], x[0]),
    "cross_sizes": lambda x: torch.linalg.cross(x.t(), _ones(x, 5, 3)),
    "conv_bias_dtype": lambda x: functional.conv1d(
        x[None], _ones(x, 2, 3, 1), _ones(x, 2).double()
    ),
    "conv_strides": lambda x: functional.conv2d(x[None], _ones(x, 2, 1, 1, 1), stride=(1, 1, 1)),
    "embedding_bag_weights": lambda x: functional.embedding_bag(
        _index(x, 0, 1), x, _index(x, 0), mode="sum", per_sample_weights=_ones(x, 3)
    ),
    "embedding_bag_weighted_mean": lambda x: functional.embedding_bag(
        _index(x, 0, 1), x, _index(x, 0), mode="mean", per_sample_weights=_ones(x, 2)
    ),
    "embedding_bag_dimensions": lambda x: torch.embedding_bag(
        x[0], _zeros_index(x, 2), _zeros_index(x, 1)
    ),
    "embedding_bag_dtype": lambda x: functional.embedding_bag(x[0], x, _index(x, 0)),
    "gelu_approximate": lambda x: functional.gelu(x, approximate="sin"),
    "softplus_of_integers": lambda x: functional.softplus(x.long()),
    "gelu_of_integers": lambda x: functional.gelu(x.long()),
    "silu_of_integers": lambda x: functional.silu(x.long()),
    "compare_complex": lambda x: x.to(torch.complex64) < 1,
    "max_of_complex": lambda x: x.to(torch.complex64).max(),
    "clamp_complex": lambda x: x.to(torch.complex64).clamp(0, 1),
    "floor_complex": lambda x: x.to(torch.complex64).floor(),
    "remainder_complex": lambda x: x.to(torch.complex64).remainder(2),
    "kaiser_window_length": lambda x: torch.kaiser_window(-1, device=x.device),
    "hann_window_length": lambda x: torch.hann_window(-1, device=x.device),
    "hann_window_of_integers": lambda x: torch.hann_window(3, dtype=torch.int64, device=x.device),
    "polygamma_order": lambda x: torch.polygamma(-1, x),
    "nll_target_matrix": lambda x: functional.nll_loss(x, _zeros_index(x, 3, 1)),
    "cross_entropy_probabilities": lambda x: functional.cross_entropy(x, x[:, :3]),
    "bce_weight": lambda x: functional.binary_cross_entropy(
        x.sigmoid(), torch.ones_like(x), _ones(x, 5)
    ),
    "kthvalue_many": lambda x: x.kthvalue(5),
    "topk_negative": lambda x: x.topk(-1),
    "quantile_dtype": lambda x: x.quantile(_ones(x).double()),
    "unscale_found_dtype": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], _zeros_index(x, 1), _ones(x, 1)
    ),
    "unscale_scale_dtype": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], _ones(x, 1), _zeros_index(x, 1)
    ),
    "unscale_found_count": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], _ones(x, 2), _ones(x, 1)
    ),
    "unscale_scale_count": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], _ones(x, 1), _ones(x, 2)
    ),
    "update_scale_dtype": lambda x: torch._amp_update_scale_(
        _zeros_index(x, 1), _zeros_index(x, 1).int(), _ones(x, 1), 2.0, 0.5, 2
    ),
    "update_scale_tracker": lambda x: torch._amp_update_scale_(
        _ones(x, 1), _zeros_index(x, 1), _ones(x, 1), 2.0, 0.5, 2
    ),
    "update_scale_found": lambda x: torch._amp_update_scale_(
        _ones(x, 1), _zeros_index(x, 1).int(), _zeros_index(x, 1), 2.0, 0.5, 2
    ),
    "foreach_dtypes": lambda x: torch._foreach_addcmul_([x.long()], [x], [x], 1.0),
    "foreach_number_count": lambda x: torch._foreach_mul([x], _ones(x, 2)),
    "repeat_negative": lambda x: x.repeat(-1, 1),
    "flip_dimension": lambda x: x.flip(2),
    "roll_dimension": lambda x: x.roll(1, 2),
    "unfold_negative": lambda x: functional.unfold(x[None, None], (2, 2), padding=-1),
    "fold_dimensions": lambda x: functional.fold(x, (2, 2), (0, 1)),
    "pixel_shuffle_vector": lambda x: functional.pixel_shuffle(x, 2),
    "pad_mode": lambda x: functional.pad(x, (1, 1), mode="reflect2"),
    "avg_pool_padding": lambda x: functional.avg_pool2d(x[None], 2, padding=-1),
    "max_pool_dilation": lambda x: functional.max_pool2d(x[None], 2, dilation=0),
    "max_pool_of_empty": lambda x: functional.max_pool2d(x[None, :, :0], 2),
    "adaptive_pool_of_empty": lambda x: functional.adaptive_avg_pool2d(x[None, :, :0], 2),
    "adaptive_max_pool_of_empty": lambda x: functional.adaptive_max_pool2d(x[None, :, :0], 2),
    "grid_mode": lambda x: torch.grid_sampler(
        x[None, None], _ones(x, 1, 1, 1, 2).long(), 0, 0, True
    ),
    "embedding_renorm": lambda x: torch.embedding_renorm_(x.clone(), x, 1.0, 2.0),
    "nonzero_static_size": lambda x: torch.nonzero_static(x, size=-1),
    "lerp_dtypes": lambda x: torch.lerp(x, x.double(), 0.5),
    "heaviside_dtypes": lambda x: torch.heaviside(x, x.double()),
    "nextafter_of_integers": lambda x: torch.nextafter(x.long(), x.long()),
    "gcd_of_floats": lambda x: torch.gcd(x, x),
    "frexp_of_integers": lambda x: torch.frexp(x.long()),
    "native_dropout_probability": lambda x: torch.native_dropout(x, 1.5, True),
    "multinomial_of_integers": lambda x: _zeros_index(x, 3).multinomial(1),
    "random_of_range": lambda x: x.to(torch.int8).random_(0, 300),
    "random_from": lambda x: x.to(torch.uint8).random_(-3, 3),
    "randperm_dtype": lambda x: torch.randperm(300, dtype=torch.uint8, device=x.device),
}


@check("contract/wrong_arguments", "ERR-001", cases=_WRONG)
def wrong_arguments_raise_the_cpus_exception(dev: Device, case: str) -> None:
    """A call with wrong arguments raises the type that the CPU raises, and changes nothing."""
    expected, x = raised(lambda: _WRONG[case](noise((3, 4)))), noise((3, 4)).to(dev.device())
    error = raised(lambda: _WRONG[case](x), by=dev.synchronize)
    kinds = (type(expected), *_raised_for_shapes(_WRONG[case]))
    assert isinstance(error, kinds), f"{error!r} instead of {expected!r}"
    dev.assert_equal(x, noise((3, 4)))


_POOLS: dict[str, tuple[Callable[..., Any], int]] = {
    "max_1d": (functional.max_pool1d, 1),
    "max_2d": (functional.max_pool2d, 2),
    "max_3d": (functional.max_pool3d, 3),
    "avg_1d": (functional.avg_pool1d, 1),
    "avg_2d": (functional.avg_pool2d, 2),
    "avg_3d": (functional.avg_pool3d, 3),
}
#: Wrong options of a window, and what is right in the other dimensions.
_WINDOWS: dict[str, list[tuple[int, int]]] = {
    "kernel_size": [(0, 2), (-1, 2), (9, 2)],
    "stride": [(0, 1), (-1, 1)],
    "padding": [(2, 0), (-1, 0)],
    "dilation": [(0, 1), (-1, 1), (9, 1)],
}


def _wrong_windows(case: str) -> list[dict[str, tuple[int, ...]]]:
    """The options of a pool of which one is wrong in one dimension."""
    size = _POOLS[case][1]
    right = {"kernel_size": (2,) * size}
    return [
        {**right, option: (good,) * d + (bad,) + (good,) * (size - d - 1)}
        for option, values in _WINDOWS.items()
        if option != "dilation" or case.startswith("max")
        for bad, good in values
        for d in range(size)
    ]


@check("contract/wrong_window", "ERR-001", cases=_POOLS)
def wrong_windows_raise_the_cpus_exception(dev: Device, case: str) -> None:
    """A pool with a wrong window in any one dimension raises the type that the CPU raises."""
    pool, size = _POOLS[case]
    image = noise((2, 3, 5, 6, 7)[: size + 2])
    there = image.to(dev.device())
    for options in _wrong_windows(case):
        expected = raised(partial(pool, image, **options))
        try:
            error = raised(partial(pool, there, **options), by=dev.synchronize)
        except AssertionError as accepted:
            raise AssertionError(f"{options}: {accepted}") from None
        assert isinstance(error, type(expected)), f"{options}: {error!r} instead of {expected!r}"


def _raised_for_shapes(call: Callable[[Tensor], Any]) -> list[type[Exception]]:
    """What PyTorch's own functions of shapes raise, which a backend may use, if they raise.

    They do not always agree with the CPU's kernels.
    """
    try:
        call(noise((3, 4)).to("meta"))
    except Exception as error:
        return [] if isinstance(error, NotImplementedError) else [type(error)]
    return []


#: Those of which the message has the sizes, on every device that has one.
_SIZED = (
    "add_sizes",
    "mm_sizes",
    "bmm_batches",
    "linear_sizes",
    "cat_dimensions",
    "stack_sizes",
    "index_sizes",
    "layer_norm_shape",
)


@check("contract/message", "CONTRACT-007", cases=_SIZED)
def messages_have_the_sizes(dev: Device, case: str) -> None:
    """The message of an error about sizes has the numbers that the CPU's has."""
    expected = raised(lambda: _WRONG[case](noise((3, 4))))
    x = noise((3, 4)).to(dev.device())
    error = raised(lambda: _WRONG[case](x), by=dev.synchronize)
    missing = _numbers(expected) - _numbers(error)
    assert not missing, f"{sorted(missing)} are not in: {error}"


def _numbers(error: Exception) -> set[str]:
    """The numbers of a message: both of `3x4`, and not that of `mat1`."""
    text = str(error).partition("Exception raised from")[0]
    return set(re.findall(r"(?<!\d)(?<![^\W\dx])\d+", text))
