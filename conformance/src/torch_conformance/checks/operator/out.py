# SPDX-License-Identifier: BSD-3-Clause
"""What operators write to: tensors of out=, their own tensor in place, and lazy clones."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Program, agree, check, raised, ramp
from torch_conformance.checks.operator._programs import ints, x2


def _images(device: torch.device) -> Tensor:
    """Two small images of three channels."""
    return ramp((2, 3, 4, 6)).to(device)


_OUT: dict[str, Callable[[torch.device, Tensor], Any]] = {
    "add": lambda d, out: torch.add(x2(d), 2, out=out),
    "mul": lambda d, out: torch.mul(x2(d), x2(d), out=out),
    "matmul": lambda d, out: torch.matmul(x2(d), x2(d).t(), out=out),
    "addmm": lambda d, out: torch.addmm(x2(d)[:, :4], x2(d), x2(d).t(), out=out),
    "cat": lambda d, out: torch.cat([x2(d), x2(d)], out=out),
    "stack": lambda d, out: torch.stack([x2(d), x2(d)], out=out),
    "sum": lambda d, out: torch.sum(x2(d), 1, out=out),
    "mean": lambda d, out: torch.mean(x2(d), 0, out=out),
    "cumsum": lambda d, out: torch.cumsum(x2(d), 1, out=out),
    "exp": lambda d, out: torch.exp(x2(d) / 40, out=out),
    "sqrt": lambda d, out: torch.sqrt(x2(d).abs(), out=out),
    "clamp": lambda d, out: torch.clamp(x2(d), -3, 3, out=out),
    "where": lambda d, out: torch.where(x2(d) > 0, x2(d), -x2(d), out=out),
    "gather": lambda d, out: torch.gather(x2(d), 1, ints(d, 0, 1, 2, 3).view(4, 1), out=out),
    "index_select": lambda d, out: torch.index_select(x2(d), 1, ints(d, 1, 2), out=out),
    "softmax": lambda d, out: torch.softmax(x2(d), 1, out=out),
    "inverse": lambda d, out: torch.linalg.inv(torch.eye(3, device=d) * 2, out=out),
    "tril": lambda d, out: torch.tril(x2(d), out=out),
    "mv": lambda d, out: torch.mv(x2(d), x2(d)[0], out=out),
    "pow": lambda d, out: torch.pow(x2(d), 2, out=out),
    "nll_loss": lambda d, out: torch.ops.aten.nll_loss(
        x2(d), ints(d, 0, 5, 2, 3), reduction=0, out=out
    ),
    "avg_pool": lambda d, out: torch.ops.aten.avg_pool2d(_images(d), [2, 2], out=out),
    "avg_pool_backward": lambda d, out: torch.ops.aten.avg_pool2d_backward(
        _images(d)[..., ::2, ::2], _images(d), [2, 2], [], [0], False, True, None, grad_input=out
    ),
    "replication_pad": lambda d, out: torch.ops.aten.replication_pad1d(x2(d), [2, 1], out=out),
    "upsample_nearest": lambda d, out: torch.ops.aten.upsample_nearest2d(
        _images(d), [5, 9], out=out
    ),
    "upsample_bilinear": lambda d, out: torch.ops.aten.upsample_bilinear2d(
        _images(d), [5, 9], False, out=out
    ),
    "glu": lambda d, out: torch.ops.aten.glu(x2(d) / 9, 1, out=out),
    "glu_backward": lambda d, out: torch.ops.aten.glu_backward(
        x2(d)[:, :3], x2(d) / 9, 1, grad_input=out
    ),
}


@check("operator/out", "OP-002", cases=tuple(_OUT))
def out_variants_resize_fill_and_return(dev: Device, case: str) -> None:
    """out= of no elements is resized without a warning, filled on its device, and returned."""

    def program(device: torch.device) -> Tensor:
        out = torch.empty(0, device=device)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = _OUT[case](device, out)
        assert id(result) == id(out)
        return out

    agree(dev, program)


@check("operator/out_strided", "OP-002", cases=tuple(_OUT))
def out_variants_write_into_views(dev: Device, case: str) -> None:
    """out= of the right shape but strided is written in place; its memory does not move."""

    def program(device: torch.device) -> Tensor:
        shape = _OUT[case](device, torch.empty(0, device=device)).shape
        base = torch.full((*shape, 2), -7.0, device=device)
        out = base[..., 1]
        address = out.data_ptr()
        _OUT[case](device, out)
        assert out.data_ptr() == address
        return base

    agree(dev, program)


#: Programs that write to `y`, a lazy clone, in place or by out=.
_WRITES: dict[str, Callable[[torch.device, Tensor], Any]] = {
    "add": lambda d, y: torch.add(x2(d), 1, out=y),
    "add_in_place": lambda d, y: y.add_(1),
    "fill": lambda d, y: y.fill_(3),
    "zero": lambda d, y: y.zero_(),
    "copy": lambda d, y: y.copy_(x2(d) * 2),
    "copy_from_host": lambda d, y: y.copy_(ramp((4, 6)) * 2),
    "matmul": lambda d, y: torch.mm(x2(d)[:, :4], x2(d), out=y),
    "softmax": lambda d, y: torch.softmax(x2(d), 1, out=y),
    "log_softmax": lambda d, y: torch.log_softmax(x2(d), 1, out=y),
    "cumsum": lambda d, y: torch.cumsum(x2(d), 1, out=y),
    "cummax": lambda d, y: torch.cummax(
        x2(d), 1, out=(y, torch.empty(0, dtype=torch.int64, device=d))
    ),
    "sort": lambda d, y: torch.sort(x2(d), 1, out=(y, torch.empty(0, dtype=torch.int64, device=d))),
    "cat": lambda d, y: torch.cat([x2(d)[:2], x2(d)[:2]], out=y),
    "tril": lambda d, y: y.tril_(),
    "index_put": lambda d, y: y.index_put_((ints(d, 1, 3),), torch.tensor(9.0, device=d)),
    "scatter": lambda d, y: y.scatter_(1, ints(d, 0, 5, 2, 3).view(4, 1), 9.0),
    "masked_fill": lambda d, y: y.masked_fill_(x2(d) > 3, 9.0),
    "normal": lambda d, y: y.normal_().mul_(0),
    "foreach": lambda d, y: torch._foreach_add_([y], 1),
    "view": lambda d, y: y[1:, 2:4].mul_(2),
    "fallback": lambda d, y: torch.special.bessel_j0(x2(d), out=y),
    "batch_norm_mean": lambda d, y: functional.batch_norm(
        ramp((3, 24)).to(d), y.view(-1), torch.ones(24, device=d), training=True
    ),
    "batch_norm_var": lambda d, y: functional.batch_norm(
        ramp((3, 24)).to(d), torch.ones(24, device=d), y.view(-1), training=True
    ),
    "avg_pool": lambda d, y: torch.ops.aten.avg_pool2d.out(
        ramp((1, 4, 2, 12)).to(d), [2, 2], out=y.view(1, 4, 1, 6)
    ),
    "nll_loss": lambda d, y: torch.ops.aten.nll_loss_forward.output(
        x2(d),
        ints(d, 0, 1, 2, 3),
        None,
        0,
        -100,
        output=y.view(-1)[:4],
        total_weight=torch.empty((), device=d),
    ),
}


@check("operator/copy_on_write", "OP-033", cases=tuple(_WRITES), needs=("storages",))
def writing_to_a_lazy_clone_leaves_the_original(dev: Device, case: str) -> None:
    """An operator that writes to a lazy clone changes the clone and nothing else, as on the CPU."""
    try:
        torch._lazy_clone(ramp((2,)).to(dev.device(), copy=True))
    except RuntimeError as error:
        if "storage != nullptr" not in str(error):
            raise
        dev.unsupported("its memory has an owner of its own, which PyTorch does not share lazily")

    def program(device: torch.device) -> list[Tensor]:
        original = ramp((4, 6)).to(device, copy=True)
        clone = torch._lazy_clone(original)
        _WRITES[case](device, clone)
        return [clone, original]

    agree(dev, program)


@check("operator/out_wrong_size", "OP-034", cases=("add", "matmul", "sum", "cat"))
def out_of_the_wrong_size_is_resized_with_a_warning(dev: Device, case: str) -> None:
    """out= with elements of another shape is resized, with the warning the CPU gives."""

    def program(device: torch.device) -> Tensor:
        out = torch.ones(5, 7, device=device)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _OUT[case](device, out)
        assert any("resized" in str(entry.message) for entry in caught)
        return out

    agree(dev, program)


def _with_indices(call: Callable[[Tensor, tuple[Tensor, Tensor]], Any]) -> Program:
    """A program that has numbers and indices written to tensors without elements."""

    def program(device: torch.device) -> tuple[Tensor, Tensor]:
        out = torch.empty(0, device=device), torch.empty(0, dtype=torch.int64, device=device)
        call(x2(device), out)
        return out

    return program


def _aminmax(device: torch.device) -> list[Tensor]:
    low, high = torch.empty(0, device=device), torch.empty(0, device=device)
    torch.aminmax(x2(device), dim=1, out=(low, high))
    return [low, high]


def _svd(device: torch.device) -> list[Tensor]:
    u, s, vh = (torch.empty(0, device=device) for _ in range(3))
    torch.linalg.svd(x2(device), full_matrices=False, out=(u, s, vh))
    return [s, u @ torch.diag(s) @ vh]


_OUT_MULTIPLE: dict[str, Program] = {
    "max": _with_indices(lambda x, out: torch.max(x, 1, out=out)),
    "sort": _with_indices(lambda x, out: torch.sort(x, 1, out=out)),
    "topk": _with_indices(lambda x, out: torch.topk(x, 2, out=out)),
    "svd": _svd,
    "median": _with_indices(lambda x, out: torch.median(x, 1, out=out)),
    "aminmax": _aminmax,
}


@check("operator/out_multiple", "OP-002", cases=_OUT_MULTIPLE)
def several_outputs_are_all_written(dev: Device, case: str) -> None:
    """Operators with several out tensors fill, resize and return each of them."""
    agree(dev, _OUT_MULTIPLE[case], rtol=1e-4, atol=1e-4)


@check("operator/out_dtype:widened", "OP-002")
def out_of_a_wider_dtype_is_filled(dev: Device) -> None:
    """out= of a data type the result can be cast to is filled."""
    x = x2(dev.device())
    out = torch.empty(4, 6, device=dev.device())
    torch.add(x.to(torch.int32), 1, out=out)
    dev.assert_equal(out, (ramp((4, 6)).to(torch.int32) + 1).float())


@check("operator/out_dtype:promoted", "OP-004")
def results_are_promoted_before_they_are_cast(dev: Device) -> None:
    """Results wrap, or are rounded, to the operands' type, also in out= that could hold more."""
    dtypes = dev.dtypes("all")
    for dtype, wider in itertools.product(dtypes, dtypes):
        if not torch.can_cast(dtype, wider):
            continue
        x = (torch.arange(93) * 1.37).to(dtype)
        y = x.to(dev.device())
        for function in (torch.add,) if dtype.is_complex else (torch.add, torch.mul):
            out = torch.empty(93, dtype=wider, device=dev.device())
            function(y, y, out=out)
            dev.assert_equal(out, function(x, x, out=torch.empty(93, dtype=wider)))


@check("operator/out_dtype:refused", "OP-004")
def out_of_a_narrower_dtype_is_refused(dev: Device) -> None:
    """out= of a data type the result cannot be cast to raises RuntimeError."""
    x = x2(dev.device())
    out = torch.empty(4, 6, dtype=torch.int32, device=dev.device())
    assert isinstance(raised(lambda: torch.add(x, 1.5, out=out), by=dev.synchronize), RuntimeError)


_INPLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x.add_(2.5),
    "sub": lambda x: x.sub_(x.clone(), alpha=2),
    "mul": lambda x: x.mul_(x.clone()),
    "div": lambda x: x.div_(3),
    "div_floor": lambda x: x.div_(3, rounding_mode="floor"),
    "pow": lambda x: x.pow_(2),
    "neg": lambda x: x.neg_(),
    "abs": lambda x: x.abs_(),
    "exp": lambda x: x.div_(40).exp_(),
    "sigmoid": lambda x: x.sigmoid_(),
    "relu": lambda x: x.relu_(),
    "clamp": lambda x: x.clamp_(-2, 3),
    "addcmul": lambda x: x.addcmul_(x.clone(), x.clone(), value=0.5),
    "addcdiv": lambda x: x.addcdiv_(x.clone(), x.abs() + 1),
    "lerp": lambda x: x.lerp_(x * 2, 0.25),
    "cumsum": lambda x: x.cumsum_(1),
    "tril": lambda x: x.tril_(),
    "round": lambda x: x.round_(),
    "logical_not": lambda x: x.logical_not_(),
    "eq": lambda x: x.eq_(3.5),
    "fmod": lambda x: x.fmod_(4),
    "renorm": lambda x: x.renorm_(2, 0, 5.0),
    "operators": lambda x: x.__iadd__(1).__imul__(2).__isub__(3),
}


@check("operator/in_place", "OP-003", cases=tuple(_INPLACE))
def in_place_operators_change_their_tensor(dev: Device, case: str) -> None:
    """An in-place operator returns self, keeps its memory, and changes views and bases alike."""

    def program(device: torch.device) -> Tensor:
        base = ramp((6, 9)).to(device, copy=True)
        view = base[1:5].t()[1::2]
        address = view.data_ptr()
        assert _INPLACE[case](view) is view
        assert view.data_ptr() == address
        return base

    agree(dev, program)
