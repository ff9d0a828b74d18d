# SPDX-License-Identifier: BSD-3-Clause
"""Operators refuse outputs that overlap with inputs; element-wise ones may write over an input."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, agree, check, index, raised, zeros_index
from torch_conformance.checks.contract._calls import Between, ones
from torch_conformance.checks.contract._unsupported import is_unsupported

_BETWEEN: dict[str, Between] = {
    "add": lambda y, x: y.add_(x),
    "sub": lambda y, x: y.sub_(x, alpha=2),
    "mul": lambda y, x: y.mul_(x),
    "div": lambda y, x: y.div_(x),
    "maximum_out": lambda y, x: torch.maximum(x, ones(x, 3, 4), out=y),
    "add_out": lambda y, x: torch.add(x, 1, out=y),
    "add_out_second": lambda y, x: torch.add(ones(x, 3, 4), x, out=y),
    "mul_out": lambda y, x: torch.mul(x, x, out=y),
    "sin_out": lambda y, x: torch.sin(x, out=y),
    "neg_out": lambda y, x: torch.neg(x, out=y),
    "exp_out": lambda y, x: torch.exp(x, out=y),
    "pow_out": lambda y, x: torch.pow(x, 2, out=y),
    "clamp_out": lambda y, x: torch.clamp(x, 0, 1, out=y),
    "clamp_bound": lambda y, x: y.clamp_(min=x),
    "where_out": lambda y, x: torch.where(ones(x, 3, 4) > 0, x, ones(x, 1), out=y),
    "addcmul_first": lambda y, x: y.addcmul_(x, ones(x, 3, 4), value=2),
    "addcmul_second": lambda y, x: y.addcmul_(ones(x, 3, 4), x, value=2),
    "addcdiv": lambda y, x: y.addcdiv_(ones(x, 3, 4), x, value=2),
    "lerp_end": lambda y, x: y.lerp_(x, 0.25),
    "lerp_weight": lambda y, x: y.lerp_(ones(x, 3, 4), x),
    "atan2": lambda y, x: y.atan2_(x),
    "sigmoid_out": lambda y, x: torch.sigmoid(x, out=y),
    # These seldom have kernels of their own.
    "i0_out": lambda y, x: torch.special.i0(x, out=y),
    "bessel_out": lambda y, x: torch.special.bessel_j0(x, out=y),
}

#: Operators that read elements in another order than they write them.
_REORDERING: dict[str, Between] = {
    "index_select_out": lambda y, x: torch.index_select(x, 0, index(x, 2, 1, 0), out=y),
    "gather_out": lambda y, x: torch.gather(x, 1, zeros_index(x, 3, 4), out=y),
    "take_out": lambda y, x: torch.take(x, zeros_index(x, 3, 4), out=y),
    "cat_out": lambda y, x: torch.cat([x[:1], x[1:]], out=y),
    "index_copy": lambda y, x: y.index_copy_(0, index(x, 2, 1, 0), x),
    "index_add": lambda y, x: y.index_add_(0, index(x, 2, 1, 0), x),
    "scatter": lambda y, x: y.scatter_(0, zeros_index(x, 3, 4), x),
    "scatter_add": lambda y, x: y.scatter_add_(0, zeros_index(x, 3, 4), x),
    "put": lambda y, x: y.put_(index(x, 0, 5), x[0, :2]),
    "index_put": lambda y, x: y.index_put_((index(x, 2, 1, 0),), x),
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
        is_unsupported(error, expected)
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
