# SPDX-License-Identifier: BSD-3-Clause
"""Operands on several devices are refused; results live where operands or device= say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Program, agree, check, raised, ramp, tensors
from torch_conformance.checks.operator._programs import ints, invertible, x2


@check(
    "operator/mixed_devices",
    "OP-005",
    needs=("accelerator",),
    cases=("add", "matmul", "cat", "index_copy", "out", "in_place", "linear", "where", "gather"),
)
def operands_on_several_devices_are_refused(dev: Device, case: str) -> None:
    """A host tensor with dimensions beside a device tensor raises RuntimeError."""
    host, there = ramp((4, 4)), ramp((4, 4)).to(dev.device())
    works: dict[str, Callable[[], Any]] = {
        "add": lambda: there + host,
        "matmul": lambda: host @ there,
        "cat": lambda: torch.cat([there, host]),
        "index_copy": lambda: there.index_copy(0, ints(dev.device(), 1), host[:1]),
        "out": lambda: torch.add(there, there, out=host),
        "in_place": lambda: host.mul_(there),
        "linear": lambda: functional.linear(there, host),
        "where": lambda: torch.where(there > 0, there, host),
        "gather": lambda: there.gather(0, host.long().abs() % 4),
    }
    assert isinstance(raised(works[case], by=dev.synchronize), RuntimeError)


@check("operator/mixed_indices", "OP-005", needs=("multi_device",), cases=("add", "matmul", "cat"))
def operands_on_several_indices_are_refused(dev: Device, case: str) -> None:
    """Tensors on two devices of the same type raise RuntimeError."""
    first, second = ramp((4, 4)).to(dev.device(0)), ramp((4, 4)).to(dev.device(1))
    works: dict[str, Callable[[], Any]] = {
        "add": lambda: first + second,
        "matmul": lambda: first @ second,
        "cat": lambda: torch.cat([first, second]),
    }
    assert isinstance(raised(works[case], by=dev.synchronize), RuntimeError)


#: Operators of two matrices of 4 x 4, of which the second one is on another device. Where it gives
#: indices, the CPU may give them, too.
_APART: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "sub": lambda x, y: x - y,
    "rsub": lambda x, y: y - x,
    "div": lambda x, y: x.div_(y),
    "pow": lambda x, y: torch.pow(x, y),
    "atan2": lambda x, y: torch.atan2(x, y),
    "less": lambda x, y: x < y,
    "logical_and": lambda x, y: torch.logical_and(x, y),
    "maximum": lambda x, y: torch.maximum(y, x),
    "clamp": lambda x, y: x.clamp(y),
    "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "addcdiv": lambda x, y: x.addcdiv_(y, x),
    "lerp": lambda x, y: torch.lerp(x, y, 0.5),
    "lerp_weight": lambda x, y: torch.lerp(x, x, y),
    "where_condition": lambda x, y: torch.where(y > 0, x, x),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, 1.0),
    "masked_select": lambda x, y: x.masked_select(y > 0),
    "masked_scatter": lambda x, y: x.masked_scatter(x > 0, y),
    "scatter": lambda x, y: x.scatter(0, (x > 9).long(), y),
    "scatter_add": lambda x, y: x.scatter_add(0, (x > 9).long(), y),
    "index_add": lambda x, y: x.index_add(0, ints(x.device, 0, 1, 2, 3), y),
    "stack": lambda x, y: torch.stack([x, y]),
    "bmm": lambda x, y: torch.bmm(x[None], y[None]),
    "addmm": lambda x, y: torch.addmm(y, x, x),
    "mv": lambda x, y: torch.mv(x, y[0]),
    "dot": lambda x, y: torch.dot(x[0], y[0]),
    "outer": lambda x, y: torch.outer(x[0], y[0]),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "linear_bias": lambda x, y: functional.linear(x, x, y[0]),
    "conv1d": lambda x, y: functional.conv1d(x[None], y[:, :, None]),
    "conv2d_bias": lambda x, y: functional.conv2d(x[None, :, :, None], x[:, :, None, None], y[0]),
    "embedding": lambda x, y: functional.embedding((x > 9).long(), y),
    "layer_norm": lambda x, y: functional.layer_norm(x, (4,), y[0]),
    "batch_norm": lambda x, y: functional.batch_norm(x, None, None, y[0], training=True),
    "group_norm": lambda x, y: functional.group_norm(x[None], 2, y[0]),
    "prelu": lambda x, y: functional.prelu(x, y[0]),
    "mse_loss": lambda x, y: functional.mse_loss(x, y),
    "nll_loss": lambda x, y: functional.nll_loss(x, (y[0] > 9).long()),
    "cross_entropy": lambda x, y: functional.cross_entropy(x, y),
    "binary_cross_entropy": lambda x, y: functional.binary_cross_entropy_with_logits(x, y),
    "attention": lambda x, y: functional.scaled_dot_product_attention(
        x[None, None], y[None, None], x[None, None]
    ),
    "equal": lambda x, y: torch.equal(x, y),
    "searchsorted": lambda x, y: torch.searchsorted(x, y),
    "cdist": lambda x, y: torch.cdist(x, y),
    "cross": lambda x, y: torch.linalg.cross(x[:, :3], y[:, :3]),
    "solve": lambda x, y: torch.linalg.solve(x + torch.eye(4, device=x.device), y),
    "kron": lambda x, y: torch.kron(x, y),
    "foreach_add": lambda x, y: torch._foreach_add([x], [y]),
    "unscale_found": lambda x, y: torch._amp_foreach_non_finite_check_and_unscale_(
        [x], y[0, :1], x[0, 1:2]
    ),
    "unscale_scale": lambda x, y: torch._amp_foreach_non_finite_check_and_unscale_(
        [x], x[0, :1], y[0, 1:2]
    ),
    "unscale_second": lambda x, y: torch._amp_foreach_non_finite_check_and_unscale_(
        [x, y], x[0, :1].clone(), x[0, 1:2].clone()
    ),
    "embedding_bag": lambda x, y: functional.embedding_bag(
        ints(x.device, 0, 1), y, ints(x.device, 0)
    ),
    "index_copy": lambda x, y: x.index_copy(0, ints(x.device, 0, 1, 2, 3), y),
    "put": lambda x, y: x.put(ints(x.device, 0, 1, 2, 3), y[0]),
    "take": lambda x, y: y.take(ints(x.device, 0, 1)),
    "gather": lambda x, y: y.gather(0, (x > 9).long()),
    "index_select": lambda x, y: y.index_select(0, ints(x.device, 0, 1)),
    "bucketize": lambda x, y: torch.bucketize(x, y[0]),
    "isin": lambda x, y: torch.isin(x, y),
    "bincount": lambda x, y: torch.bincount(ints(x.device, 0, 1, 2, 3), y[0]),
    "baddbmm": lambda x, y: torch.baddbmm(y[None], x[None], x[None]),
    "huber_loss": lambda x, y: functional.huber_loss(x, y),
    "nll_weight": lambda x, y: functional.nll_loss(x, ints(x.device, 0, 1, 2, 3), y[0]),
    "attention_mask": lambda x, y: functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None], y
    ),
    "rms_norm": lambda x, y: functional.rms_norm(x, (4,), y[0]),
    "batch_norm_evaluated": lambda x, y: functional.batch_norm(x, y[0], y[1] + 99),
    "foreach_mul_second": lambda x, y: torch._foreach_mul([x, x], [x, y]),
    "out_add": lambda x, y: torch.add(x, x, out=torch.empty_like(y)),
    "out_cat": lambda x, y: torch.cat([x, x], out=y.new_empty(8, 4)),
    "out_gather": lambda x, y: torch.gather(x, 0, (x > 9).long(), out=torch.empty_like(y)),
    "out_sort": lambda x, y: torch.sort(x, 0, out=(torch.empty_like(y), (y > 9).long())),
    "out_max": lambda x, y: torch.max(x, 0, out=(y.new_empty(4), (y[0] > 9).long())),
    "out_cumsum": lambda x, y: torch.cumsum(x, 0, out=torch.empty_like(y)),
    "out_softmax": lambda x, y: torch.softmax(x, 0, out=torch.empty_like(y)),
    "out_nonzero": lambda x, y: torch.nonzero(x, out=(y[:0, :2] > 9).long()),
    "out_masked_select": lambda x, y: torch.masked_select(x, x > 9, out=y.new_empty(0)),
    "out_take": lambda x, y: torch.take(x, ints(x.device, 0, 1), out=y.new_empty(2)),
    "out_index_select": lambda x, y: torch.index_select(
        x, 0, ints(x.device, 0, 1), out=y.new_empty(2, 4)
    ),
    "out_sum": lambda x, y: torch.sum(x, 0, out=y.new_empty(4)),
    "out_matmul": lambda x, y: torch.matmul(x, x, out=torch.empty_like(y)),
}


def _verify_refused(case: str, here: torch.device, there: torch.device) -> None:
    x, y = ramp((4, 4)).to(here), ramp((4, 4)).to(there)
    error = raised(lambda: {**_APART, **_APART_NUMBERS}[case](x, y))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


@check("operator/apart_from_host", "OP-005", needs=("accelerator",), cases=_APART)
def operands_on_the_host_are_refused(dev: Device, case: str) -> None:
    """With one operand on the device and the other on the CPU, an operator raises RuntimeError."""
    _verify_refused(case, dev.device(), torch.device("cpu"))


#: The CPU may give numbers, other devices may not.
_APART_NUMBERS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "number_add": lambda x, y: x + y[0, 0],
    "number_foreach_mul": lambda x, y: torch._foreach_mul([x, x], y[0, 0]),
    "number_where": lambda x, y: torch.where(x > 9, x, y[0, 0]),
    "number_clamp": lambda x, y: x.clamp(y[0, 0]),
}


@check("operator/apart", "OP-005", needs=("multi_device",), cases={**_APART, **_APART_NUMBERS})
def operands_on_two_indices_are_refused(dev: Device, case: str) -> None:
    """With operands on two devices of the type, in any order, an operator raises RuntimeError."""
    _verify_refused(case, dev.device(0), dev.device(1))
    _verify_refused(case, dev.device(1), dev.device(0))


@check(
    "operator/second_device",
    "OP-006",
    needs=("multi_device",),
    cases=("add", "matmul", "sort", "sum", "index", "conv", "foreach", "cat", "inverse", "window"),
)
def results_live_where_the_operands_live(dev: Device, case: str) -> None:
    """Operators on tensors of device 1 work while device 0 is current, and return on device 1."""
    there = dev.device(1)
    programs: dict[str, Program] = {
        "add": lambda d: x2(d) + 1,
        "matmul": lambda d: x2(d) @ x2(d).t(),
        "sort": lambda d: list(torch.sort(x2(d))),
        "sum": lambda d: x2(d).sum(),
        "index": lambda d: x2(d)[ints(d, 1, 2)],
        "conv": lambda d: functional.conv1d(x2(d)[None], ramp((2, 4, 3)).to(d)),
        "foreach": lambda d: torch._foreach_add([x2(d), x2(d)], 1.0),
        "cat": lambda d: torch.cat([x2(d), x2(d)]),
        # These two seldom have kernels of their own.
        "inverse": lambda d: torch.linalg.inv(invertible(d)),
        "window": lambda d: torch.kaiser_window(7, device=d),
    }
    before = torch.accelerator.current_device_index()
    expected = tensors(programs[case](torch.device("cpu")))
    actual = tensors(programs[case](there))
    for got, wanted in zip(actual, expected, strict=True):
        assert got.device == there
        dev.assert_close(got, wanted)
    assert torch.accelerator.current_device_index() == before


_DEVICE_ARGUMENT: dict[str, Program] = {
    "tril_indices": lambda d: torch.tril_indices(4, 4, device=d),
    "triu_indices": lambda d: torch.triu_indices(4, 3, device=d),
    "new_full_like": lambda d: torch.full_like(torch.ones(2), 3.0, device=d),
    "to_copy": lambda d: torch.ops.aten._to_copy(torch.ones(2), device=d),
    "scalar_tensor": lambda d: torch.ops.aten.scalar_tensor(2.5, device=d),
    "new_zeros": lambda d: torch.ones(2).new_zeros(3, device=d),
    "hann_window": lambda d: torch.hann_window(5, device=d),
    "fftfreq": lambda d: torch.fft.fftfreq(5, device=d),
    "arange": lambda d: torch.arange(5, device=d, dtype=torch.int16),
    "randperm_sorted": lambda d: torch.randperm(5, device=d).sort().values,
    "randperm_narrow": lambda d: [
        torch.randperm(99, device=d, dtype=dtype).sort().values
        for dtype in (torch.int32, torch.int16, torch.uint8, torch.float32)
    ],
    "eye": lambda d: torch.eye(3, device=d),
    "linspace_tensor": lambda d: torch.linspace(torch.tensor(0.0), torch.tensor(1.0), 5, device=d),
}


@check("operator/device_argument", "OP-008", cases=tuple(_DEVICE_ARGUMENT))
def a_device_argument_decides_the_device(dev: Device, case: str) -> None:
    """Operators whose device comes from an argument, not from a tensor, return on that device."""
    agree(dev, _DEVICE_ARGUMENT[case])
