# SPDX-License-Identifier: BSD-3-Clause
"""Operators as programs use them: indexing, out=, promotion, networks, autograd, fallback.

Most checks run one function on the CPU and on the device and compare everything it returns: values
within the tolerance of their data type, shape, data type, and that results live on the device.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from torch_conformance.authoring.api import (
    Device,
    Program,
    check,
    deterministic,
    far_apart,
    noise,
    raised,
    ramp,
    while_held,
)
from torch_conformance.authoring.api import agree as _agree
from torch_conformance.authoring.api import gradients as _gradients
from torch_conformance.authoring.api import leaf as _leaf
from torch_conformance.authoring.api import tensors as _tensors
from torch_conformance.authoring.api import zeros_index as _zeros_index
from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.origin import is_verdict
from torch_conformance.authoring.refusal import NOT_FUSED, refuses
from torch_conformance.checks.autograd import FUNCTIONS

# ---- indexing --------------------------------------------------------------------------------

_INDEX: dict[str, Program] = {
    "rows": lambda d: _x(d)[_i(d, 2, 0, 2)],
    "none_first": lambda d: _x(d)[:, _i(d, 3, 1)],
    "none_middle": lambda d: _x3(d)[_i(d, 1, 0), :, _i(d, 2, 3)],
    "none_last": lambda d: _x3(d)[:, _i(d, 1, 2), :],
    "adjacent": lambda d: _x3(d)[:, _i(d, 1, 2), _i(d, 0, 3)],
    "broadcast": lambda d: _x3(d)[_i(d, 0, 1).view(2, 1), _i(d, 0, 2, 1)],
    "negative": lambda d: _x(d)[_i(d, -1, -4)],
    "mask": lambda d: _x(d)[_x(d) > 0],
    "mask_rows": lambda d: _x(d)[torch.tensor([True, False, True, True], device=d)],
    "mask_and_index": lambda d: _x(d)[torch.tensor([True, False, True, False], device=d), _i(d, 1)],
    "uint8_index_dtype": lambda d: _x(d)[_i(d, 1, 3).to(torch.int32)],
    "empty_index": lambda d: _x(d)[_i(d)],
    "empty_self": lambda d: _x(d)[:0][_i(d)],
    "empty_mask": lambda d: _x(d)[torch.zeros(4, 6, dtype=torch.bool, device=d)],
    "two_dim_index": lambda d: _x(d)[_i(d, 0, 1, 2, 3).view(2, 2)],
    "list": lambda d: _x(d)[[3, 1]],
    "with_slice": lambda d: _x3(d)[1:, _i(d, 0, 2)],
    "with_new_axis": lambda d: _x(d)[None, _i(d, 1, 2)],
    "strided_self": lambda d: _x(d).t()[_i(d, 5, 0)],
    "host_index": lambda d: _x(d)[torch.tensor([1, 3])],
    "int64_values": lambda d: ramp((4, 6), torch.int64).to(d)[_i(d, 1), :],
    "bool_values": lambda d: ramp((4, 6), torch.bool).to(d)[_i(d, 1), :],
    "index_select": lambda d: _x(d).index_select(1, _i(d, 5, 0, 5)),
    "take": lambda d: _x(d).take(_i(d, 0, 23, 7)),
    "take_negative": lambda d: _x(d).t().take(_i(d, -1, -24, 3)),
    "take_along_dim": lambda d: _x(d).take_along_dim(_x(d).argsort(1), 1),
    "gather": lambda d: _x(d).gather(1, _i(d, 0, 5, 1, 4).view(4, 1)),
    "masked_select": lambda d: _x(d).masked_select(_x(d) > 3),
    "nonzero": lambda d: (_x(d) > 0).nonzero(),
    "nonzero_tuple": lambda d: (_x(d) > 0).nonzero(as_tuple=True),
    "argwhere": lambda d: torch.argwhere(_x(d) > 0),
    "where_one": lambda d: torch.where(_x(d) > 0),
}


def _x(device: torch.device) -> Tensor:
    return ramp((4, 6)).to(device, copy=True)


def _x3(device: torch.device) -> Tensor:
    return ramp((2, 3, 4)).to(device, copy=True)


def _i(device: torch.device, *values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64, device=device)


@check("operator/index", "OP-001", cases=tuple(_INDEX))
def indexing_reads_what_the_cpu_reads(dev: Device, case: str) -> None:
    """x[...] with tensors, masks, None, slices and empties gives the CPU's result."""
    _agree(dev, _INDEX[case])


def _put(value: Any, *indices: Any, accumulate: bool = False) -> Program:
    """A program that calls index_put_ on a (2, 3, 4) tensor."""

    def program(device: torch.device) -> Tensor:
        x = _x3(device)
        where = tuple(None if i is None else _i(device, *i) for i in indices)
        what = value.to(device) if isinstance(value, Tensor) else torch.tensor(value, device=device)
        torch.ops.aten.index_put_(x, where, what, accumulate)
        return x

    return program


def _assign(*index: Any, value: Any) -> Program:
    def program(device: torch.device) -> Tensor:
        x = _x(device)
        where = tuple(i(device) if callable(i) else i for i in index)
        x[where] = value.to(device) if isinstance(value, Tensor) else value
        return x

    return program


_INDEX_PUT: dict[str, Program] = {
    "first": _put(7.0, (1,)),
    "none_then_index": _put(7.0, None, (0, 2)),
    "none_between": _put(7.0, (1, 0), None, (3, 2)),
    "leading_nones": _put(7.0, None, None, (0, 3)),
    "values": _put(ramp((2, 2, 4)), None, (0, 2)),
    "broadcast_values": _put(ramp((4,)), None, (0, 2)),
    "accumulate": _put(ramp((2, 3, 4)), None, None, (0, 1, 0, 1), accumulate=True),
    "accumulate_repeated": _put(1.0, (0, 0, 0), (1, 1, 1), accumulate=True),
    "empty": _put(7.0, ()),
    "assign_mask": _assign(lambda d: _x(d) > 0, value=0.5),
    "assign_rows": _assign(lambda d: _i(d, 3, 1), value=ramp((2, 6)) * 2),
    "assign_column": _assign(slice(None), lambda d: _i(d, 2), value=9.0),
    "assign_int": _assign(1, lambda d: _i(d, 2, 3), value=9),
    "assign_empty_mask": _assign(lambda d: _x(d) > 1e6, value=0.5),
}


@check("operator/index_put", "OP-001", cases=tuple(_INDEX_PUT))
def indexed_writes_write_what_the_cpu_writes(dev: Device, case: str) -> None:
    """index_put_ and assignments with optional indices change exactly the CPU's elements."""
    _agree(dev, _INDEX_PUT[case])


_SCATTER: dict[str, Program] = {
    "scatter": lambda d: _x(d).scatter_(1, _i(d, 0, 5, 2, 3).view(4, 1), 9.0),
    "scatter_tensor": lambda d: _x(d).scatter_(1, _i(d, 0, 5, 2, 3).view(4, 1), _x(d) * 2),
    "scatter_add": lambda d: _x(d).scatter_add_(0, _i(d, 0, 0, 1, 2, 3, 0).view(1, 6), _x(d)),
    "scatter_reduce": lambda d: _x(d).scatter_reduce(
        0, _i(d, 0, 0, 1, 2, 3, 0).view(1, 6), _x(d), "amax"
    ),
    "index_add": lambda d: _x(d).index_add_(0, _i(d, 1, 1), ramp((2, 6)).to(d), alpha=2),
    "index_copy": lambda d: _x(d).index_copy_(1, _i(d, 5, 0), ramp((4, 2)).to(d)),
    "index_fill": lambda d: _x(d).index_fill_(1, _i(d, 5, 0), 3.5),
    "index_fill_negative": lambda d: _x(d).index_fill_(1, _i(d, -1, 2), 3.5),
    "masked_fill": lambda d: _x(d).masked_fill_(_x(d) > 0, -1.0),
    "masked_fill_tensor": lambda d: _x(d).masked_fill(_x(d) > 0, torch.tensor(2.5, device=d)),
    "masked_scatter": lambda d: _x(d).masked_scatter_(_x(d) > 0, ramp((24,)).to(d)),
    "put": lambda d: _x(d).put_(_i(d, 3, 9), torch.tensor([1.5, 2.5], device=d)),
    "put_negative": lambda d: _x(d).put_(_i(d, -2, 9), torch.tensor([1.5, 2.5], device=d)),
    "select_scatter": lambda d: _x(d).select_scatter(ramp((6,)).to(d), 0, 2),
    "slice_scatter": lambda d: _x(d).slice_scatter(ramp((4, 2)).to(d), 1, 2, 4),
    "diagonal_scatter": lambda d: _x(d).diagonal_scatter(ramp((4,)).to(d) * 2),
    "as_strided_scatter": lambda d: _x(d).as_strided_scatter(ramp((2, 2)).to(d), (2, 2), (7, 2), 1),
    "fill_diagonal": lambda d: _x(d).fill_diagonal_(9.0),
}


@check("operator/scatter", "OP-001", cases=tuple(_SCATTER))
def scatters_agree(dev: Device, case: str) -> None:
    """The scatter, index_* and masked_* families agree with the CPU."""
    _agree(dev, _SCATTER[case])


_PUT_STRIDED: dict[str, Callable[[torch.device, Tensor], Any]] = {
    "put": lambda d, x: x.__setitem__(_i(d, 0, 3), 5.0),
    "put_flat": lambda d, x: x.put_(_i(d, 2, 7), torch.tensor([5.0, 6.0], device=d)),
    "fill": lambda d, x: x.index_fill_(1, _i(d, 1), 5.0),
    "masked": lambda d, x: x.masked_fill_(x > 0, 5.0),
}


@check("operator/index_strided", "OP-001", cases=_PUT_STRIDED)
def indexed_writes_reach_through_views(dev: Device, case: str) -> None:
    """Indexed in-place operators on a strided view change the view's base and nothing else."""

    def program(device: torch.device) -> Tensor:
        base = ramp((6, 8)).to(device, copy=True)
        _PUT_STRIDED[case](device, base.t()[1::2, 2:])
        return base

    _agree(dev, program)


# ---- out= ------------------------------------------------------------------------------------

_OUT: dict[str, Callable[[torch.device, Tensor], Any]] = {
    "add": lambda d, out: torch.add(_x(d), 2, out=out),
    "mul": lambda d, out: torch.mul(_x(d), _x(d), out=out),
    "matmul": lambda d, out: torch.matmul(_x(d), _x(d).t(), out=out),
    "addmm": lambda d, out: torch.addmm(_x(d)[:, :4], _x(d), _x(d).t(), out=out),
    "cat": lambda d, out: torch.cat([_x(d), _x(d)], out=out),
    "stack": lambda d, out: torch.stack([_x(d), _x(d)], out=out),
    "sum": lambda d, out: torch.sum(_x(d), 1, out=out),
    "mean": lambda d, out: torch.mean(_x(d), 0, out=out),
    "cumsum": lambda d, out: torch.cumsum(_x(d), 1, out=out),
    "exp": lambda d, out: torch.exp(_x(d) / 40, out=out),
    "sqrt": lambda d, out: torch.sqrt(_x(d).abs(), out=out),
    "clamp": lambda d, out: torch.clamp(_x(d), -3, 3, out=out),
    "where": lambda d, out: torch.where(_x(d) > 0, _x(d), -_x(d), out=out),
    "gather": lambda d, out: torch.gather(_x(d), 1, _i(d, 0, 1, 2, 3).view(4, 1), out=out),
    "index_select": lambda d, out: torch.index_select(_x(d), 1, _i(d, 1, 2), out=out),
    "softmax": lambda d, out: torch.softmax(_x(d), 1, out=out),
    "inverse": lambda d, out: torch.linalg.inv(torch.eye(3, device=d) * 2, out=out),
    "tril": lambda d, out: torch.tril(_x(d), out=out),
    "mv": lambda d, out: torch.mv(_x(d), _x(d)[0], out=out),
    "pow": lambda d, out: torch.pow(_x(d), 2, out=out),
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

    _agree(dev, program)


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

    _agree(dev, program)


#: Programs that write to `y`, a lazy clone, in place or by out=.
_WRITES: dict[str, Callable[[torch.device, Tensor], Any]] = {
    "add": lambda d, y: torch.add(_x(d), 1, out=y),
    "add_in_place": lambda d, y: y.add_(1),
    "fill": lambda d, y: y.fill_(3),
    "zero": lambda d, y: y.zero_(),
    "copy": lambda d, y: y.copy_(_x(d) * 2),
    "copy_from_host": lambda d, y: y.copy_(ramp((4, 6)) * 2),
    "matmul": lambda d, y: torch.mm(_x(d)[:, :4], _x(d), out=y),
    "softmax": lambda d, y: torch.softmax(_x(d), 1, out=y),
    "log_softmax": lambda d, y: torch.log_softmax(_x(d), 1, out=y),
    "cumsum": lambda d, y: torch.cumsum(_x(d), 1, out=y),
    "cummax": lambda d, y: torch.cummax(
        _x(d), 1, out=(y, torch.empty(0, dtype=torch.int64, device=d))
    ),
    "sort": lambda d, y: torch.sort(_x(d), 1, out=(y, torch.empty(0, dtype=torch.int64, device=d))),
    "cat": lambda d, y: torch.cat([_x(d)[:2], _x(d)[:2]], out=y),
    "tril": lambda d, y: y.tril_(),
    "index_put": lambda d, y: y.index_put_((_i(d, 1, 3),), torch.tensor(9.0, device=d)),
    "scatter": lambda d, y: y.scatter_(1, _i(d, 0, 5, 2, 3).view(4, 1), 9.0),
    "masked_fill": lambda d, y: y.masked_fill_(_x(d) > 3, 9.0),
    "normal": lambda d, y: y.normal_().mul_(0),
    "foreach": lambda d, y: torch._foreach_add_([y], 1),
    "view": lambda d, y: y[1:, 2:4].mul_(2),
    "fallback": lambda d, y: torch.special.bessel_j0(_x(d), out=y),
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
        _x(d),
        _i(d, 0, 1, 2, 3),
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

    _agree(dev, program)


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

    _agree(dev, program)


def _with_indices(call: Callable[[Tensor, tuple[Tensor, Tensor]], Any]) -> Program:
    """A program that has numbers and indices written to tensors without elements."""

    def program(device: torch.device) -> tuple[Tensor, Tensor]:
        out = torch.empty(0, device=device), torch.empty(0, dtype=torch.int64, device=device)
        call(_x(device), out)
        return out

    return program


def _aminmax(device: torch.device) -> list[Tensor]:
    low, high = torch.empty(0, device=device), torch.empty(0, device=device)
    torch.aminmax(_x(device), dim=1, out=(low, high))
    return [low, high]


def _svd(device: torch.device) -> list[Tensor]:
    u, s, vh = (torch.empty(0, device=device) for _ in range(3))
    torch.linalg.svd(_x(device), full_matrices=False, out=(u, s, vh))
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
    _agree(dev, _OUT_MULTIPLE[case], rtol=1e-4, atol=1e-4)


@check("operator/out_dtype:widened", "OP-002")
def out_of_a_wider_dtype_is_filled(dev: Device) -> None:
    """out= of a data type the result can be cast to is filled."""
    x = _x(dev.device())
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
    x = _x(dev.device())
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

    _agree(dev, program)


# ---- types and scalars -----------------------------------------------------------------------

#: Operators of two tensors, and whether they take complex ones.
_BINARY: dict[str, tuple[Callable[[Any, Any], Tensor], bool]] = {
    "add": (torch.add, True),
    "mul": (torch.mul, True),
    "true_divide": (torch.true_divide, True),
    "maximum": (torch.maximum, False),
    "eq": (torch.eq, True),
    "lt": (torch.lt, False),
    "where": (lambda a, b: torch.where(a.bool(), a, b), True),
    "cat": (lambda a, b: torch.cat([a, b]), True),
}


@check("operator/promotion", "OP-004", cases=_BINARY)
def mixed_dtypes_promote_as_on_the_cpu(dev: Device, case: str) -> None:
    """Two tensors of every pair of data types give the CPU's data type and values."""
    function, takes_complex = _BINARY[case]
    types = [d for d in dev.dtypes("all") if takes_complex or not d.is_complex]
    for first in types:
        for second in types:
            a, b = ramp((6,), first, positive=True), ramp((6,), second, positive=True) + 0
            expected = function(a, b)
            actual = function(a.to(dev.device()), b.to(dev.device()))
            assert actual.dtype == expected.dtype, f"{first} with {second}"
            dev.assert_close(actual, expected)


_NUMBERS: dict[str, Any] = {"int": 3, "float": 2.5, "bool": True, "complex": 1 + 2j}


@check("operator/wrapped_number", "OP-004", cases=_NUMBERS)
def python_numbers_do_not_decide_the_dtype(dev: Device, case: str) -> None:
    """A tensor with a Python number promotes by category only, on either side of the operator."""
    number = _NUMBERS[case]
    if isinstance(number, complex):
        dev.require("complex128")
    for dtype in dev.dtypes("all"):
        x = ramp((5,), dtype, positive=True)
        if dtype is torch.bfloat16 and torch.result_type(x, number) not in dev.dtypes("all"):
            continue  # since torch 2.15 it meets complex numbers in one that even the CPU lacks
        y = x.to(dev.device())
        for function in (torch.add, torch.mul, torch.eq):
            expected = function(x, number)
            assert function(y, number).dtype == expected.dtype, dtype
            dev.assert_close(function(y, number), expected)
        dev.assert_close(number * y, number * x)
        dev.assert_close(number + y, number + x)


def _half(dev: Device) -> tuple[Tensor, Tensor]:
    """The same float16 numbers on the CPU and on the device."""
    dev.require("float16")
    x = ramp((5,), torch.float16)
    return x, x.to(dev.device(), copy=True)


@check("operator/zero_dim:device", "OP-004")
def zero_dim_tensors_mix_with_larger_ones(dev: Device) -> None:
    """A 0-dim float32 tensor on the device does not widen a float16 tensor."""
    x, y = _half(dev)
    scalar = torch.tensor(2.5, dtype=torch.float32)
    dev.assert_close(y * scalar.to(dev.device()), x * scalar)


@check("operator/zero_dim:host", "OP-004")
def zero_dim_host_tensors_mix_with_device_tensors(dev: Device) -> None:
    """0-dim tensors of the host mix with a device tensor on either side and do not widen it."""
    x, y = _half(dev)
    for scalar in (torch.tensor(2.5), torch.tensor(3), torch.tensor(True)):
        for function in (torch.add, torch.mul, torch.true_divide):
            result = function(y, scalar)
            assert result.device == y.device
            dev.assert_close(result, function(x, scalar))
    dev.assert_close(torch.tensor(2.5) - y, torch.tensor(2.5) - x)


@check("operator/zero_dim:both", "OP-004")
def zero_dim_tensors_of_device_and_host_mix(dev: Device) -> None:
    """The sum of a 0-dim device tensor and a 0-dim host tensor is on the device."""
    result = torch.tensor(1.5, device=dev.device()) + torch.tensor(2)
    assert result.device.type == dev.type
    dev.assert_equal(result, torch.tensor(3.5))


@check("operator/zero_dim:wider", "OP-004")
def zero_dim_tensors_of_wider_dtype_do_not_widen(dev: Device) -> None:
    """A 0-dim int64 tensor on the device widens neither a float16 nor a 0-dim float32 tensor."""
    _, y = _half(dev)
    scalar = torch.tensor(2, dtype=torch.int64, device=dev.device())
    assert (y + scalar).dtype == torch.float16
    assert (scalar + torch.tensor(1.5, device=dev.device())).dtype == torch.float32


@check("operator/zero_dim:host_in_place", "OP-004")
def zero_dim_host_tensors_change_device_tensors_in_place(dev: Device) -> None:
    """In-place operators take 0-dim tensors of the host."""
    x, y = _half(dev)
    y.add_(torch.tensor(1.0)).mul_(torch.tensor(2))
    dev.assert_close(y, (x + 1) * 2)


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
        "index_copy": lambda: there.index_copy(0, _i(dev.device(), 1), host[:1]),
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
    "index_add": lambda x, y: x.index_add(0, _i(x.device, 0, 1, 2, 3), y),
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
    "embedding_bag": lambda x, y: functional.embedding_bag(_i(x.device, 0, 1), y, _i(x.device, 0)),
    "index_copy": lambda x, y: x.index_copy(0, _i(x.device, 0, 1, 2, 3), y),
    "put": lambda x, y: x.put(_i(x.device, 0, 1, 2, 3), y[0]),
    "take": lambda x, y: y.take(_i(x.device, 0, 1)),
    "gather": lambda x, y: y.gather(0, (x > 9).long()),
    "index_select": lambda x, y: y.index_select(0, _i(x.device, 0, 1)),
    "bucketize": lambda x, y: torch.bucketize(x, y[0]),
    "isin": lambda x, y: torch.isin(x, y),
    "bincount": lambda x, y: torch.bincount(_i(x.device, 0, 1, 2, 3), y[0]),
    "baddbmm": lambda x, y: torch.baddbmm(y[None], x[None], x[None]),
    "huber_loss": lambda x, y: functional.huber_loss(x, y),
    "nll_weight": lambda x, y: functional.nll_loss(x, _i(x.device, 0, 1, 2, 3), y[0]),
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
    "out_take": lambda x, y: torch.take(x, _i(x.device, 0, 1), out=y.new_empty(2)),
    "out_index_select": lambda x, y: torch.index_select(
        x, 0, _i(x.device, 0, 1), out=y.new_empty(2, 4)
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
        "add": lambda d: _x(d) + 1,
        "matmul": lambda d: _x(d) @ _x(d).t(),
        "sort": lambda d: list(torch.sort(_x(d))),
        "sum": lambda d: _x(d).sum(),
        "index": lambda d: _x(d)[_i(d, 1, 2)],
        "conv": lambda d: functional.conv1d(_x(d)[None], ramp((2, 4, 3)).to(d)),
        "foreach": lambda d: torch._foreach_add([_x(d), _x(d)], 1.0),
        "cat": lambda d: torch.cat([_x(d), _x(d)]),
        # These two seldom have kernels of their own.
        "inverse": lambda d: torch.linalg.inv(_matrix(d)),
        "window": lambda d: torch.kaiser_window(7, device=d),
    }
    before = torch.accelerator.current_device_index()
    expected = _tensors(programs[case](torch.device("cpu")))
    actual = _tensors(programs[case](there))
    for got, wanted in zip(actual, expected, strict=True):
        assert got.device == there
        dev.assert_close(got, wanted)
    assert torch.accelerator.current_device_index() == before


# ---- out= of derivatives -----------------------------------------------------------------------


def _image(device: torch.device, *shape: int, seed: int = 0) -> Tensor:
    return noise(shape, seed=seed).to(device)


def _of_element(device: torch.device) -> tuple[Tensor, Tensor]:
    return _image(device, 3, 4), _image(device, 3, 4, seed=1)


def _padded(dims: int, *padding: int) -> Callable[[torch.device], tuple[Any, ...]]:
    sizes = (4, 5, 6)[:dims]
    wide = [n + padding[-1 - 2 * i] + padding[-2 - 2 * i] for i, n in enumerate(sizes)]
    return lambda d: (_image(d, 2, *wide), _image(d, 2, *sizes, seed=1), padding)


def _padded_volume(device: torch.device) -> tuple[Any, ...]:
    padding = (2, 1, 1, 2, 1, 1)
    return _image(device, 1, 2, 6, 8, 9), _image(device, 1, 2, 4, 5, 6, seed=1), padding


def _resized(*wide: int) -> Callable[..., Callable[[torch.device], tuple[Any, ...]]]:
    narrow = (1, 2, *[4] * len(wide))
    return lambda *more: lambda d: (_image(d, 1, 2, *wide), wide, narrow, *more)


def _labels(device: torch.device, *shape: int) -> Tensor:
    return (torch.arange(12)[: torch.Size(shape).numel()] % 3).view(shape).to(device)


#: Operators of aten that compute derivatives, and their arguments.
_DERIVATIVES: dict[str, Callable[[torch.device], tuple[Any, ...]]] = {
    "reflection_pad1d_backward": _padded(1, 2, 1),
    "reflection_pad2d_backward": _padded(2, 2, 1, 1, 3),
    "reflection_pad3d_backward": _padded_volume,
    "replication_pad1d_backward": _padded(1, 2, 1),
    "replication_pad2d_backward": _padded(2, 2, 1, 1, 3),
    "replication_pad3d_backward": _padded_volume,
    "upsample_nearest1d_backward": _resized(7)(),
    "upsample_nearest2d_backward": _resized(7, 3)(),
    "upsample_nearest3d_backward": _resized(7, 3, 5)(),
    "_upsample_nearest_exact2d_backward": _resized(7, 3)(),
    "upsample_linear1d_backward": _resized(7)(False),
    "upsample_bilinear2d_backward": _resized(7, 3)(True),
    "upsample_trilinear3d_backward": _resized(7, 3, 5)(False),
    "upsample_bicubic2d_backward": _resized(7, 3)(False),
    "nll_loss_backward": lambda d: (
        _image(d),
        _image(d, 4, 3),
        _labels(d, 4),
        _image(d, 3).abs(),
        1,
        0,
        torch.full((), 2.5, device=d),
    ),
    "nll_loss2d_backward": lambda d: (
        _image(d, 2, 2, 3),
        _image(d, 2, 3, 2, 3),
        _labels(d, 2, 2, 3),
        None,
        0,
        -100,
        torch.full((), 0.0, device=d),
    ),
    "mse_loss_backward": lambda d: (_image(d), *_of_element(d), 1),
    "smooth_l1_loss_backward": lambda d: (*_of_element(d), _image(d, 3, 4, seed=2), 0, 0.7),
    "huber_loss_backward": lambda d: (_image(d), *_of_element(d), 2, 0.7),
    "soft_margin_loss_backward": lambda d: (_image(d), *_of_element(d), 1),
    "gelu_backward": _of_element,
    "silu_backward": _of_element,
    "sigmoid_backward": _of_element,
    "tanh_backward": _of_element,
    "logit_backward": lambda d: (_image(d, 3, 4), _image(d, 3, 4, seed=1).sigmoid(), 0.1),
    "elu_backward": lambda d: (*_of_element(d)[:1], 1.2, 0.9, 1.1, False, _of_element(d)[1]),
    "leaky_relu_backward": lambda d: (*_of_element(d), 0.2, False),
    "hardtanh_backward": lambda d: (*_of_element(d), -0.5, 0.4),
    "hardsigmoid_backward": _of_element,
    "hardswish_backward": _of_element,
    "softplus_backward": lambda d: (*_of_element(d), 1.5, 2.0),
    "softshrink_backward": lambda d: (*_of_element(d), 0.3),
    "hardshrink_backward": lambda d: (*_of_element(d), 0.3),
    "threshold_backward": lambda d: (*_of_element(d), 0.1),
    "glu_backward": lambda d: (_image(d, 3, 4), _image(d, 3, 8, seed=1), 1),
    "_softmax_backward_data": lambda d: (
        _image(d, 3, 4),
        _image(d, 3, 4, seed=1).softmax(1),
        1,
        torch.float32,
    ),
    "_log_softmax_backward_data": lambda d: (
        _image(d, 3, 4),
        _image(d, 3, 4, seed=1).log_softmax(1),
        1,
        torch.float32,
    ),
    "avg_pool2d_backward": lambda d: (
        _image(d, 1, 2, 3, 2),
        _image(d, 1, 2, 6, 5, seed=1),
        (2, 2),
        (2, 2),
        (0, 0),
        False,
        True,
        None,
    ),
    "avg_pool3d_backward": lambda d: (
        _image(d, 1, 2, 3, 2, 2),
        _image(d, 1, 2, 6, 5, 4, seed=1),
        (2, 2, 2),
        (2, 2, 2),
        (0, 0, 0),
        False,
        True,
        None,
    ),
    "max_pool2d_with_indices_backward": lambda d: (
        _image(d, 1, 2, 2, 2),
        _image(d, 1, 2, 4, 4, seed=1),
        (2, 2),
        (2, 2),
        (0, 0),
        (1, 1),
        False,
        functional.max_pool2d(_image(d, 1, 2, 4, 4, seed=1), 2, return_indices=True)[1],
    ),
    "max_pool3d_with_indices_backward": lambda d: (
        _image(d, 1, 2, 2, 2, 2),
        _image(d, 1, 2, 4, 4, 4, seed=1),
        (2, 2, 2),
        (2, 2, 2),
        (0, 0, 0),
        (1, 1, 1),
        False,
        functional.max_pool3d(_image(d, 1, 2, 4, 4, 4, seed=1), 2, return_indices=True)[1],
    ),
    "adaptive_max_pool2d_backward": lambda d: (
        _image(d, 1, 2, 2, 2),
        _image(d, 1, 2, 4, 5, seed=1),
        functional.adaptive_max_pool2d(_image(d, 1, 2, 4, 5, seed=1), 2, return_indices=True)[1],
    ),
}


def _writing_overload(name: str) -> Callable[..., Tensor]:
    """The overload of an operator that writes to its last argument, which has this name."""
    packet = getattr(torch.ops.aten, name)
    for overload in packet.overloads():
        operator = getattr(packet, overload)
        last = operator._schema.arguments[-1]
        if last.is_out:
            return lambda *given, into: operator(*given, **{last.name: into})
    raise AssertionError(f"{name} has no form with out=")


@check("operator/derivative_out", "OP-002", cases=_DERIVATIVES)
def derivatives_are_written_to_out(dev: Device, case: str) -> None:
    """The out= forms of derivatives resize and fill a tensor, and fill and return another."""
    write, given = _writing_overload(case), _DERIVATIVES[case]

    def program(device: torch.device) -> list[Tensor]:
        resized = torch.empty(0, device=device)
        write(*given(device), into=resized)
        returned = write(*given(device), into=torch.full_like(resized, float("nan")))
        return [resized, returned]

    _agree(dev, program)


# ---- products with an activation ---------------------------------------------------------------

_ACTIVATED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda x, w: torch._addmm_activation(w[0], x, w),
    "relu_scaled": lambda x, w: torch._addmm_activation(w, x, w, beta=0.5, alpha=2.0),
    "gelu": lambda x, w: torch._addmm_activation(w[0], x, w, use_gelu=True),
    "gelu_scaled": lambda x, w: torch._addmm_activation(
        w, x, w, beta=0.5, alpha=2.0, use_gelu=True
    ),
}


@check("operator/addmm_activation", "OP-014", cases=_ACTIVATED)
def activations_of_products_agree(dev: Device, case: str) -> None:
    """A product with its activation agrees with the CPU, whichever formula of gelu it takes."""
    _agree(
        dev,
        lambda d: _ACTIVATED[case](_image(d, 5, 5), _image(d, 5, 5, seed=1)),
        rtol=1e-3,
        atol=2e-3,
    )


# ---- the current stream ------------------------------------------------------------------------


def _bags(x: Tensor) -> Tensor:
    return functional.embedding_bag(_i(x.device, 1, 0, 1), x, _i(x.device, 0, 2), mode="sum")


def _written(x: Tensor, write: Callable[[Tensor], Any]) -> Tensor:
    """A copy of the numbers after a write to it."""
    changed = x.detach().clone()
    write(changed)
    return changed


def _multiplied(x: Tensor) -> Tensor:
    found, scale = torch.zeros(1, device=x.device), torch.full((1,), 0.25, device=x.device)
    return _written(
        x, lambda y: torch._amp_foreach_non_finite_check_and_unscale_([y], found, scale)
    )


def _rows(x: Tensor) -> Tensor:
    """The matrix as two images of 2 x 2."""
    return x.view(1, 2, 2, 2)


#: Functions of a matrix of 2 x 4, with a derivative or without, beside those of autograd.
_STREAMED: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + 1,
    "cast": lambda x: x.to(torch.float64),
    "compare": lambda x: x > 0.1,
    "dot": lambda x: x[0] @ x[1],
    "mv": lambda x: x @ x[0],
    "addmm": lambda x: torch.addmm(x[:, :2], x, x.t()),
    "baddbmm": lambda x: torch.baddbmm(x.view(2, 2, 2), x.view(2, 2, 2), x.view(2, 2, 2)),
    "fused_attention": lambda x: _attended(*[x.view(1, 1, 4, 2)] * 3),
    "fused_attention_causal": lambda x: functional.scaled_dot_product_attention(
        x.view(1, 1, 4, 2), x.view(1, 1, 4, 2), x.view(1, 1, 4, 2), is_causal=True
    ),
    "embedding": lambda x: functional.embedding(_i(x.device, 1, 0, 1), x),
    "embedding_bag": _bags,
    "nll_loss": lambda x: functional.nll_loss(x, _i(x.device, 1, 3), x[0].detach().abs()),
    "nll_loss_2d": lambda x: functional.nll_loss(_rows(x), _zeros_index(x, 1, 2, 2)),
    "bce": lambda x: functional.binary_cross_entropy_with_logits(x, x.detach().sigmoid()),
    "smooth_l1": lambda x: functional.smooth_l1_loss(x, x.detach().flip(0)),
    "max_pool2d": lambda x: functional.max_pool2d(_rows(x), 2),
    "avg_pool2d": lambda x: functional.avg_pool2d(_rows(x), 2),
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(_rows(x), 1),
    "adaptive_max_pool2d": lambda x: functional.adaptive_max_pool2d(_rows(x), 1),
    "nearest": lambda x: functional.interpolate(_rows(x), size=3),
    "bilinear": lambda x: functional.interpolate(_rows(x), size=3, mode="bilinear"),
    "bicubic": lambda x: functional.interpolate(_rows(x), size=3, mode="bicubic"),
    "replicate": lambda x: functional.pad(_rows(x), (1, 1, 1, 1), mode="replicate"),
    "constant": lambda x: functional.pad(x, (1, 2), value=7.0),
    "unfold": lambda x: functional.unfold(_rows(x), 2),
    "fold": lambda x: functional.fold(x.view(1, 4, 2), (2, 3), (2, 2)),
    "conv_depthwise": lambda x: functional.conv2d(_rows(x), x.detach().view(2, 1, 2, 2), groups=2),
    "conv_transpose": lambda x: functional.conv_transpose2d(_rows(x), _rows(x).view(2, 1, 2, 2)),
    "batch_norm_evaluated": lambda x: functional.batch_norm(
        x, x[0].detach(), x[1].detach().square() + 1
    ),
    "rms_norm": lambda x: functional.rms_norm(x, (4,), x[0]),
    "prelu": lambda x: functional.prelu(x, x[0, :1]),
    "glu": lambda x: functional.glu(x),
    "masked_fill": lambda x: x.masked_fill(x > 0, 2.0),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x.flip(1)),
    "masked_select": lambda x: x.masked_select(x > 0),
    "nonzero": lambda x: (x > 0).nonzero(),
    "unique": lambda x: x.detach().round().unique(),
    "index_put": lambda x: _written(x, lambda y: y.index_put_((_i(y.device, 1),), x[:1], True)),
    "index_add": lambda x: x.index_add(0, _i(x.device, 1, 1), x),
    "index_copy": lambda x: x.index_copy(0, _i(x.device, 1, 0), x),
    "index_fill": lambda x: x.index_fill(1, _i(x.device, 2), 5.0),
    "index_select": lambda x: x.index_select(1, _i(x.device, 2, 0)),
    "take": lambda x: x.take(_i(x.device, 7, 0, 3)),
    "put": lambda x: x.put(_i(x.device, 7, 0), x[0, :2]),
    "scatter": lambda x: x.scatter(1, _i(x.device, 3, 0, 1, 2).expand(2, 4), x),
    "scatter_reduce": lambda x: x.scatter_reduce(1, _zeros_index(x, 2, 4), x, "amax"),
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(1, 1),
    "tril": lambda x: x.tril(),
    "diag_embed": lambda x: x.diag_embed(),
    "repeat": lambda x: x.repeat(2, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(_i(x.device, 2, 1), 0),
    "stack": lambda x: torch.stack([x, x]),
    "transposed": lambda x: x.t().contiguous(),
    "cummax": lambda x: x.cummax(1).values,
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "kthvalue": lambda x: x.kthvalue(2, 1).values,
    "median": lambda x: x.median(1).values,
    "mode": lambda x: x.mode(1).values,
    "topk": lambda x: x.topk(2, 1).values,
    "argsort": lambda x: x.argsort(1),
    "argmax": lambda x: x.argmax(1),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(0),
    "var_mean": lambda x: list(torch.var_mean(x, 1)),
    "aminmax": lambda x: list(x.aminmax()),
    "any": lambda x: (x > 0.9).any(1),
    "count_nonzero": lambda x: (x > 0).count_nonzero(),
    "searchsorted": lambda x: torch.searchsorted(x.sort(1).values, x),
    "bucketize": lambda x: torch.bucketize(x, x[0].sort().values),
    "bincount": lambda x: (x > 0).view(-1).long().bincount(x.detach().abs().view(-1), 3),
    "isin": lambda x: torch.isin(x, x[0]),
    "item": lambda x: torch.full((2,), x[1, 2].item(), device=x.device),
    "where": lambda x: torch.where(x > 0, x, x.flip(1)),
    "lerp": lambda x: torch.lerp(x, x.flip(1), x.sigmoid()),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x.flip(0))),
    "foreach": lambda x: torch._foreach_add([x.detach()], [x.detach()]),
    "foreach_norm": lambda x: torch._foreach_norm([x.detach()]),
    "unscale": _multiplied,
    "update_scale": lambda x: _written(
        x[0, :1],
        lambda y: torch._amp_update_scale_(
            y, torch.zeros(1, dtype=torch.int32, device=y.device), y.ceil(), 2.0, 0.5, 3
        ),
    ),
    "fill_tensor": lambda x: _written(x, lambda y: y.fill_(x[1, 1].detach())),
    "lstm_cell": lambda x: torch.lstm_cell(x, [x, x], *[x.detach().repeat(8, 1)] * 2)[0],
    "gru_cell": lambda x: torch.gru_cell(x, x, *[x.detach().repeat(6, 1)] * 2),
}


def _with_gradient(function: Callable[[Tensor], Any], x: Tensor) -> list[Tensor]:
    """What the function returns; if it has a derivative, its gradient, too."""
    x = x.detach().requires_grad_()
    results = _tensors(function(x))
    first = results[0]
    if not first.requires_grad:
        return results
    weight = torch.arange(first.numel(), device=x.device).view(first.shape).sin() + 2
    return [*results, *torch.autograd.grad(first, x, weight.to(first.dtype))]


@check(
    "operator/side_stream",
    "STREAM-046",
    needs=("streams", "delay"),
    cases={**FUNCTIONS, **_STREAMED},
)
def operators_read_what_their_stream_has_written(dev: Device, case: str) -> None:
    """On a side stream of each device, operator and gradient use numbers that arrive there late."""
    function = {**FUNCTIONS, **_STREAMED}[case]
    values = noise((2, 4))
    expected = _with_gradient(function, values)
    indices = range(min(dev.count, 2))
    given = [values.to(dev.device(index)) for index in indices]
    late = [torch.full((2, 4), 0.5, device=dev.device(index)) for index in indices]
    streams = [dev.stream(index) for index in indices]
    dev.synchronize()
    for stream, x, source in zip(streams, late, given, strict=True):
        with stream:
            dev.delay(10)
            x.copy_(source)
    found = []
    for stream, x in zip(streams, late, strict=True):
        with stream, torch.accelerator.device_index(0):
            found.append(_with_gradient(function, x))
    for stream, results in zip(streams, found, strict=True):
        with stream:
            host = [result.cpu() for result in results]
        for got, wanted in zip(host, expected, strict=True):
            dev.assert_close(got, wanted.detach(), rtol=1e-4, atol=1e-5)


# ---- empties and views -----------------------------------------------------------------------

_EMPTY: dict[str, Program] = {
    "sum": lambda d: torch.zeros(0, 3, device=d).sum(0),
    "sum_all": lambda d: torch.zeros(0, device=d).sum(),
    "mean": lambda d: torch.zeros(0, device=d).mean(),
    "prod": lambda d: torch.zeros(2, 0, device=d).prod(1),
    "all_any": lambda d: [torch.zeros(0, device=d).all(), torch.zeros(0, device=d).any()],
    "add": lambda d: torch.zeros(0, 3, device=d) + 1,
    "matmul_inner": lambda d: torch.zeros(2, 0, device=d) @ torch.zeros(0, 3, device=d),
    "matmul_outer": lambda d: torch.zeros(0, 2, device=d) @ torch.zeros(2, 3, device=d),
    "bmm": lambda d: torch.bmm(torch.zeros(0, 2, 3, device=d), torch.zeros(0, 3, 4, device=d)),
    "bmm_inner": lambda d: torch.bmm(
        torch.zeros(2, 2, 0, device=d), torch.zeros(2, 0, 4, device=d)
    ),
    "softmax": lambda d: torch.softmax(torch.zeros(0, 5, device=d), 1),
    "log_softmax": lambda d: torch.log_softmax(torch.zeros(3, 0, device=d), 1),
    "cat": lambda d: torch.cat([torch.zeros(0, 3, device=d), torch.ones(2, 3, device=d)]),
    "cat_legacy": lambda d: torch.cat([torch.zeros(0, device=d), torch.ones(2, 3, device=d)]),
    "stack": lambda d: torch.stack([torch.zeros(0, device=d)] * 2),
    "sort": lambda d: list(torch.sort(torch.zeros(0, device=d))),
    "topk": lambda d: list(torch.topk(torch.ones(3, device=d), 0)),
    "unique": lambda d: torch.unique(torch.zeros(0, device=d)),
    "nonzero": lambda d: torch.zeros(0, 2, device=d).nonzero(),
    "nonzero_none": lambda d: torch.zeros(4, device=d).nonzero(),
    "cumsum": lambda d: torch.zeros(0, 2, device=d).cumsum(0),
    "linear": lambda d: functional.linear(torch.zeros(0, 3, device=d), torch.ones(2, 3, device=d)),
    "conv2d": lambda d: functional.conv2d(
        torch.zeros(0, 2, 5, 5, device=d), torch.ones(3, 2, 3, 3, device=d)
    ),
    "embedding": lambda d: functional.embedding(_i(d), torch.ones(4, 3, device=d)),
    "where": lambda d: torch.where(torch.zeros(0, dtype=torch.bool, device=d), 1.0, 2.0),
    "masked_fill": lambda d: torch.zeros(0, device=d).masked_fill(
        torch.zeros(0, dtype=torch.bool, device=d), 1.0
    ),
    "layer_norm": lambda d: functional.layer_norm(torch.zeros(0, 4, device=d), (4,)),
    "batch_norm": lambda d: functional.batch_norm(
        torch.zeros(0, 4, device=d), torch.zeros(4, device=d), torch.ones(4, device=d)
    ),
    "mse_loss": lambda d: functional.mse_loss(
        torch.zeros(0, device=d), torch.zeros(0, device=d), reduction="sum"
    ),
    "interpolate": lambda d: functional.interpolate(torch.zeros(0, 2, 4, device=d), size=8),
    "svd": lambda d: torch.linalg.svdvals(torch.zeros(0, 3, device=d)),
    "det": lambda d: torch.linalg.det(torch.zeros(0, 0, device=d)),
    "foreach": lambda d: torch._foreach_mul([torch.zeros(0, device=d), torch.ones(2, device=d)], 2),
    "repeat": lambda d: torch.ones(2, device=d).repeat(0, 3),
    "split": lambda d: list(torch.zeros(0, 4, device=d).split(2, 1)),
    "bincount": lambda d: torch.bincount(_i(d), minlength=3),
    "histc": lambda d: torch.histc(torch.zeros(0, device=d), 4, 0.0, 1.0),
}


@check("operator/empty", "OP-007", cases=tuple(_EMPTY))
def empty_inputs_are_handled(dev: Device, case: str) -> None:
    """Operators on tensors without elements give the CPU's result."""
    _agree(dev, _EMPTY[case])


def _attended(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value)


#: Differentiable functions, and the shapes of what they are given: a dimension has no elements.
_EMPTY_GRADIENTS: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "attention_keys": (_attended, ((2, 3, 5, 8), (2, 3, 0, 8), (2, 3, 0, 8))),
    "attention_queries": (_attended, ((2, 3, 0, 8), (2, 3, 5, 8), (2, 3, 5, 8))),
    "attention_batch": (_attended, ((0, 3, 5, 8), (0, 3, 4, 8), (0, 3, 4, 8))),
    "attention_columns": (_attended, ((2, 3, 5, 8), (2, 3, 4, 8), (2, 3, 4, 0))),
    "mm_inner": (torch.mm, ((3, 0), (0, 4))),
    "mm_rows": (torch.mm, ((0, 3), (3, 4))),
    "mm_columns": (torch.mm, ((3, 4), (4, 0))),
    "bmm_inner": (torch.bmm, ((2, 3, 0), (2, 0, 4))),
    "bmm_batch": (torch.bmm, ((0, 3, 5), (0, 5, 4))),
    "mv_inner": (torch.mv, ((3, 0), (0,))),
    "mv_rows": (torch.mv, ((0, 3), (3,))),
    "dot": (torch.dot, ((0,), (0,))),
    "outer": (torch.outer, ((0,), (3,))),
    "addmm_inner": (torch.addmm, ((4,), (3, 0), (0, 4))),
    "addmm_rows": (torch.addmm, ((4,), (0, 3), (3, 4))),
    "addmv_inner": (torch.addmv, ((3,), (3, 0), (0,))),
    "addr": (torch.addr, ((4,), (0,), (4,))),
    "addbmm_batch": (torch.addbmm, ((3, 4), (0, 3, 5), (0, 5, 4))),
    "baddbmm_inner": (torch.baddbmm, ((2, 3, 4), (2, 3, 0), (2, 0, 4))),
    "baddbmm_batch": (torch.baddbmm, ((1, 3, 4), (0, 3, 5), (0, 5, 4))),
    "linear_batch": (functional.linear, ((0, 3), (4, 3), (4,))),
    "linear_inner": (functional.linear, ((5, 0), (4, 0), (4,))),
    "bilinear_batch": (functional.bilinear, ((0, 3), (0, 4), (2, 3, 4), (2,))),
    "conv1d_batch": (functional.conv1d, ((0, 3, 7), (4, 3, 2), (4,))),
    "conv2d_batch": (functional.conv2d, ((0, 3, 6, 7), (4, 3, 2, 2), (4,))),
    "conv3d_batch": (functional.conv3d, ((0, 2, 4, 4, 4), (3, 2, 2, 2, 2), (3,))),
    "conv_transpose2d_batch": (functional.conv_transpose2d, ((0, 3, 4, 5), (3, 2, 2, 2), (2,))),
    "layer_norm": (lambda x, w, b: functional.layer_norm(x, (4,), w, b), ((0, 4), (4,), (4,))),
    "rms_norm": (lambda x, w: functional.rms_norm(x, (4,), w), ((0, 4), (4,))),
    "group_norm": (lambda x, w, b: functional.group_norm(x, 2, w, b), ((0, 4, 3), (4,), (4,))),
    "batch_norm_evaluated": (
        lambda x, w, b: functional.batch_norm(x, b.detach() * 0, b.detach() * 0 + 1, w, b),
        ((0, 4, 3), (4,), (4,)),
    ),
    "prelu": (functional.prelu, ((0, 4, 3), (4,))),
    "embedding": (
        lambda w: functional.embedding(_zeros_index(w, 0), w, padding_idx=1),
        ((5, 3),),
    ),
    "embedding_columns": (
        lambda w: functional.embedding(_zeros_index(w, 4), w),
        ((5, 0),),
    ),
    "embedding_bag": (
        lambda w: functional.embedding_bag(_zeros_index(w, 0), w, _zeros_index(w, 2), mode="sum"),
        ((5, 3),),
    ),
    "embedding_bag_mean": (
        lambda w: functional.embedding_bag(_zeros_index(w, 0), w, _zeros_index(w, 2), mode="mean"),
        ((5, 3),),
    ),
    "index": (lambda x: x[_zeros_index(x, 0)], ((5, 3),)),
    "index_select": (lambda x: x.index_select(0, _zeros_index(x, 0)), ((5, 3),)),
    "gather": (lambda x: x.gather(0, _zeros_index(x, 0, 3)), ((5, 3),)),
    "take": (lambda x: x.take(_zeros_index(x, 0)), ((5, 3),)),
    "masked_select": (lambda x: x.masked_select(x > 1e6), ((5, 3),)),
    "masked_fill": (lambda x, y: x.masked_fill(x > 0, y.sum()), ((0, 3), (0,))),
    "index_put": (lambda x, y: x.index_put((_zeros_index(x, 0),), y), ((5, 3), (0, 3))),
    "index_add": (lambda x, y: x.index_add(0, _zeros_index(x, 0), y), ((5, 3), (0, 3))),
    "index_copy": (lambda x, y: x.index_copy(0, _zeros_index(x, 0), y), ((5, 3), (0, 3))),
    "scatter": (lambda x, y: x.scatter(0, _zeros_index(x, 0, 3), y), ((5, 3), (0, 3))),
    "scatter_add": (lambda x, y: x.scatter_add(0, _zeros_index(x, 0, 3), y), ((5, 3), (0, 3))),
    "repeat_interleave": (
        lambda x: x.repeat_interleave(_zeros_index(x, 5), 0),
        ((5, 3),),
    ),
    "repeat": (lambda x: x.repeat(0, 2), ((5, 3),)),
    "slice": (lambda x: x[2:2], ((5, 3),)),
    "expand": (lambda x: x.expand(0, 3), ((1, 3),)),
    "broadcast": (lambda x, y: x * y, ((0, 3), (3,))),
    "broadcast_column": (lambda x, y: x + y, ((5, 0), (5, 1))),
    "where": (lambda x, y: torch.where(x > 0, x, y), ((0, 3), (3,))),
    "lerp": (torch.lerp, ((0, 3), (3,), (1, 3))),
    "addcmul": (torch.addcmul, ((3,), (0, 3), (0, 1))),
    "cat": (lambda x, y: torch.cat([x, y]), ((0, 3), (2, 3))),
    "cat_columns": (lambda x, y: torch.cat([x, y], 1), ((2, 0), (2, 3))),
    "stack": (lambda x, y: torch.stack([x, y]), ((0, 3), (0, 3))),
    "unfold": (lambda x: x.unfold(0, 2, 1), ((5, 0),)),
    "pad": (lambda x: functional.pad(x, (2, 1)), ((3, 0),)),
    "pad_reflect": (lambda x: functional.pad(x, (1, 1), mode="reflect"), ((0, 3, 4),)),
    "pad_replicate": (lambda x: functional.pad(x, (1, 1), mode="replicate"), ((0, 3, 4),)),
    "sum": (lambda x: x.sum(0), ((0, 3),)),
    "sum_all": (lambda x: x.sum(), ((0, 3),)),
    "prod": (lambda x: x.prod(0), ((0, 3),)),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=0), ((0, 3),)),
    "logsumexp": (lambda x: x.logsumexp(0), ((0, 3),)),
    "amax": (lambda x: x.amax(1), ((0, 3),)),
    "max": (lambda x: x.max(1).values, ((0, 3),)),
    "var": (lambda x: x.var(1), ((0, 3),)),
    "softmax": (lambda x: x.softmax(0), ((0, 3),)),
    "log_softmax": (lambda x: x.log_softmax(1), ((0, 3),)),
    "cumsum": (lambda x: x.cumsum(0), ((0, 3),)),
    "cumprod": (lambda x: x.cumprod(1), ((0, 3),)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), ((0, 3),)),
    "sort": (lambda x: x.sort(0).values, ((0, 3),)),
    "topk": (lambda x: x.topk(0, 1).values, ((5, 3),)),
    "gelu": (functional.gelu, ((0, 3),)),
    "glu": (functional.glu, ((0, 4),)),
    "dropout": (lambda x: functional.dropout(x, 0.5), ((0, 3),)),
    "max_pool": (lambda x: functional.max_pool2d(x, 2), ((0, 3, 4, 4),)),
    "avg_pool": (lambda x: functional.avg_pool2d(x, 2), ((0, 3, 4, 4),)),
    "adaptive_avg_pool": (lambda x: functional.adaptive_avg_pool2d(x, 2), ((0, 3, 4, 4),)),
    "interpolate": (lambda x: functional.interpolate(x, size=7, mode="linear"), ((0, 3, 4),)),
    "interpolate_nearest": (lambda x: functional.interpolate(x, size=7), ((0, 3, 4),)),
    "mse_loss": (lambda x, y: functional.mse_loss(x, y, reduction="sum"), ((0, 3), (0, 3))),
    "mse_loss_mean": (functional.mse_loss, ((0, 3), (0, 3))),
    "l1_loss": (lambda x, y: functional.l1_loss(x, y, reduction="sum"), ((0, 3), (0, 3))),
    "smooth_l1_loss": (functional.smooth_l1_loss, ((0, 3), (0, 3))),
    "huber_loss": (lambda x, y: functional.huber_loss(x, y, reduction="sum"), ((0, 3), (0, 3))),
    "bce_with_logits": (
        lambda x: functional.binary_cross_entropy_with_logits(
            x, torch.ones_like(x), reduction="sum"
        ),
        ((0, 3),),
    ),
    "nll_loss": (
        lambda x: functional.nll_loss(x, _zeros_index(x, 0), reduction="sum"),
        ((0, 3),),
    ),
    "nll_loss_mean": (lambda x: functional.nll_loss(x, _zeros_index(x, 0)), ((0, 3),)),
    "cross_entropy": (
        lambda x: functional.cross_entropy(x, _zeros_index(x, 0), reduction="none"),
        ((0, 3),),
    ),
    "cdist": (torch.cdist, ((0, 3), (4, 3))),
    "cdist_columns": (torch.cdist, ((5, 0), (4, 0))),
    "einsum": (lambda x, y: torch.einsum("bi,bj->ij", x, y), ((0, 3), (0, 4))),
    "diagonal": (lambda x: x.diagonal(), ((0, 3),)),
    "tril": (lambda x: x.tril(), ((0, 3),)),
    "to": (lambda x: x.to(torch.float64), ((0, 3),)),
}


@contextmanager
def _filled_memory() -> Iterator[None]:
    """New memory holds NaN, so that what is not written shows; nothing is refused for it."""
    with deterministic(warn_only=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@check("operator/empty_gradient", "OP-007", cases=_EMPTY_GRADIENTS)
def gradients_beside_empty_dimensions_are_handled(dev: Device, case: str) -> None:
    """The gradients of all inputs agree with the CPU where an input has no elements."""
    function, shapes = _EMPTY_GRADIENTS[case]

    def program(device: torch.device) -> list[Tensor]:
        inputs = [_leaf(device, *shape, seed=seed) for seed, shape in enumerate(shapes)]
        return _gradients(function(*inputs), *inputs)

    with _filled_memory():
        _agree(dev, program)


@check("operator/empty_refused", "OP-035", cases=("max", "argmin", "median_dim", "amax"))
def reductions_without_identity_refuse_empties(dev: Device, case: str) -> None:
    """max, argmin, amax and median over no elements raise, as on the CPU."""
    x = torch.zeros(0, 3, device=dev.device())
    works: dict[str, Callable[[], Any]] = {
        "max": x.max,
        "argmin": lambda: x.argmin(0),
        "median_dim": lambda: x.median(0),
        "amax": lambda: x.amax(0),
    }

    def work() -> None:
        works[case]()
        dev.synchronize()

    assert isinstance(raised(work), (RuntimeError, IndexError))


# ---- device= ---------------------------------------------------------------------------------

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
    "eye": lambda d: torch.eye(3, device=d),
    "linspace_tensor": lambda d: torch.linspace(torch.tensor(0.0), torch.tensor(1.0), 5, device=d),
}


@check("operator/device_argument", "OP-008", cases=tuple(_DEVICE_ARGUMENT))
def a_device_argument_decides_the_device(dev: Device, case: str) -> None:
    """Operators whose device comes from an argument, not from a tensor, return on that device."""
    _agree(dev, _DEVICE_ARGUMENT[case])


# ---- lists of tensors ------------------------------------------------------------------------

_LISTS: dict[str, Program] = {
    "foreach_add": lambda d: torch._foreach_add(_list(d), _list(d), alpha=2),
    "foreach_mul_scalar": lambda d: torch._foreach_mul(_list(d), 2.5),
    "foreach_scalars": lambda d: torch._foreach_mul(_list(d), [1.0, 2.0, 3.0]),
    "foreach_in_place": lambda d: _mutated(torch._foreach_add_, d, 1.5),
    "foreach_div_in_place": lambda d: _mutated(torch._foreach_div_, d, [2.0, 4.0, 8.0]),
    "foreach_addcdiv": lambda d: torch._foreach_addcdiv(
        _list(d), _list(d), _list(d), [1.0, 2.0, 3.0]
    ),
    "foreach_addcmul_in_place": lambda d: _mutated(
        torch._foreach_addcmul_, d, _list(d), _list(d), value=0.5
    ),
    "foreach_norm": lambda d: torch._foreach_norm(_list(d)),
    "foreach_sqrt": lambda d: torch._foreach_sqrt(torch._foreach_abs(_list(d))),
    "foreach_zero": lambda d: _mutated(torch._foreach_zero_, d),
    "foreach_copy": lambda d: _mutated(torch._foreach_copy_, d, torch._foreach_neg(_list(d))),
    "foreach_lerp": lambda d: torch._foreach_lerp(_list(d), torch._foreach_neg(_list(d)), 0.25),
    "foreach_maximum": lambda d: torch._foreach_maximum(_list(d), 1.0),
    "foreach_pow": lambda d: torch._foreach_pow(_list(d), 2),
    "cat": lambda d: torch.cat([x.flatten() for x in _list(d)]),
    "cat_mixed": lambda d: torch.cat([_list(d)[0], _list(d)[0].int(), _list(d)[0].half()]),
    "stack": lambda d: torch.stack([_x(d), _x(d) * 2, _x(d)], 1),
    "block_diag": lambda d: torch.block_diag(*[x.view(-1, 2) for x in _list(d)[::2]]),
    "broadcast_tensors": lambda d: torch.broadcast_tensors(_x(d), _x(d)[0], _x(d)[:, :1]),
    "einsum": lambda d: torch.einsum("ij,kj,k->i", _x(d), _x(d), _x(d)[:, 0]),
    "chain_matmul": lambda d: torch.linalg.multi_dot([_x(d), _x(d).t(), _x(d)]) / 1e3,
    "index_lists": lambda d: torch.ops.aten.index(_x3(d), [None, _i(d, 2, 0), None]),
    "clip_grad_norm": lambda d: _clipped(d),
    "cat_many": lambda d: torch.cat(_many(d)),
    "stack_many": lambda d: torch.stack([x[0] for x in _many(d)]),
    "foreach_many": lambda d: torch._foreach_add(_many(d), 1.5),
    "foreach_many_in_place": lambda d: _many_mutated(d),
}


def _list(device: torch.device) -> list[Tensor]:
    return [ramp(shape).to(device, copy=True) for shape in ((4,), (2, 3), (1, 2, 3))]


def _many(device: torch.device) -> list[Tensor]:
    """More tensors, of more sizes, than one launch takes."""
    return [ramp((1 + n % 7,)).to(device) + n for n in range(401)]


def _many_mutated(device: torch.device) -> list[Tensor]:
    tensors, others = _many(device), _many(device)
    torch._foreach_mul_(tensors, 2)
    torch._foreach_addcmul_(tensors, others, others, value=0.5)
    return tensors


def _mutated(operator: Any, device: torch.device, *arguments: Any, **keywords: Any) -> list[Tensor]:
    tensors = _list(device)
    operator(tensors, *arguments, **keywords)
    return tensors


def _clipped(device: torch.device) -> list[Tensor]:
    parameters = [torch.nn.Parameter(x) for x in _list(device)]
    for parameter in parameters:
        parameter.grad = parameter.detach() * 3
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    return [norm, *(p.grad for p in parameters if p.grad is not None)]


@check("operator/tensor_list", "OP-009", cases=tuple(_LISTS))
def lists_of_tensors_are_read_and_written(dev: Device, case: str) -> None:
    """Operators that take lists, and those that change the tensors in them, agree with the CPU."""
    _agree(dev, _LISTS[case], rtol=1e-5, atol=1e-4)


# ---- networks --------------------------------------------------------------------------------


def _conv(dims: int, *, transposed: bool = False, **options: Any) -> Program:
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    groups = options.get("groups", 1)
    bias = options.pop("bias", True)
    inputs, outputs = options.pop("channels", (4, 4))

    def program(device: torch.device) -> list[Tensor]:
        x = _leaf(device, 2, inputs, *(7, 6, 5)[:dims])
        w = _leaf(device, outputs, inputs // groups, *(3, 2, 3)[:dims], seed=1)
        leaves = [x, w]
        if bias:
            leaves.append(_leaf(device, outputs, seed=2))
        function = getattr(functional, name)
        return _gradients(function(x, w, leaves[2] if bias else None, **options), *leaves)

    return program


_CONVOLUTIONS: dict[str, Program] = {
    "conv1d": _conv(1),
    "conv1d_stride_padding": _conv(1, stride=2, padding=1),
    "conv1d_same": _conv(1, padding="same"),
    "conv2d": _conv(2),
    "conv2d_no_bias": _conv(2, bias=False),
    "conv2d_channels": _conv(2, channels=(5, 37)),
    "conv2d_stride_padding": _conv(2, stride=(2, 1), padding=(1, 2)),
    "conv2d_dilation": _conv(2, dilation=2),
    "conv2d_groups": _conv(2, groups=2),
    "conv2d_depthwise": _conv(2, groups=4),
    "conv3d": _conv(3),
    "conv_transpose1d": _conv(1, transposed=True, stride=2),
    "conv_transpose2d": _conv(2, transposed=True, stride=2, padding=1, output_padding=1),
    "conv_transpose2d_groups": _conv(2, transposed=True, groups=2),
    "conv_transpose3d": _conv(3, transposed=True),
}


@check("operator/convolution", "OP-010", cases=tuple(_CONVOLUTIONS))
def convolutions_agree_forward_and_backward(dev: Device, case: str) -> None:
    """Convolutions and their gradients for input, weight and bias agree with the CPU."""
    _agree(dev, _CONVOLUTIONS[case], rtol=1e-4, atol=1e-4)


#: What is done to a batch of images before a convolution with a gradient for its weight only.
_IMAGES: dict[str, Callable[[Tensor], Tensor]] = {
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "unbatched": lambda x: x[0],
    "half_gradient": lambda x: x,
}


@check("operator/convolution_format", "OP-010", cases=_IMAGES)
def convolutions_take_other_layouts(dev: Device, case: str) -> None:
    """channels_last and unbatched inputs, and a gradient for one input only, work."""

    def program(device: torch.device) -> list[Tensor]:
        x, w = noise((2, 3, 6, 5)).to(device), _leaf(device, 4, 3, 3, 3, seed=1)
        return _gradients(functional.conv2d(_IMAGES[case](x), w), w)

    _agree(dev, program, rtol=1e-4, atol=1e-4)


def _recurrent(kind: str, hidden: int = 4, **options: Any) -> Program:
    def program(device: torch.device) -> list[Tensor]:
        torch.manual_seed(5)
        module = getattr(torch.nn, kind)(3, hidden, **options).to(device)
        x = _leaf(device, 5, 2, 3)
        output, state = module(x)
        gradients = _gradients(output, x, *module.parameters())
        return [*gradients, *(state if isinstance(state, tuple) else (state,))]

    return program


def _packed(device: torch.device) -> list[Tensor]:
    torch.manual_seed(5)
    module = torch.nn.GRU(3, 4).to(device)
    x = _leaf(device, 5, 2, 3)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
    output, _ = torch.nn.utils.rnn.pad_packed_sequence(module(packed)[0])
    return _gradients(output, x)


def _cells(device: torch.device) -> list[Tensor]:
    torch.manual_seed(5)
    lstm, gru = torch.nn.LSTMCell(3, 4).to(device), torch.nn.GRUCell(3, 4).to(device)
    x = _leaf(device, 2, 3)
    h, c = lstm(x)
    return [*_gradients(h + c, x, *lstm.parameters()), *_gradients(gru(x), x, *gru.parameters())]


_RECURRENT: dict[str, Program] = {
    "lstm": _recurrent("LSTM"),
    "lstm_wide": _recurrent("LSTM", hidden=37),
    "lstm_layers": _recurrent("LSTM", num_layers=2),
    "lstm_bidirectional": _recurrent("LSTM", bidirectional=True),
    "lstm_projection": _recurrent("LSTM", proj_size=2),
    "lstm_batch_first": _recurrent("LSTM", batch_first=True, bias=False),
    "gru": _recurrent("GRU"),
    "gru_wide": _recurrent("GRU", hidden=37),
    "gru_layers": _recurrent("GRU", num_layers=2, bidirectional=True),
    "rnn_tanh": _recurrent("RNN"),
    "rnn_relu": _recurrent("RNN", nonlinearity="relu"),
    "packed": _packed,
    "cells": _cells,
}


@check("operator/recurrent", "OP-011", cases=tuple(_RECURRENT))
def recurrent_networks_agree_forward_and_backward(dev: Device, case: str) -> None:
    """LSTM, GRU and RNN modules, their states and all gradients agree with the CPU."""
    _agree(dev, _RECURRENT[case], rtol=1e-4, atol=1e-5)


def _attention(heads: int = 4, lengths: tuple[int, int] = (5, 6), **options: Any) -> Program:
    mask = options.pop("mask", None)

    def program(device: torch.device) -> list[Tensor]:
        q = _leaf(device, 2, 4, lengths[0], 8)
        k, v = (_leaf(device, 2, heads, lengths[1], 8, seed=seed) for seed in (1, 2))
        keywords = dict(options)
        if mask == "bool":
            keywords["attn_mask"] = (ramp((5, 6)) > -20).to(device)
        elif mask == "row":
            keywords["attn_mask"] = torch.arange(5, device=device)[:, None] != 2
        elif mask == "float":
            keywords["attn_mask"] = (ramp((2, 1, 5, 6)) / 30).to(device)
        out = functional.scaled_dot_product_attention(q, k, v, **keywords)
        return _gradients(out, q, k, v)

    return program


def _multi_head(device: torch.device) -> list[Tensor]:
    torch.manual_seed(5)
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True).to(device)
    x = _leaf(device, 2, 5, 8)
    out, weights = module(x, x, x, need_weights=True)
    return [*_gradients(out, x, *module.parameters()), weights]


def _encoder(device: torch.device) -> Tensor:
    torch.manual_seed(5)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    with torch.inference_mode():
        out: Tensor = layer.eval().to(device)(noise((2, 5, 8)).to(device))
    return out.clone()


_ATTENTION: dict[str, Program] = {
    "plain": _attention(),
    "causal": _attention(is_causal=True),
    "long": _attention(lengths=(131, 261)),
    "long_causal": _attention(lengths=(261, 131), is_causal=True),
    "longer_causal": _attention(lengths=(523, 521), is_causal=True),
    "bool_mask": _attention(mask="bool"),
    "float_mask": _attention(mask="float"),
    "empty_row": _attention(mask="row"),
    "scale": _attention(scale=0.3),
    "grouped_query": _attention(heads=2, enable_gqa=True),
    "grouped_query_causal": _attention(heads=1, enable_gqa=True, is_causal=True),
    "multi_head": _multi_head,
    "encoder_fast_path": _encoder,
}


@check("operator/attention", "OP-012", cases=tuple(_ATTENTION))
def attention_agrees_forward_and_backward(dev: Device, case: str) -> None:
    """Scaled dot product attention, masked, causal and grouped, agrees with the CPU."""
    _agree(dev, _ATTENTION[case], rtol=1e-4, atol=1e-5)


def _composed_on_cpu(device: torch.device, program: Program) -> list[Tensor]:
    """The CPU's own form of attention has no second derivative, its composition has."""
    forms = [SDPBackend.MATH] if device.type == "cpu" else list(_FORMS)
    with sdpa_kernel(forms):
        results: list[Tensor] = program(device)
    return results


def _second(heads: int = 4, **options: Any) -> Program:
    mask = options.pop("mask", None)

    def program(device: torch.device) -> list[Tensor]:
        q = _leaf(device, 2, 4, 5, 8)
        k, v = (_leaf(device, 2, heads, 6, 8, seed=seed) for seed in (1, 2))
        if mask is not None:
            options["attn_mask"] = mask.to(device)
        out = functional.scaled_dot_product_attention(q, k, v, **options)
        weight = noise(out.shape, seed=9).to(device)
        first = torch.autograd.grad(out, (q, k, v), weight, create_graph=True)
        total = torch.stack([(g * g.detach().cos()).sum() for g in first]).sum()
        return [*first, *torch.autograd.grad(total, (q, k, v))]

    return program


_ATTENTION_TWICE: dict[str, Program] = {
    "plain": _second(),
    "causal": _second(is_causal=True),
    "scale": _second(scale=0.3),
    "bool_mask": _second(mask=ramp((5, 6)) > -20),
    "float_mask": _second(mask=ramp((2, 1, 5, 6)) / 30),
    "empty_row": _second(mask=torch.arange(5)[:, None] != 2),
    "grouped_query": _second(heads=2, enable_gqa=True),
    "grouped_query_causal": _second(heads=1, enable_gqa=True, is_causal=True),
}
_NO_DERIVATIVE = r"derivative for .* is not implemented|not differentiable"


@check("operator/attention_second", "OP-012", cases=_ATTENTION_TWICE)
def second_derivatives_of_attention_agree(dev: Device, case: str) -> None:
    """Second derivatives of attention agree with the CPU's, or PyTorch says that there are none."""
    try:
        _agree(dev, lambda d: _composed_on_cpu(d, _ATTENTION_TWICE[case]), rtol=1e-3, atol=1e-4)
    except RuntimeError as error:
        if not re.search(_NO_DERIVATIVE, str(error)):
            raise
        dev.unsupported(f"this form of attention has no second derivative: {first_line(error)}")


@check("operator/attention_dtype", "OP-012", dtypes=("float16", "bfloat16", "float64"))
def attention_works_in_other_dtypes(dev: Device, dtype: torch.dtype) -> None:
    """Attention in this data type is near the float64 result on the CPU."""
    q, k, v = (noise((1, 2, 5, 8), seed=i) for i in range(3))
    expected = functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    there, low = dev.device(), dtype
    actual = functional.scaled_dot_product_attention(
        q.to(there, low), k.to(there, low), v.to(there, low)
    )
    assert actual.dtype == dtype
    slack = {torch.float16: 1e-2, torch.bfloat16: 5e-2}.get(dtype, 1e-6)
    dev.assert_close(actual.cpu().double(), expected, rtol=slack, atol=slack)


#: How the names of the operators begin that each form of attention runs as.
_FORMS = {
    SDPBackend.MATH: ("aten::_safe_softmax", "aten::_scaled_dot_product_attention_math"),
    SDPBackend.FLASH_ATTENTION: ("aten::_scaled_dot_product_flash_attention",),
    SDPBackend.EFFICIENT_ATTENTION: ("aten::_scaled_dot_product_efficient_attention",),
    SDPBackend.CUDNN_ATTENTION: ("aten::_scaled_dot_product_cudnn_attention",),
    SDPBackend.OVERRIDEABLE: ("aten::_scaled_dot_product_fused_attention_overrideable",),
}
_BY_NAME = {form.name.lower(): form for form in _FORMS}
_NO_FORM = r"No (available kernel|viable backend)"
#: The operators that a device has a kernel of if PyTorch lets it choose between the forms.
_FUSED = (
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)


class _Called(TorchDispatchMode):
    """The names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def _forced(dev: Device, form: SDPBackend, q: Tensor, k: Tensor, v: Tensor) -> Tensor | None:
    """Attention in that form; nothing if PyTorch's error says that there is no such kernel."""
    with warnings.catch_warnings(), sdpa_kernel(form), _Called() as called:
        warnings.simplefilter("ignore")  # these say why a kernel is not used
        try:
            out = functional.scaled_dot_product_attention(q, k, v)
        except RuntimeError as error:
            if re.match(_NO_FORM, str(error)):
                return None
            raise
    ran = any(name.startswith(_FORMS[form]) for name in called.names)
    if not ran and not _has_fused_forms(dev):
        dev.unsupported("without a fused form, PyTorch takes MATH whatever is forced")
    assert ran, f"{form.name} was forced, but {', '.join(called.names) or 'nothing'} ran"
    return out


def _has_fused_forms(dev: Device) -> bool:
    key = torch._C._dispatch_key_for_device(dev.type)
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return any(has(f"aten::{name}", key) for name in _FUSED)


def _sequences(dev: Device, length: int, size: int = 8) -> list[Tensor]:
    """Query, key and value."""
    return [_leaf(dev.device(), 1, 2, length, size, seed=i) for i in range(3)]


@check("operator/attention_form", "OP-040", cases=tuple(_BY_NAME))
def forced_forms_of_attention_run_or_raise(dev: Device, case: str) -> None:
    """Attention that is forced into this form runs in it, right, or raises PyTorch's error."""
    inputs = _sequences(dev, 5)
    out = _forced(dev, _BY_NAME[case], *inputs)
    if out is None:
        return
    q, k, v = (x.detach().cpu().double() for x in inputs)
    expected = functional.scaled_dot_product_attention(q, k, v)
    dev.assert_close(out.cpu().double(), expected, rtol=1e-4, atol=1e-5)


@check("operator/attention_form_refused", "OP-040")
def forced_forms_of_attention_refuse_other_shapes(dev: Device) -> None:
    """A fused form that is forced for batches that are broadcast is right or raises.

    Fused kernels take equal batches only, MATH takes all.
    """
    q, k, v = (x.detach() for x in _sequences(dev, 5))
    q = torch.cat([q, -q])
    expected = functional.scaled_dot_product_attention(
        q.cpu().double(), k.cpu().double(), v.cpu().double()
    )
    for form in _FORMS:
        out = _forced(dev, form, q, k, v)
        if out is not None:
            dev.assert_close(out.cpu().double(), expected, rtol=1e-4, atol=1e-5)


def _dropped(dev: Device, p: float, n: int = 64) -> tuple[Tensor, Tensor]:
    """The weights of attention to n equal keys after dropout, [4, n, n], and what the gradient of
    the values says of their sums over queries, [4, n]."""
    zero = torch.zeros(1, 4, n, n, device=dev.device())
    value = torch.eye(n, device=dev.device()).expand(1, 4, n, n).clone().requires_grad_()
    out = functional.scaled_dot_product_attention(zero, zero, value, dropout_p=p)
    (gradient,) = torch.autograd.grad(out.sum(), value)
    return out.detach().cpu()[0], gradient.cpu()[0, :, :, 0]


_SHARES = {"none": 0.0, "tenth": 0.1, "half": 0.5, "all": 1.0}


@check("operator/attention_dropout", "OP-041", cases=tuple(_SHARES))
def attention_drops_a_share_of_the_weights(dev: Device, case: str) -> None:
    """Attention drops the share of the weights that it is asked for, and divides the others by
    the rest of it."""
    p = _SHARES[case]
    torch.manual_seed(3)
    weights, _ = _dropped(dev, p)
    kept = 1 / (64 * (1 - p)) if p < 1 else 0.0
    gone = weights.abs() <= 1e-6
    wrong = weights[~gone & ((weights - kept).abs() > 1e-6)]
    assert not len(wrong), f"weights are {kept} or 0, but one is {wrong[0]}"
    share = gone.double().mean().item()
    # Six standard deviations.
    slack = 6 * (p * (1 - p) / weights.numel()) ** 0.5
    assert abs(share - p) <= slack, f"dropout_p={p} drops a share of {share:.4f}"


@check("operator/attention_dropout_rows", "OP-041")
def attention_drops_other_weights_each_time(dev: Device) -> None:
    """No two queries lose the same keys, nor do two calls lose the same weights."""
    torch.manual_seed(3)
    (first, _), (second, _) = _dropped(dev, 0.25), _dropped(dev, 0.25)
    assert not torch.equal(first, second), "two calls drop the same weights"
    rows = first.view(-1, 64)
    assert len(torch.unique(rows, dim=0)) == len(rows), "two queries drop the same keys"


@check("operator/attention_dropout_again", "OP-043")
def attention_drops_the_same_weights_in_its_gradient(dev: Device) -> None:
    """The gradient of the values is made of the weights that the forward pass has left."""
    torch.manual_seed(3)
    weights, sums = _dropped(dev, 0.25)
    dev.assert_close(sums, weights.sum(1), rtol=1e-4, atol=1e-5)


@check("operator/attention_dropout_gradient", "OP-043", cases=("query", "key", "value"))
def gradients_of_attention_with_dropout_agree(dev: Device, case: str) -> None:
    """The gradient of attention with dropout is that of the function it has just computed.

    The function is known by its values: the same seed gives the same weights.
    """
    names = ("query", "key", "value")
    inputs = dict(zip(names, (x.detach() for x in _sequences(dev, 6, 4)), strict=True))
    direction = noise((1, 2, 6, 4), seed=7).to(dev.device())
    weight = noise((1, 2, 6, 4), seed=8).to(dev.device())

    def value(x: Tensor) -> Tensor:
        torch.manual_seed(9)
        given: dict[str, Any] = {**inputs, case: x}
        return (functional.scaled_dot_product_attention(**given, dropout_p=0.5) * weight).sum()

    if not torch.equal(value(inputs[case]).cpu(), value(inputs[case]).cpu()):
        dev.unsupported("the same seed gives other numbers, so that the function is not known")
    x = inputs[case].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(x), x)
    step = 0.01
    ahead, back = (value(inputs[case] + way * step * direction) for way in (1, -1))
    slope = (ahead - back) / (2 * step)
    dev.assert_close((gradient * direction).sum().cpu(), slope.cpu(), rtol=1e-2, atol=1e-3)


@check("operator/attention_dropout_second", "OP-043", cases=("query", "key", "value"))
def second_derivatives_of_attention_with_dropout_agree(dev: Device, case: str) -> None:
    """The derivative of the gradient of attention with dropout is that of the same weights.

    The gradient is known by its values: the same seed gives the same weights.
    """
    names = ("query", "key", "value")
    inputs = dict(zip(names, (x.detach() for x in _sequences(dev, 6, 4)), strict=True))
    direction, along = (noise((1, 2, 6, 4), seed=s).to(dev.device()) for s in (7, 8))

    def slope(x: Tensor) -> Tensor:
        torch.manual_seed(9)
        x = x.detach().requires_grad_() if not x.requires_grad else x
        given: dict[str, Any] = {**inputs, case: x}
        out = functional.scaled_dot_product_attention(**given, dropout_p=0.5)
        (gradient,) = torch.autograd.grad(out.sin().sum(), x, create_graph=True)
        return (gradient * direction).sum()

    x = inputs[case].clone().requires_grad_()
    try:
        (second,) = torch.autograd.grad(slope(x), x)
    except RuntimeError as error:
        if not re.search(_NO_DERIVATIVE, str(error)):
            raise
        dev.unsupported(f"this form of attention has no second derivative: {first_line(error)}")
    if not torch.equal(slope(inputs[case]).detach().cpu(), slope(inputs[case]).detach().cpu()):
        dev.unsupported("the same seed gives other numbers, so that the gradient is not known")
    step = 0.01
    ahead, back = (slope(inputs[case] + way * step * along).detach() for way in (1, -1))
    expected = (ahead - back) / (2 * step)
    dev.assert_close((second * along).sum().cpu(), expected.cpu(), rtol=2e-2, atol=5e-3)


@check("operator/attention_memory", "OP-042")
def fused_attention_does_not_hold_the_scores(dev: Device) -> None:
    """A fused form of attention, forward and backward, takes less memory than its scores."""
    length = 2048
    inputs = _sequences(dev, length)
    scores = 2 * length * length * 4
    for form in _FORMS:
        if form is SDPBackend.MATH:
            continue
        torch.accelerator.reset_peak_memory_stats()
        before = torch.accelerator.memory_allocated()
        out = _forced(dev, form, *inputs)
        if out is None:
            continue
        torch.autograd.grad(out.sum(), inputs)
        taken = torch.accelerator.max_memory_allocated() - before
        assert taken < scores // 4, f"{form.name} took {taken} bytes; its scores have {scores}"


def _bag(device: torch.device, mode: str, **options: Any) -> list[Tensor]:
    weight = _leaf(device, 6, 4)
    keywords = {k: v.to(device) for k, v in options.items()}
    out = functional.embedding_bag(
        _i(device, 1, 5, 5, 0, 2), weight, _i(device, 0, 2, 2), mode=mode, **keywords
    )
    return _gradients(out, weight)


def _module(make: Callable[[], torch.nn.Module], *shape: int, training: bool = True) -> Program:
    """Forward, gradients and buffers of a module."""

    def program(device: torch.device) -> list[Tensor]:
        torch.manual_seed(5)
        module = make().train(training).to(device)
        x = _leaf(device, *shape)
        out = module(x)
        return [*_gradients(out, x, *module.parameters()), *module.buffers()]

    return program


def _normalised(normalise: Callable[..., Tensor], *shape: int) -> Program:
    """With weight and bias, with the weight alone, with neither; and all gradients."""

    def program(device: torch.device) -> list[Tensor]:
        results = []
        for used in ((True, True), (True, False), (False, False)):
            x, *given = _leaf(device, *shape), *(_leaf(device, shape[1], seed=i) for i in (1, 2))
            weight, bias = (t if use else None for t, use in zip(given, used, strict=True))
            leaves = [x, *(t for t in (weight, bias) if t is not None)]
            results += _gradients(normalise(x, weight, bias), *leaves)
        return results

    return program


_LAYERS: dict[str, Program] = {
    "group_norm_pixel": _normalised(lambda x, w, b: functional.group_norm(x, 3, w, b), 5, 12),
    "group_norm_image": _normalised(lambda x, w, b: functional.group_norm(x, 3, w, b), 2, 6, 3, 5),
    "group_norm_channels": _normalised(lambda x, w, b: functional.group_norm(x, 6, w, b), 5, 6),
    "layer_norm_parts": _normalised(lambda x, w, b: functional.layer_norm(x, (6,), w, b), 5, 6),
    "batch_norm_pixel": _normalised(
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True), 7, 6
    ),
    "batch_norm_image": _normalised(
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True), 3, 4, 3, 5
    ),
    "instance_norm_image": _normalised(
        lambda x, w, b: functional.instance_norm(x, None, None, w, b), 3, 4, 3, 5
    ),
    "linear": _module(lambda: torch.nn.Linear(4, 3), 5, 4),
    "bilinear": lambda d: functional.bilinear(
        noise((3, 2)).to(d), noise((3, 4)).to(d), noise((5, 2, 4)).to(d)
    ),
    "embedding": lambda d: _embedded(d),
    "embedding_bag_sum": lambda d: _bag(d, "sum"),
    "embedding_bag_mean": lambda d: _bag(d, "mean"),
    "embedding_bag_max": lambda d: _bag(d, "max"),
    "embedding_bag_weighted": lambda d: _bag(d, "sum", per_sample_weights=ramp((5,))),
    "batch_norm": _module(lambda: torch.nn.BatchNorm2d(3), 4, 3, 5, 5),
    "batch_norm_eval": _module(lambda: torch.nn.BatchNorm2d(3), 4, 3, 5, 5, training=False),
    "layer_norm": _module(lambda: torch.nn.LayerNorm(6), 4, 6),
    "group_norm": _module(lambda: torch.nn.GroupNorm(2, 4), 2, 4, 5),
    "instance_norm": _module(lambda: torch.nn.InstanceNorm1d(3, affine=True), 2, 3, 6),
    "rms_norm": _module(lambda: torch.nn.RMSNorm(6), 4, 6),
    "max_pool2d": _module(lambda: torch.nn.MaxPool2d(2), 2, 3, 6, 6),
    "avg_pool2d": _module(lambda: torch.nn.AvgPool2d(2), 2, 3, 6, 6),
    "adaptive_avg_pool2d": _module(lambda: torch.nn.AdaptiveAvgPool2d(2), 2, 3, 5, 5),
    "upsample_nearest": _module(lambda: torch.nn.Upsample(scale_factor=2), 1, 2, 3, 3),
    "upsample_bilinear": _module(
        lambda: torch.nn.Upsample(scale_factor=2, mode="bilinear"), 1, 2, 3, 3
    ),
    "reflection_pad": _module(lambda: torch.nn.ReflectionPad2d(1), 1, 2, 4, 4),
    "pixel_shuffle": _module(lambda: torch.nn.PixelShuffle(2), 1, 4, 3, 3),
    "prelu": _module(lambda: torch.nn.PReLU(), 3, 4),
    "gelu": _module(lambda: torch.nn.GELU(), 3, 4),
    "silu": _module(lambda: torch.nn.SiLU(), 3, 4),
    "softmax": _module(lambda: torch.nn.Softmax(1), 3, 4),
    "log_softmax": _module(lambda: torch.nn.LogSoftmax(1), 3, 4),
    "grid_sample": lambda d: _gradients(
        functional.grid_sample(
            (image := _leaf(d, 1, 2, 4, 4)), noise((1, 3, 3, 2), seed=4).to(d), align_corners=False
        ),
        image,
    ),
    "unfold": _module(lambda: torch.nn.Unfold(2), 1, 2, 4, 4),
    "fold": _module(lambda: torch.nn.Fold((4, 4), 2), 1, 8, 9),
}


def _embedded(device: torch.device) -> list[Tensor]:
    weight = _leaf(device, 6, 4)
    out = functional.embedding(_i(device, 1, 5, 1, 0).view(2, 2), weight, padding_idx=0)
    return _gradients(out, weight)


@check("operator/layer", "OP-013", cases=tuple(_LAYERS))
def layers_agree_forward_and_backward(dev: Device, case: str) -> None:
    """A layer's output, gradients and buffers agree with the CPU."""
    _agree(dev, _LAYERS[case], rtol=1e-4, atol=1e-4)


#: Of a matrix of 4 x 6, a weight and a bias.
_MIXED: dict[str, Callable[..., Tensor]] = {
    "layer_norm": lambda x, w, b: functional.layer_norm(x, (6,), w, b),
    "group_norm": lambda x, w, b: functional.group_norm(x, 3, w, b),
    "group_norm_image": lambda x, w, b: functional.group_norm(x.view(2, 6, 2), 3, w, b),
    "batch_norm": lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
}


@check("operator/norm_mixed", "OP-013", cases=_MIXED, dtypes=("float16", "bfloat16"))
def norms_of_16_bits_take_wider_parameters(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A norm of 16-bit numbers with parameters of float32 is right, or raises for their types."""
    given = noise((4, 6)).to(dtype), noise((6,), seed=1), noise((6,), seed=2)
    wide = [x.double().requires_grad_() for x in given]
    there = [x.to(dev.device()).requires_grad_() for x in given]
    try:
        found = _gradients(_MIXED[case](*there), *there)
    except RuntimeError as error:
        if not re.search(r"scalar type|mixed dtype|same d?type", str(error)):
            raise
        dev.unsupported(f"the parameters must be of the input's type: {first_line(error)}")
    expected = _gradients(_MIXED[case](*wide), *wide)
    for got, wanted, like in zip(found, expected, (given[0], *given), strict=True):
        assert got.dtype == like.dtype
        dev.assert_close(got.detach().cpu().double(), wanted.detach(), rtol=2e-2, atol=5e-2)


def _loss(function: Callable[..., Tensor], target: Callable[[], Tensor]) -> Program:
    def program(device: torch.device) -> list[Tensor]:
        x = _leaf(device, 6, 5)
        outputs = []
        for reduction in ("mean", "sum", "none"):
            outputs += _gradients(function(x, target().to(device), reduction=reduction), x)
        return outputs

    return program


_LOSSES: dict[str, Program] = {
    "cross_entropy": _loss(functional.cross_entropy, lambda: torch.tensor([0, 4, 2, 1, 3, 2])),
    "cross_entropy_soft": _loss(functional.cross_entropy, lambda: noise((6, 5), seed=3).softmax(1)),
    "cross_entropy_ignored": _loss(
        functional.cross_entropy, lambda: torch.tensor([0, -100, 2, 1, -100, 2])
    ),
    "nll": _loss(
        lambda x, t, reduction: functional.nll_loss(x.log_softmax(1), t, reduction=reduction),
        lambda: torch.tensor([0, 4, 2, 1, 3, 2]),
    ),
    "mse": _loss(functional.mse_loss, lambda: noise((6, 5), seed=3)),
    "l1": _loss(functional.l1_loss, lambda: noise((6, 5), seed=3)),
    "smooth_l1": _loss(functional.smooth_l1_loss, lambda: noise((6, 5), seed=3)),
    "bce_with_logits": _loss(
        functional.binary_cross_entropy_with_logits, lambda: noise((6, 5), seed=3).sigmoid()
    ),
    "kl_div": _loss(functional.kl_div, lambda: noise((6, 5), seed=3).softmax(1)),
}


@check("operator/loss", "OP-013", cases=tuple(_LOSSES))
def losses_agree_for_every_reduction(dev: Device, case: str) -> None:
    """A loss and its gradient agree with the CPU for mean, sum and none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kl_div advises another reduction
        _agree(dev, _LOSSES[case], rtol=1e-4, atol=1e-5)


# ---- results of several kinds ----------------------------------------------------------------


def _named(device: torch.device, *names: str) -> dict[str, Tensor]:
    """An empty tensor for each name of an output."""
    return {name: torch.empty(0, device=device) for name in names}


def _with_statistics(device: torch.device, normalise: Callable[..., Any]) -> list[Tensor]:
    """What a normalisation returns and leaves in its running mean and variance, after two calls."""
    mean, variance = torch.zeros(3, device=device), torch.ones(3, device=device)
    results = [normalise(noise((4, 3, 5), seed=i).to(device), mean, variance) for i in (0, 1)]
    return [*_tensors(results), mean, variance]


def _resized_with_gradients(device: torch.device, width: int, to: int) -> list[Tensor]:
    """Images that become much wider or narrower, in every mode."""
    results = []
    modes = {2: "nearest nearest-exact bilinear bicubic area", 1: "linear", 3: "trilinear"}
    for dims, names in modes.items():
        for mode in names.split():
            x = _leaf(device, 1, 2, *(3, 4, width)[3 - dims :])
            out = functional.interpolate(x, (5, 3, to)[3 - dims :], mode=mode)
            results += _gradients(out, x)
    return results


_MULTIPLE: dict[str, Program] = {
    "max": lambda d: list(_x(d).max(1)),
    "min": lambda d: list(_x(d).min(0, keepdim=True)),
    "median": lambda d: list(_x(d).median(1)),
    "kthvalue": lambda d: list(_x(d).kthvalue(2, 1)),
    "cummax": lambda d: list(_x(d).cummax(1)),
    "sort": lambda d: list(_x(d).sort(1, descending=True)),
    "sort_stable": lambda d: list((_x(d) > 0).int().sort(dim=1, stable=True)),
    "argsort": lambda d: _x(d).argsort(0),
    "topk": lambda d: list(_x(d).topk(3, 1)),
    "topk_smallest": lambda d: list(_x(d).topk(2, 0, largest=False)),
    "unique": lambda d: list(
        torch.unique(_i(d, 3, 1, 3, 2, 1), return_inverse=True, return_counts=True)
    ),
    "unique_consecutive": lambda d: list(
        torch.unique_consecutive(_i(d, 1, 1, 2, 2, 1), return_counts=True)
    ),
    "unique_dim": lambda d: torch.unique(_i(d, 1, 2, 1, 2, 3, 4).view(3, 2), dim=0),
    "var_mean": lambda d: list(torch.var_mean(_x(d), 1)),
    "std_mean": lambda d: list(torch.std_mean(_x(d), 0)),
    "nll_total_weight": lambda d: [
        weight
        for reduction in (0, 1, 2)
        for weight in torch.ops.aten.nll_loss_forward(
            _x(d), _i(d, 1, 5, 0, 1), _x(d)[0].abs(), reduction, 1
        )
    ],
    "nll_total_weight_2d": lambda d: [
        weight
        for reduction in (0, 1, 2)
        for weight in torch.ops.aten.nll_loss2d_forward(
            _x(d).view(1, 4, 2, 3), _i(d, 1, 3, 0, 1, 2, 3).view(1, 2, 3), None, reduction, 1
        )
    ],
    "batch_norm_update_stats": lambda d: _with_statistics(
        d, lambda x, m, v: torch.batch_norm_update_stats(x, m, v, 0.25)
    ),
    "batch_norm_out": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten.native_batch_norm.out(
            x, None, None, m, v, True, 0.25, 1e-5, **_named(d, "out", "save_mean", "save_invstd")
        ),
    ),
    "batch_norm_out_evaluated": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten.native_batch_norm.out(
            x, None, None, m, v, False, 0.25, 1e-5, **_named(d, "out", "save_mean", "save_invstd")
        )[0],
    ),
    "batch_norm_legit_out": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten._native_batch_norm_legit.out(
            x, None, None, m, v, True, 0.25, 1e-5, **_named(d, "out", "save_mean", "save_invstd")
        ),
    ),
    "batch_norm_with_update": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten._batch_norm_with_update(x, None, None, m, v, 0.25, 1e-5)[:3],
    ),
    "instance_norm_statistics": lambda d: _with_statistics(
        d, lambda x, m, v: functional.instance_norm(x, m, v, momentum=0.25)
    ),
    "unfold_of_one": lambda d: functional.unfold(noise((2, 5, 6)).to(d), (2, 3)),
    "fold_of_one": lambda d: functional.fold(noise((8, 15)).to(d), (4, 6), 2),
    "fill_of_expanded": lambda d: [
        ramp((3, 1)).to(d).expand(3, 4).fill_(2),
        ramp((1, 4)).to(d).expand(3, 4).zero_(),
    ],
    "resized_far_down": lambda d: _resized_with_gradients(d, 120, 9),
    "resized_far_up": lambda d: _resized_with_gradients(d, 5, 77),
    "aminmax": lambda d: list(_x(d).aminmax(dim=1)),
    "frexp": lambda d: list(torch.frexp(_x(d))),
    "histogram": lambda d: torch.histc(_x(d), 5, -50, 50),
    "bincount": lambda d: torch.bincount(_i(d, 0, 3, 3, 1), weights=ramp((4,)).to(d)),
    "searchsorted": lambda d: torch.searchsorted(_i(d, 1, 3, 5), _i(d, 0, 3, 9)),
    "bucketize": lambda d: torch.bucketize(_i(d, 0, 3, 9), _i(d, 1, 3, 5), right=True),
    "logsumexp": lambda d: torch.logsumexp(_x(d), 1),
    "norms": lambda d: [torch.linalg.vector_norm(_x(d), p) for p in (0, 1, 2, float("inf"))],
    "norms_of_any_order": lambda d: [
        torch.linalg.vector_norm(x, p, dim)
        for x in (_x(d) + 40, (_x(d) + 40).t())
        for p in (3, 0.5, -1, -2.5, float("-inf"))
        for dim in (None, 0, 1)
    ],
    "cumulative": lambda d: [_x(d).cumsum(0), (_x(d) / 30).cumprod(1), _x(d).logcumsumexp(1)],
    "quantile": lambda d: torch.quantile(_x(d), torch.tensor([0.25, 0.5], device=d), 1),
    "argmax": lambda d: [_x(d).argmax(), _x(d).argmin(1)],
    "isin": lambda d: torch.isin(_i(d, 1, 2, 3), _i(d, 2, 3)),
    "tensordot": lambda d: torch.tensordot(_x3(d), _x3(d), dims=([1, 2], [1, 2])),
    "roll_flip": lambda d: [_x(d).roll(2, 1), _x(d).flip(0), _x(d).rot90()],
    "repeat_interleave": lambda d: _x(d).repeat_interleave(_i(d, 1, 0, 2, 1), 0),
    "tril_triu": lambda d: [_x(d).tril(-1), _x(d).triu(1)],
    "bitwise": lambda d: [_i(d, 12, 10) & _i(d, 10, 3), _i(d, 12) << 2, ~_i(d, 5)],
    "division": lambda d: [_i(d, 7, -7) // 2, _i(d, 7, -7) % 3, torch.fmod(_i(d, 7, -7), 3)],
    "comparison": lambda d: [_x(d) >= 0, torch.isclose(_x(d), _x(d)), torch.isnan(_x(d))],
    "allclose_any": lambda d: [(_x(d) > 0).any(1), (_x(d) > -100).all()],
    "lerp_clamp": lambda d: [_x(d).clamp(min=_x(d)[0]), torch.lerp(_x(d), -_x(d), 0.3)],
    "cdist": lambda d: torch.cdist(_x(d) / 50, _x(d)[:2] / 50),
    "cross": lambda d: torch.linalg.cross(_x3(d).transpose(1, 2), _x3(d).transpose(1, 2).flip(0)),
}


@check("operator/result", "OP-014", cases=tuple(_MULTIPLE))
def operators_agree(dev: Device, case: str) -> None:
    """Reductions, sorting, searching and operators with several results agree with the CPU."""
    with _filled_memory():
        _agree(dev, _MULTIPLE[case], rtol=1e-5, atol=1e-5)


# ---- a number before a tensor ----

_WHOLE = (0, 1, 2, 3, 7, -5)
_REAL = (0.5, -1.25, 2.0, 3.75, -0.125, 7.0)
_DEGREES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
_POLYNOMIALS = (
    *(f"{kind}chebyshev_polynomial_{letter}" for kind in ("", "shifted_") for letter in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he"),
    *("laguerre_polynomial_l", "legendre_polynomial_p"),
)
_NUMBER_FIRST: dict[str, tuple[Callable[..., Tensor], float, tuple[float, ...]]] = {
    "add": (operator.add, 7, _REAL),
    "sub": (operator.sub, 7, _REAL),
    "mul": (operator.mul, 7, _REAL),
    "truediv": (operator.truediv, 7, _REAL),
    "floordiv": (operator.floordiv, 7, _REAL),
    "mod": (operator.mod, 7, _REAL),
    "mod_whole": (operator.mod, -7, (3, 2, 5, -3, -2, 7)),
    "pow": (operator.pow, 2.5, _REAL),
    "pow_whole": (operator.pow, 3, (0, 1, 2, 3, 4, 5)),
    "and": (operator.and_, 12, _WHOLE),
    "or": (operator.or_, 12, _WHOLE),
    "xor": (operator.xor, 12, _WHOLE),
    "lshift": (operator.lshift, 3, (0, 1, 2, 3, 4, 5)),
    "rshift": (operator.rshift, 1000, (0, 1, 2, 3, 4, 5)),
    "compare": (lambda number, x: (number < x) == (number >= x), 2, _REAL),
    "float_power": (torch.float_power, 2, _WHOLE),
    "isin": (lambda number, x: torch.isin(number, x), 3, _WHOLE),
    "bucketize": (lambda number, x: torch.bucketize(number, x.sort().values), 2.5, _REAL),
    "xlogy": (torch.xlogy, 2.5, (0.0, 0.5, 1.0, 3.0, math.inf, math.nan)),
    "xlogy_zero": (torch.xlogy, 0.0, (0.0, 0.5, 1.0, 3.0, math.inf, math.nan)),
    "xlog1py": (torch.special.xlog1py, 2.5, (0.0, 0.5, -0.5, 3.0, math.inf, math.nan)),
    "zeta": (torch.special.zeta, 2.5, (0.5, 1.0, 2.0, 3.75, 10.0, 100.0)),
    **{name: (getattr(torch.special, name), 0.7, _DEGREES) for name in _POLYNOMIALS},
}
#: Functions of torch among them with a form that writes to a tensor.
_NUMBER_FIRST_OUT = ("pow", "float_power", "xlogy")


@check("operator/number_first", "OP-014", cases=tuple(_NUMBER_FIRST))
def operators_take_a_number_first(dev: Device, case: str) -> None:
    """Operators of a number and a tensor, in this order, agree with the CPU."""
    function, number, values = _NUMBER_FIRST[case]
    with _filled_memory():
        _agree(dev, lambda d: function(number, torch.tensor(values, device=d)))


@check("operator/number_first_out", "OP-014", cases=_NUMBER_FIRST_OUT)
def operators_take_a_number_first_and_write(dev: Device, case: str) -> None:
    """The same into a tensor of the program."""
    function: Callable[..., Tensor] = getattr(torch, case)
    _, number, values = _NUMBER_FIRST[case]

    def program(d: torch.device) -> Tensor:
        x = torch.tensor(values, device=d)
        out = torch.full_like(function(number, x), 77)
        assert function(number, x, out=out) is out
        return out

    _agree(dev, program)


def _matrix(device: torch.device, *, complex_: bool = False) -> Tensor:
    a = noise((3, 4, 4)) + 4 * torch.eye(4)
    return (torch.complex(a, noise((3, 4, 4), seed=1)) if complex_ else a).to(device)


def _symmetric(device: torch.device) -> Tensor:
    a = _matrix(device)
    return a @ a.mT + torch.eye(4, device=device)


def _rebuilt_svd(a: Tensor) -> list[Tensor]:
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return [s, u @ torch.diag_embed(s).to(a.dtype) @ vh]


def _rebuilt_qr(a: Tensor) -> list[Tensor]:
    q, r = torch.linalg.qr(a)
    return [q @ r, q.mT @ q, r.tril(-1)]


def _rebuilt_eigh(a: Tensor) -> list[Tensor]:
    values, vectors = torch.linalg.eigh(a)
    return [values, vectors @ torch.diag_embed(values) @ vectors.mT]


_LINALG: dict[str, Program] = {
    "solve": lambda d: torch.linalg.solve(_matrix(d), _matrix(d)[..., :2]),
    "solve_complex": lambda d: torch.linalg.solve(
        _matrix(d, complex_=True), _matrix(d, complex_=True)[..., :1]
    ),
    "inv": lambda d: torch.linalg.inv(_matrix(d)),
    "det": lambda d: torch.linalg.det(_matrix(d)),
    "slogdet": lambda d: list(torch.linalg.slogdet(_matrix(d))),
    "cholesky": lambda d: torch.linalg.cholesky(_symmetric(d)),
    "qr": lambda d: _rebuilt_qr(_matrix(d)),
    "svd": lambda d: _rebuilt_svd(_matrix(d)),
    "svd_wide": lambda d: _rebuilt_svd(_matrix(d)[:, :2]),
    "eigh": lambda d: _rebuilt_eigh(_symmetric(d)),
    "lstsq": lambda d: torch.linalg.lstsq(_matrix(d), _matrix(d)[..., :2]).solution,
    "pinv": lambda d: torch.linalg.pinv(_matrix(d)[:, :, :3]),
    "matrix_exp": lambda d: torch.linalg.matrix_exp(_matrix(d) / 8),
    "matrix_power": lambda d: torch.linalg.matrix_power(_matrix(d), 3),
    "triangular": lambda d: torch.linalg.solve_triangular(
        _matrix(d).tril(), _matrix(d)[..., :2], upper=False
    ),
    "lu_solve": lambda d: torch.linalg.lu_solve(*torch.linalg.lu_factor(_matrix(d)), _matrix(d)),
    "transposed_inputs": lambda d: torch.linalg.solve(_matrix(d).mT, _matrix(d).mT),
}


@check("operator/linalg", "OP-015", cases=tuple(_LINALG))
def linear_algebra_agrees(dev: Device, case: str) -> None:
    """Factorisations (rebuilt from their factors) and solvers agree with the CPU."""
    _agree(dev, _LINALG[case], rtol=1e-4, atol=1e-4)


def _complex(device: torch.device) -> Tensor:
    return ramp((4, 6), torch.complex64).to(device, copy=True)


_COMPLEX: dict[str, Program] = {
    "fft": lambda d: torch.fft.fft(_x(d)),
    "ifft": lambda d: torch.fft.ifft(_complex(d)),
    "rfft": lambda d: torch.fft.rfft(_x(d)),
    "irfft": lambda d: torch.fft.irfft(_complex(d)),
    "hfft": lambda d: torch.fft.hfft(_complex(d)),
    "fft2": lambda d: torch.fft.fft2(_complex(d)),
    "fft_conj": lambda d: torch.fft.fft(_complex(d).conj()),
    "fft_neg": lambda d: torch.fft.rfft(_complex(d).conj().imag),
    "fft_transposed": lambda d: torch.fft.fft(_complex(d).t()),
    "fft_n": lambda d: torch.fft.fft(_complex(d), n=5, norm="ortho"),
    "fftshift": lambda d: torch.fft.fftshift(_x(d)),
    "stft": lambda d: torch.stft(
        noise((64,)).to(d), 16, window=torch.hann_window(16, device=d), return_complex=True
    ),
    "conj_add": lambda d: _complex(d).conj() + _complex(d),
    "conj_mul_in_place": lambda d: _complex(d).mul_(_complex(d).conj()),
    "conj_matmul": lambda d: _complex(d) @ _complex(d).mH,
    "conj_in_place": lambda d: _conjugated(d),
    "vdot": lambda d: torch.vdot(_complex(d).flatten(), _complex(d).flatten()),
    "conj_dot": lambda d: [
        torch.vdot(_complex(d)[0].conj(), _complex(d)[1]),
        torch.dot(_complex(d)[0], _complex(d)[1].conj()),
    ],
    "conj_addmm": lambda d: torch.addmm(_complex(d)[:, :4].conj(), _complex(d), _complex(d).mH),
    "abs_angle": lambda d: [_complex(d).abs(), _complex(d).angle()],
    "real_imag": lambda d: [_complex(d).real, _complex(d).imag, _complex(d).conj().imag + 1],
    "neg_view_add": lambda d: torch._neg_view(_x(d)) + 1,
    "exp": lambda d: torch.exp(_complex(d) / 40),
    "sum": lambda d: _complex(d).conj().sum(0),
}


def _conjugated(device: torch.device) -> list[Tensor]:
    x = _complex(device)
    view = x.conj()
    view.add_(1 + 2j)
    return [x, view.resolve_conj()]


@check("operator/complex", "OP-016", needs=("complex64",), cases=tuple(_COMPLEX))
def complex_operators_agree(dev: Device, case: str) -> None:
    """Fourier transforms and arithmetic on complex, conjugate and negative views agree."""
    _agree(dev, _COMPLEX[case], rtol=1e-4, atol=1e-3)


# ---- autograd --------------------------------------------------------------------------------


def _double_backward(device: torch.device) -> list[Tensor]:
    x = _leaf(device, 4, 3)
    (g,) = torch.autograd.grad((x.tanh() * x.sin()).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.square().sum(), x)
    return [g, gg]


def _double_backward_linear(device: torch.device) -> list[Tensor]:
    x, w = _leaf(device, 4, 3), _leaf(device, 5, 3, seed=1)
    (g,) = torch.autograd.grad(functional.linear(x, w).tanh().sum(), x, create_graph=True)
    return list(torch.autograd.grad(g.square().sum(), (x, w)))


def _double_backward_conv(device: torch.device) -> list[Tensor]:
    x, w = _leaf(device, 1, 2, 5, 5), _leaf(device, 3, 2, 3, 3, seed=1)
    (g,) = torch.autograd.grad(functional.conv2d(x, w).square().sum(), x, create_graph=True)
    return list(torch.autograd.grad(g.square().sum(), (x, w)))


def _hooks(device: torch.device) -> list[Tensor]:
    x, seen = _leaf(device, 3), []
    y = x * 2

    def tenfold(gradient: Tensor) -> Tensor:
        seen.append(gradient)
        return gradient * 10

    y.register_hook(tenfold)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    y.sum().backward()
    assert x.grad is not None
    return [x.grad, *seen]


def _accumulated(device: torch.device) -> Tensor:
    x = _leaf(device, 3)
    for i in range(3):
        (x * i).sum().backward()
    assert x.grad is not None
    return x.grad


def _retained(device: torch.device) -> list[Tensor]:
    x = _leaf(device, 3)
    y = x.exp()
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    return [x.grad, y.grad]


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * 3 * x**2


def _custom(device: torch.device) -> list[Tensor]:
    x = _leaf(device, 3)
    return _gradients(_Cube.apply(x), x)


def _checkpointed(device: torch.device) -> list[Tensor]:
    from torch.utils.checkpoint import checkpoint

    x, w = _leaf(device, 4, 3), _leaf(device, 3, 3, seed=1)
    out: Any = checkpoint(lambda a, b: (a @ b).tanh(), x, w, use_reentrant=False)
    return _gradients(out, x, w)


def _saved_on_cpu(device: torch.device) -> list[Tensor]:
    x = _leaf(device, 4, 3)
    with torch.autograd.graph.save_on_cpu():
        out = (x.exp() * x).tanh()
    return _gradients(out, x)


def _in_place_graph(device: torch.device) -> list[Tensor]:
    x = _leaf(device, 4, 3)
    y = x * 2
    y[1:].mul_(3)
    y.relu_()
    return _gradients(y, x)


def _broadcast_graph(device: torch.device) -> list[Tensor]:
    x, y = _leaf(device, 4, 1), _leaf(device, 3, seed=1)
    return _gradients(x * y + y, x, y)


def _index_graph(device: torch.device) -> list[Tensor]:
    x = _leaf(device, 4, 6)
    out = x[_i(device, 1, 1, 3)][:, _i(device, 0, 5)]
    return _gradients(out, x)


def _jacobian(device: torch.device) -> Any:
    x = noise((3,)).to(device)
    return [
        torch.autograd.functional.jacobian(lambda t: t.sin() * t.sum(), x),
        torch.autograd.functional.hessian(lambda t: (t**3).sum(), x),
    ]


def _forward_mode(device: torch.device) -> list[Tensor]:
    import torch.autograd.forward_ad as forward_ad

    with forward_ad.dual_level():
        x = forward_ad.make_dual(noise((3,)).to(device), torch.ones(3, device=device))
        out = forward_ad.unpack_dual(x.sin() * x)
        return [out.primal, out.tangent]


def _by_frequency(device: torch.device) -> list[Tensor]:
    """Gradients of a table are divided by how often each row is used."""
    weight = _leaf(device, 5, 3)
    rows = _i(device, 1, 3, 1, 0, 1, 0, 4, 1).view(2, 4)
    results = []
    for padding in (None, 1):
        out = functional.embedding(rows, weight, padding, scale_grad_by_freq=True)
        results += _gradients(out, weight)
    return results


_AUTOGRAD: dict[str, Program] = {
    "double_backward": _double_backward,
    "double_backward_linear": _double_backward_linear,
    "double_backward_conv": _double_backward_conv,
    "hooks": _hooks,
    "accumulate": _accumulated,
    "retain": _retained,
    "custom_function": _custom,
    "checkpoint": _checkpointed,
    "save_on_cpu": _saved_on_cpu,
    "in_place": _in_place_graph,
    "broadcast": _broadcast_graph,
    "index": _index_graph,
    "embedding_by_frequency": _by_frequency,
    "jacobian": _jacobian,
    "forward_mode": _forward_mode,
}


@check("operator/autograd", "OP-017", cases=tuple(_AUTOGRAD))
def autograd_agrees(dev: Device, case: str) -> None:
    """Higher derivatives, hooks, accumulation, checkpointing and in-place graphs agree."""
    _agree(dev, _AUTOGRAD[case], rtol=1e-4, atol=1e-5)


def _late_product(dev: Device, x: Tensor) -> Tensor:
    """Three times `x`, computed late on the current stream."""
    factor = torch.zeros(4096, device=dev.device())
    dev.delay(40)
    factor.fill_(3)
    return x * factor


@check("operator/backward_stream:leaf", "OP-032", needs=("streams", "delay"))
def gradients_of_a_side_stream_are_waited_for(dev: Device) -> None:
    """After backward() of work on a side stream, its gradients are right on the caller's stream."""
    x = torch.ones(4096, device=dev.device(), requires_grad=True)
    side = dev.stream()
    dev.synchronize()
    with side:
        loss = _late_product(dev, x).sum()
    loss.backward()
    assert x.grad is not None
    dev.assert_equal(x.grad + 1, torch.full((4096,), 4.0))
    side.synchronize()


@check("operator/backward_stream:inner", "OP-032", needs=("streams", "delay"))
def backward_follows_the_streams_of_forward(dev: Device) -> None:
    """Gradients are right on the caller's stream if part of forward ran on a side stream."""
    x = torch.ones(4096, device=dev.device(), requires_grad=True)
    side = dev.stream()
    dev.synchronize()
    with side:
        y = _late_product(dev, x)
    dev.current_stream().wait_stream(side)
    (y * 2).sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad + 1, torch.full((4096,), 7.0))
    side.synchronize()


@check("operator/gradcheck", "OP-017", needs=("float64",), cases=("matmul", "softmax", "norm"))
def numerical_gradients_agree(dev: Device, case: str) -> None:
    """torch.autograd.gradcheck passes for float64 functions on the device."""
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "matmul": lambda x: x @ x.t(),
        "softmax": lambda x: x.softmax(1),
        "norm": lambda x: functional.layer_norm(x, (3,)),
    }
    x = noise((2, 3), torch.float64).to(dev.device()).requires_grad_()
    assert torch.autograd.gradcheck(functions[case], (x,))


@check("operator/anomaly", "OP-038")
def anomaly_mode_finds_the_nan(dev: Device) -> None:
    """detect_anomaly raises for a NaN gradient made on the device."""
    x = torch.zeros(2, device=dev.device(), requires_grad=True)

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly():
                (x.sqrt() * 0).sum().backward()

    error = raised(run)
    assert isinstance(error, RuntimeError)
    assert "nan" in str(error).lower()


@check("operator/grad_mode:no_grad", "OP-017")
def no_grad_records_nothing(dev: Device) -> None:
    """Under no_grad a result does not require grad."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad


@check("operator/grad_mode:inference", "OP-017")
def inference_mode_makes_inference_tensors(dev: Device) -> None:
    """Under inference_mode a result is an inference tensor and does not require grad."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference()
    assert not y.requires_grad


@check("operator/grad_mode:detach", "OP-017")
def detach_cuts_the_graph(dev: Device) -> None:
    """A detached result does not require grad; the result itself does."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    assert not (x * 2).detach().requires_grad
    assert (x * 2).requires_grad


# ---- training --------------------------------------------------------------------------------


def _train(
    device: torch.device, make: Callable[[list[Any]], torch.optim.Optimizer]
) -> list[Tensor]:
    torch.manual_seed(5)
    module = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)
    ).to(device)
    optimizer = make(list(module.parameters()))
    x, target = noise((10, 6)).to(device), torch.arange(10, device=device) % 3
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(p.detach() for p in module.parameters())]


_OPTIMIZERS: dict[str, Callable[[list[Any]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "sgd_foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
}


@check("operator/train", "OP-018", cases=tuple(_OPTIMIZERS))
def a_training_loop_equals_the_cpus(dev: Device, case: str) -> None:
    """Losses and parameters of three steps with this optimizer agree with the CPU."""
    _agree(dev, lambda device: _train(device, _OPTIMIZERS[case]), rtol=1e-3, atol=1e-4)


@check("operator/train_fused", "OP-019", cases=("adam", "adamw", "sgd", "adagrad"))
def fused_optimizers_equal_the_plain_ones(dev: Device, case: str) -> None:
    """fused=True gives the plain optimizer's steps, or says that the device does not support it."""
    names = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "adagrad": "Adagrad"}
    optimizer = getattr(torch.optim, names[case])
    expected = _train(torch.device("cpu"), lambda p: optimizer(p, lr=0.01))
    try:
        actual = _train(dev.device(), lambda p: optimizer(p, lr=0.01, fused=True))
    except RuntimeError as error:
        if not refuses(error, words=NOT_FUSED):
            raise
        dev.unsupported(f"fused {case}: {first_line(error)}")
    for got, wanted in zip(actual, expected, strict=True):
        dev.assert_close(got, wanted, rtol=1e-3, atol=1e-4)


@check("operator/train_capturable", "OP-018", needs=("accelerator",))
def a_learning_rate_may_be_a_device_tensor(dev: Device) -> None:
    """A 0-dim device tensor as learning rate gives the steps of the same number."""
    expected = _train(torch.device("cpu"), lambda p: torch.optim.SGD(p, lr=0.1))
    rate = torch.tensor(0.1, device=dev.device())
    actual = _train(dev.device(), lambda p: torch.optim.SGD(p, lr=rate))
    for got, wanted in zip(actual, expected, strict=True):
        dev.assert_close(got, wanted, rtol=1e-3, atol=1e-4)


def _low_precision(dev: Device) -> torch.dtype:
    dtype = torch.get_autocast_dtype(dev.type)
    dev.require(str(dtype).removeprefix("torch."))
    return dtype


_LOWERED: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda x: x @ x,
    "linear": lambda x: functional.linear(x, x),
    "conv": lambda x: functional.conv1d(x[None], x[:, :, None].expand(4, 4, 1)),
}


@check("operator/autocast", "OP-020", needs=("autocast",), cases=_LOWERED)
def autocast_lowers_products(dev: Device, case: str) -> None:
    """Under autocast matrix products and convolutions are in low precision."""
    low, x = _low_precision(dev), noise((4, 4))
    with torch.autocast(dev.type):
        product = _LOWERED[case](x.to(dev.device()))
    assert product.dtype == low
    dev.assert_close(product.float(), _LOWERED[case](x), rtol=0.05, atol=0.1)


@check("operator/autocast:elementwise", "OP-020", needs=("autocast",))
def autocast_leaves_elementwise_operators_alone(dev: Device) -> None:
    """Under autocast an elementwise operator promotes its operands as it does without."""
    low, x = _low_precision(dev), noise((4, 4)).to(dev.device())
    with torch.autocast(dev.type):
        assert (x + x).dtype == torch.float32
        assert (x.to(low) + x).dtype == torch.float32


@check("operator/autocast:nested", "OP-020", needs=("autocast",))
def autocast_can_be_off_inside(dev: Device) -> None:
    """autocast(enabled=False) inside autocast switches autocast off for its block only."""
    low, x = _low_precision(dev), noise((4, 4)).to(dev.device())
    with torch.autocast(dev.type):
        with torch.autocast(dev.type, enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == low


@check("operator/autocast:explicit", "OP-020", needs=("autocast",))
def autocast_takes_a_dtype(dev: Device) -> None:
    """The data type given to autocast inside autocast is used."""
    low, x = _low_precision(dev), noise((4, 4)).to(dev.device())
    with torch.autocast(dev.type), torch.autocast(dev.type, dtype=low):
        assert torch.get_autocast_dtype(dev.type) == low
        assert (x @ x).dtype == low


@check("operator/autocast:backward", "OP-020", needs=("autocast",))
def autocast_gives_gradients_of_the_parameters_dtype(dev: Device) -> None:
    """A float32 parameter used under autocast has a float32 gradient."""
    _low_precision(dev)
    x, w = noise((4, 4)), torch.ones(4, 4, device=dev.device(), requires_grad=True)
    with torch.autocast(dev.type):
        (x.to(dev.device()) @ w).sum().backward()
    assert w.grad is not None
    assert w.grad.dtype == torch.float32
    dev.assert_close(w.grad, x.sum(0)[:, None].expand(4, 4), rtol=0.05, atol=0.1)


@check("operator/autocast:enabled", "OP-020", needs=("autocast",))
def autocast_is_on_inside_only(dev: Device) -> None:
    """is_autocast_enabled is true inside autocast, and false before and after."""
    _low_precision(dev)
    assert not torch.is_autocast_enabled(dev.type)
    with torch.autocast(dev.type):
        assert torch.is_autocast_enabled(dev.type)
    assert not torch.is_autocast_enabled(dev.type)


@check("operator/autocast_types", "OP-020", needs=("autocast", "accelerator"))
def the_module_names_its_autocast_types(dev: Device) -> None:
    """<module>.get_amp_supported_dtype lists what autocast accepts, its default included."""
    if dev.type != torch._C._get_privateuse1_backend_name():
        dev.unsupported("torch knows the types of its built-in devices")
    assert dev.module is not None
    supported = dev.module.get_amp_supported_dtype()
    assert torch.get_autocast_dtype(dev.type) in supported
    for dtype in supported:
        with torch.autocast(dev.type, dtype=dtype):
            assert torch.get_autocast_dtype(dev.type) == dtype


def _scaled(dev: Device) -> tuple[torch.amp.GradScaler, torch.optim.Optimizer, Tensor]:
    """A scaler, an optimizer, and the parameter whose gradient 1, 2, 3 is there times 16."""
    scaler = torch.amp.GradScaler(dev.type, init_scale=16.0, growth_interval=1)
    w = torch.ones(3, device=dev.device(), requires_grad=True)
    loss = (w * torch.tensor([1.0, 2.0, 3.0], device=dev.device())).sum()
    scaler.scale(loss).backward()
    return scaler, torch.optim.SGD([w], lr=1.0), w


@check("operator/grad_scaler:step", "OP-021")
def the_gradient_scaler_steps(dev: Device) -> None:
    """GradScaler steps by the unscaled gradient, and then doubles its scale."""
    scaler, optimizer, w = _scaled(dev)
    scaler.step(optimizer)
    scaler.update()
    dev.assert_close(w, torch.tensor([0.0, -1.0, -2.0]))
    assert scaler.get_scale() == 32.0


@check("operator/grad_scaler:overflow", "OP-021")
def the_gradient_scaler_skips_infinities(dev: Device) -> None:
    """GradScaler skips a step whose gradient has an infinity, and then halves its scale."""
    scaler, optimizer, w = _scaled(dev)
    assert w.grad is not None
    w.grad[1] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    dev.assert_close(w, torch.ones(3))
    assert scaler.get_scale() == 8.0


@check("operator/grad_scaler:unscale", "OP-021")
def the_gradient_scaler_unscales(dev: Device) -> None:
    """GradScaler.unscale_ divides gradients by the scale."""
    scaler, optimizer, w = _scaled(dev)
    scaler.unscale_(optimizer)
    dev.assert_close(w.grad, torch.tensor([1.0, 2.0, 3.0]))


@check("operator/grad_scaler:state", "OP-021")
def the_gradient_scaler_keeps_its_state(dev: Device) -> None:
    """A GradScaler that loads the state of another one has its scale."""
    scaler, optimizer, w = _scaled(dev)
    scaler.step(optimizer)
    scaler.update()
    dev.assert_close(w, torch.tensor([0.0, -1.0, -2.0]))
    other = torch.amp.GradScaler(dev.type)
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == scaler.get_scale() == 32.0


# ---- transforms, custom operators ------------------------------------------------------------


def _transforms(name: str) -> Program:
    def program(device: torch.device) -> Any:
        x, w = noise((4, 3)).to(device), noise((3, 3), seed=1).to(device)
        function = lambda t: (t @ w).tanh().sum()  # noqa: E731 - the function under transformation
        transformed: dict[str, Callable[[], Any]] = {
            "vmap": lambda: torch.func.vmap(lambda t: (t @ w).sin())(x),
            "vmap_grad": lambda: torch.func.vmap(torch.func.grad(function))(x),
            "vmap_index": lambda: torch.func.vmap(lambda t: t[1:] * t.sum())(x),
            "grad": lambda: torch.func.grad(function)(x),
            "jvp": lambda: list(torch.func.jvp(function, (x,), (torch.ones_like(x),))),
            "vjp": lambda: torch.func.vjp(function, x)[1](torch.ones((), device=device)),
            "jacrev": lambda: torch.func.jacrev(lambda t: t.sin() @ w)(x),
            "jacfwd": lambda: torch.func.jacfwd(lambda t: t.sin() @ w)(x[0]),
            "hessian": lambda: torch.func.hessian(lambda t: (t**3).sum())(x[0]),
            "functional_call": lambda: _called(device),
        }
        return transformed[name]()

    return program


def _called(device: torch.device) -> Tensor:
    module = torch.nn.Linear(3, 2).to(device)
    parameters = {"weight": noise((2, 3)).to(device), "bias": torch.zeros(2, device=device)}
    out: Tensor = torch.func.functional_call(module, parameters, (noise((4, 3)).to(device),))
    return out


@check(
    "operator/transform",
    "OP-022",
    cases=(
        "vmap",
        "vmap_grad",
        "vmap_index",
        "grad",
        "jvp",
        "vjp",
        "jacrev",
        "jacfwd",
        "hessian",
        "functional_call",
    ),
)
def function_transforms_agree(dev: Device, case: str) -> None:
    """torch.func transforms of functions on the device agree with the CPU."""
    _agree(dev, _transforms(case), rtol=1e-4, atol=1e-5)


@contextmanager
def _library() -> Iterator[torch.library.Library]:
    """Operators defined for one check only."""
    with torch.library._scoped_library("conformance_check", "FRAGMENT") as library:
        yield library


def _define_twice(library: torch.library.Library, key: str) -> str:
    """Define an operator that doubles, with a kernel for a key or device type; return its name."""
    library.define("twice(Tensor x) -> Tensor")
    name = "conformance_check::twice"
    torch.library.impl(name, key, lambda t: t * 2, lib=library)
    return name


def _twice(dev: Device, x: Tensor) -> Tensor:
    result: Tensor = torch.ops.conformance_check.twice(x)
    assert result.device.type == dev.type
    dev.assert_equal(result, ramp((3, 4)) * 2)
    return result


@check("operator/custom:composite", "OP-023")
def operators_for_all_devices_run(dev: Device) -> None:
    """An operator made with torch.library for all devices runs on the device."""
    with _library() as library:
        _define_twice(library, "default")
        _twice(dev, ramp((3, 4)).to(dev.device()))


@check("operator/custom:device_kernel", "OP-023")
def operators_of_the_device_run(dev: Device) -> None:
    """An operator made with torch.library for the device type runs on the device."""
    with _library() as library:
        _define_twice(library, dev.type)
        _twice(dev, ramp((3, 4)).to(dev.device()))


@check("operator/custom:autograd", "OP-023")
def operators_of_the_device_differentiate(dev: Device) -> None:
    """The gradient registered for an operator of the device type is the one that is computed."""
    x = ramp((3, 4)).to(dev.device()).requires_grad_()
    with _library() as library:
        name = _define_twice(library, dev.type)
        torch.library.register_autograd(name, lambda ctx, g: g * 5, lib=library)
        _twice(dev, x).sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad, torch.full((3, 4), 5.0))


#: Operators with a CPU kernel only: schema, kernel, and a call that doubles the first of two
#: tensors. A call that returns nothing changes that tensor.
_CPU_ONLY: dict[str, tuple[str, Callable[..., Any], Callable[[Any, Tensor, Tensor], Any]]] = {
    "value": ("twice(Tensor x) -> Tensor", lambda x: x * 2, lambda op, a, b: op(a)),
    "mutation": (
        "twice_(Tensor(a!) x) -> ()",
        lambda x: _discard(x.mul_(2)),
        lambda op, a, b: op(a.t()),
    ),
    "twice": (
        "add_to_(Tensor x, Tensor(a!) y) -> ()",
        lambda x, y: _discard(y.add_(x)),
        lambda op, a, b: op(a, a),
    ),
    "optional": (
        "pick(Tensor x, Tensor? y, Tensor?[] z) -> Tensor",
        lambda x, y, z: x + (y if y is not None else 0) + sum(t for t in z if t is not None),
        lambda op, a, b: op(a, None, [None, b]),
    ),
}


def _cpu_only(library: torch.library.Library, schema: str, kernel: Callable[..., Any]) -> Any:
    """Define an operator with a CPU kernel only."""
    library.define(schema)
    name = schema.partition("(")[0]
    library.impl(name, kernel, "CPU")
    return getattr(torch.ops.conformance_check, name)


@check("operator/cpu_only", "OP-024", cases=_CPU_ONLY)
def operators_without_a_device_kernel_fall_back_or_say_so(dev: Device, case: str) -> None:
    """An operator with a CPU kernel only either gives the right result on the device or raises."""
    schema, kernel, call = _CPU_ONLY[case]
    a, b = (ramp((3, 4)).to(dev.device(), copy=True) for _ in range(2))
    with _library() as library:
        operator = _cpu_only(library, schema, kernel)
        try:
            result = call(operator, a, b)
        except NotImplementedError as error:
            assert schema.partition("(")[0] in str(error)
            return
    doubled = a if result is None else result
    assert doubled.device.type == dev.type
    dev.assert_equal(doubled, ramp((3, 4)) * 2)


@check("operator/cpu_only:list", "OP-024")
def lists_without_a_device_kernel_are_written_or_refused(dev: Device) -> None:
    """An operator with a CPU kernel only changes every tensor of a list of the device or raises."""
    a, b = (ramp((3, 4)).to(dev.device(), copy=True) for _ in range(2))
    with _library() as library:
        operator = _cpu_only(
            library,
            "fill_all(Tensor(a!)[] x, float value) -> ()",
            lambda x, value: _discard([t.fill_(value) for t in x]),
        )
        try:
            operator([a, b.t()], 3.0)
        except NotImplementedError as error:
            assert "fill_all" in str(error)
            return
    for written in (a, b):
        dev.assert_equal(written, torch.full((3, 4), 3.0))


@check("operator/fallback_order", "OP-024", needs=("delay",))
def operators_without_a_device_kernel_wait_for_their_operands(dev: Device) -> None:
    """An operator with a CPU kernel only sees the work queued before it, or raises."""
    x = torch.zeros(4096, device=dev.device())
    dev.synchronize()
    with _library() as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda t: t / 2, "CPU")
        dev.delay(40)
        x.fill_(6)
        try:
            result = torch.ops.conformance_check.halve(x)
        except NotImplementedError:
            return
    dev.assert_equal(result, torch.full((4096,), 3.0))


@check("operator/fallback_device", "OP-006", needs=("multi_device",))
def operators_without_a_device_kernel_return_where_their_operands_live(dev: Device) -> None:
    """An operator with a CPU kernel only returns on the device of its operand, or raises."""
    x = ramp((3, 4)).to(dev.device(1))
    before = torch.accelerator.current_device_index()
    with _library() as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda t: t / 2, "CPU")
        try:
            result = torch.ops.conformance_check.halve(x)
        except NotImplementedError:
            return
    assert result.device == x.device
    assert torch.accelerator.current_device_index() == before
    dev.assert_equal(result, ramp((3, 4)) / 2)


def _discard(_: Any) -> None:
    """The kernel of an operator that returns nothing."""


def _first_row(dev: Device, x: Tensor) -> Tensor | None:
    """What a view operator with a CPU kernel only returns; None where it raises."""
    with _library() as library:
        library.define("first_row(Tensor(a) x) -> Tensor(a)")
        library.impl("first_row", lambda t: t.as_strided((4,), (1,)), "CPU")
        try:
            row: Tensor = torch.ops.conformance_check.first_row(x)
        except (RuntimeError, NotImplementedError):
            assert dev.is_accelerator
            return None
    return row


@check("operator/fallback_view:function", "OP-039")
def a_view_never_becomes_a_copy(dev: Device) -> None:
    """A view operator with a CPU kernel only either has the storage of its input or raises."""
    x = ramp((3, 4)).to(dev.device(), copy=True)
    row = _first_row(dev, x)
    if row is not None:
        assert row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@check("operator/fallback_view:in_place", "OP-039")
def writes_to_a_view_are_never_lost(dev: Device) -> None:
    """A write to the view that an operator with a CPU kernel only returns reaches its input."""
    x = ramp((3, 4)).to(dev.device(), copy=True)
    row = _first_row(dev, x)
    if row is not None:
        row.fill_(9)
        dev.assert_equal(x[0], torch.full((4,), 9.0))


@check("operator/fallback_counter", "OP-025", needs=("fallback_counter", "accelerator"))
def the_backend_counts_its_fallbacks(dev: Device) -> None:
    """An operator that has no device kernel is counted under its name; data movement is not."""
    dev.reset_fallback_counts()
    x = ramp((4, 6)).to(dev.device())
    x.t()[1:].contiguous().cpu()
    assert sum(dev.fallback_counts().values()) == 0, "moving data was counted as a fallback"
    with _library() as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda t: t / 2, "CPU")
        for _ in range(3):
            torch.ops.conformance_check.halve(x)
    counts = dev.fallback_counts()
    found = {name: n for name, n in counts.items() if "halve" in name}
    assert list(found.values()) == [3], counts
    dev.reset_fallback_counts()
    assert not dev.fallback_counts()


_LAUNCHED: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + 1,
    "relu": torch.relu,
    "sum": lambda x: x.sum(),
    "mm": lambda x: x @ x,
    "softmax": lambda x: x.softmax(1),
    "cat": lambda x: torch.cat([x, x]),
}


@check(
    "operator/fallback_hidden",
    ("OP-025", "STREAM-047"),
    needs=("fallback_counter", "accelerator", "delay"),
    cases=tuple(_LAUNCHED),
)
def what_waits_for_its_stream_is_counted(dev: Device, case: str) -> None:
    """An operator that returns only when its stream is free is a fallback, and counted as one."""
    x = noise((16, 16)).to(dev.device())
    _LAUNCHED[case](x)  # What is loaded the first time may take longer.
    dev.synchronize()
    dev.reset_fallback_counts()
    try:
        while_held(dev, lambda: _LAUNCHED[case](x))
    except AssertionError as error:
        if not is_verdict(error, __file__):
            raise
        assert dev.fallback_counts(), "it waits for its stream, and no fallback was counted"


# ---- precision and interchange ---------------------------------------------------------------


@check(
    "operator/float64",
    "OP-026",
    cases=("copy", "add", "matmul", "sum", "scalar", "exp", "linspace"),
)
def float64_is_never_narrowed(dev: Device, case: str) -> None:
    """float64 keeps 53 bits through every step, or is refused; it never becomes float32."""
    fine = 1.0 + 2.0**-40
    try:
        x = torch.full((8, 8), fine, dtype=torch.float64).to(dev.device())
    except (RuntimeError, TypeError):
        dev.unsupported("the backend refuses float64")
    assert x.dtype == torch.float64
    eye = torch.eye(8, dtype=torch.float64)
    programs: dict[str, tuple[Callable[[], Tensor], Tensor]] = {
        "copy": (lambda: x.clone(), torch.full((8, 8), fine, dtype=torch.float64)),
        "add": (lambda: x + x, torch.full((8, 8), 2 * fine, dtype=torch.float64)),
        "matmul": (lambda: x @ eye.to(dev.device()), torch.full((8, 8), fine, dtype=torch.float64)),
        "sum": (lambda: x.sum(), torch.tensor(64 * fine, dtype=torch.float64)),
        "scalar": (lambda: x * fine, torch.full((8, 8), fine * fine, dtype=torch.float64)),
        "exp": (lambda: (x - 1).exp(), torch.full((8, 8), fine - 1, dtype=torch.float64).exp()),
        "linspace": (
            lambda: torch.linspace(0, 1, 7, dtype=torch.float64, device=dev.device()),
            torch.linspace(0, 1, 7, dtype=torch.float64),
        ),
    }
    work, expected = programs[case]
    actual = work()
    assert actual.dtype == torch.float64
    dev.assert_close(actual, expected, rtol=1e-14, atol=0.0)


@check("operator/int64", "OP-026", cases=("add", "mul", "sum", "compare", "arange", "remainder"))
def int64_is_never_narrowed(dev: Device, case: str) -> None:
    """int64 keeps its 64 bits through arithmetic, reductions and comparison."""
    large = 2**40 + 1

    def program(device: torch.device) -> Tensor:
        x = torch.full((5,), large, dtype=torch.int64).to(device)
        programs: dict[str, Callable[[], Tensor]] = {
            "add": lambda: x + 1,
            "mul": lambda: x * 3,
            "sum": lambda: x.sum(),
            "compare": lambda: x == large - 1,
            "arange": lambda: torch.arange(large, large + 3, device=device),
            "remainder": lambda: (x * 2**12 + 1).remainder(1000),
        }
        return programs[case]()

    _agree(dev, program)


_EXCHANGED: dict[str, Callable[[Tensor], Tensor]] = {
    "same_memory": lambda x: x,
    "strided": lambda x: x.t()[1:, ::2],
    "dtype": lambda x: x.to(torch.int16),
}


@check("operator/dlpack", "OP-027", cases=_EXCHANGED, needs=("plain_tensors", "addresses"))
def tensors_are_exchanged_by_dlpack(dev: Device, case: str) -> None:
    """torch.from_dlpack of a device tensor shares its memory, geometry and data type."""
    x = _EXCHANGED[case](ramp((4, 6)).to(dev.device(), copy=True))
    y = torch.utils.dlpack.from_dlpack(x)
    assert (y.device, y.dtype) == (x.device, x.dtype)
    assert (y.shape, y.stride(), y.data_ptr()) == (x.shape, x.stride(), x.data_ptr())
    y.fill_(3)
    dev.assert_equal(x, torch.full(x.shape, 3, dtype=x.dtype))


_IN_CAPSULE: dict[str, Callable[[Tensor], Tensor]] = {
    "share": lambda x: x,
    "view": lambda x: x.t()[1:, ::2],
}


def _from_a_capsule(x: Tensor) -> Tensor:
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert y.device == x.device
    assert (y.data_ptr(), y.stride()) == (x.data_ptr(), x.stride())
    return y


@check("operator/dlpack_capsule", "OP-028", cases=_IN_CAPSULE, needs=("plain_tensors", "addresses"))
def dlpack_capsules_share_memory(dev: Device, case: str) -> None:
    """A tensor from a DLPack capsule shares memory and geometry with the one that went in."""
    expected = ramp((4, 6))
    whole = expected.to(dev.device(), copy=True)
    y = _from_a_capsule(_IN_CAPSULE[case](whole))
    _IN_CAPSULE[case](expected).fill_(3)
    y.fill_(3)
    dev.assert_equal(whole, expected)


@check("operator/dlpack_capsule:outlive", "OP-028", needs=("plain_tensors", "addresses"))
def dlpack_capsules_keep_memory_alive(dev: Device) -> None:
    """A tensor from a DLPack capsule keeps the memory when the one that went in is gone."""
    y = _from_a_capsule(ramp((4, 6)).to(dev.device(), copy=True))
    torch.full((4, 6), -1.0, device=dev.device())
    dev.assert_equal(y, ramp((4, 6)))


@check("operator/dlpack_capsule:to_host", "OP-028", needs=("plain_tensors", "addresses"))
def dlpack_capsules_can_be_asked_for_on_the_host(dev: Device) -> None:
    """A DLPack capsule that is asked for on the CPU holds the values of the device tensor."""
    x = ramp((4, 6)).to(dev.device(), copy=True)
    capsule = x.__dlpack__(dl_device=(torch.utils.dlpack.DLDeviceType.kDLCPU, 0))
    assert torch.equal(torch.utils.dlpack.from_dlpack(capsule), ramp((4, 6)))


@check("operator/dlpack_host:refused", "OP-028", needs=("accelerator",))
def numpy_is_refused_device_memory(dev: Device) -> None:
    """numpy.from_dlpack of a device tensor raises."""
    import numpy

    x = ramp((4, 6)).to(dev.device())
    error = raised(lambda: numpy.from_dlpack(x))
    assert isinstance(error, (RuntimeError, BufferError, ValueError, TypeError)), repr(error)


@check("operator/dlpack_host:brought", "OP-028", needs=("accelerator",))
def numpy_arrays_reach_the_device_by_a_copy(dev: Device) -> None:
    """An array of numpy that is brought to the device is a copy there."""
    import numpy

    array = numpy.arange(6, dtype=numpy.float32)
    x = torch.from_dlpack(array).to(dev.device())
    array[:] = 0
    dev.assert_equal(x, torch.arange(6.0))


@check(
    "operator/warnings",
    "OP-029",
    cases=("arithmetic", "reduction", "matmul", "train", "index", "copy", "module"),
    case_needs={"copy": "float16"},
)
def common_work_does_not_warn(dev: Device, case: str) -> None:
    """Common work that is silent on the CPU is silent on the device."""
    device = dev.device()
    works: dict[str, Callable[[], Any]] = {
        "arithmetic": lambda: (_x(device) * 2 + 1).exp().clamp(0, 1),
        "reduction": lambda: (_x(device).sum(), _x(device).mean(0), _x(device).std()),
        "matmul": lambda: _x(device) @ _x(device).t(),
        "train": lambda: _train(device, _OPTIMIZERS["adam"]),
        "index": lambda: _INDEX_PUT["none_then_index"](device),
        "copy": lambda: (_x(device).cpu(), _x(device).half(), _x(device).clone()),
        "module": lambda: torch.nn.Linear(2, 2).to(device).state_dict(),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        works[case]()
    assert not [str(entry.message) for entry in caught]


@check(
    "operator/errors",
    "OP-030",
    cases=("shape", "matmul", "dtype", "dim", "view", "cat", "reduction", "cast", "overlap"),
)
def wrong_arguments_raise_as_on_the_cpu(dev: Device, case: str) -> None:
    """Wrong shapes, data types and dimensions raise the CPU's exception type."""
    works: dict[str, Callable[[torch.device], Any]] = {
        "shape": lambda d: torch.ones(2, device=d) + torch.ones(3, device=d),
        "matmul": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
        "dtype": lambda d: torch.ones(2, 2, device=d) @ torch.ones(2, 2, device=d).long(),
        "dim": lambda d: torch.ones(2, device=d).sum(3),
        "view": lambda d: torch.ones(6, device=d).view(4, 2),
        "cat": lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 2, device=d)], 0),
        "reduction": lambda d: torch.ones(2, dtype=torch.int64, device=d).mean(),
        "cast": lambda d: torch.ones(2, dtype=torch.int64, device=d).add_(1.5),
        "overlap": lambda d: torch.mul((x := torch.ones(5, device=d))[1:], 2, out=x[:-1]),
    }
    expected = raised(lambda: works[case](torch.device("cpu")))

    def work() -> None:
        works[case](dev.device())
        dev.synchronize()

    actual = raised(work)
    assert isinstance(actual, type(expected))
    dev.assert_equal(torch.ones(2, device=dev.device()) + 1, torch.full((2,), 2.0))


_DENSE = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])


def _sparse(dev: Device) -> Tensor:
    """A sparse COO tensor on the device."""
    try:
        sparse = _DENSE.to(dev.device()).to_sparse()
    except RuntimeError as error:
        if not refuses(error):
            raise
        dev.unsupported(f"no sparse tensors: {first_line(error)[:100]}")
    assert sparse.device.type == dev.type
    return sparse


@check("operator/sparse:to_dense", "OP-031")
def sparse_tensors_become_dense_or_are_refused(dev: Device) -> None:
    """A sparse COO tensor on the device has the values it was made of, or is refused when made."""
    dev.assert_equal(_sparse(dev).to_dense(), _DENSE)


@check("operator/sparse:matmul", "OP-031")
def sparse_tensors_are_multiplied_or_refused(dev: Device) -> None:
    """A sparse COO tensor on the device multiplies as the CPU's does, or is refused when made."""
    product = torch.sparse.mm(_sparse(dev), ramp((3, 2)).to(dev.device()))
    dev.assert_close(product, _DENSE @ ramp((3, 2)))


@check("operator/large", "OP-036", cases=("sum", "add", "sort", "matmul"))
def larger_problems_agree(dev: Device, case: str) -> None:
    """Sizes that need several blocks or threads agree with the CPU."""
    programs: dict[str, Program] = {
        "sum": lambda d: ramp((1000, 1003), torch.int64).to(d).sum(1),
        "add": lambda d: ramp((1_000_003,)).to(d) + ramp((1_000_003,)).to(d),
        "sort": lambda d: noise((100_001,)).to(d).sort().values,
        "matmul": lambda d: noise((257, 130)).to(d) @ noise((130, 129), seed=1).to(d),
    }
    _agree(dev, programs[case], rtol=1e-4, atol=1e-4)


_FAR: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + 1,
    "in_place": lambda x: x.mul_(2),
    "fill": lambda x: x[2].fill_(9),
    "sum": lambda x: x.sum(1),
    "index": lambda x: x[torch.tensor([2, 0], device=x.device)],
    "cat": lambda x: torch.cat([x, x]),
}


@check("operator/far", "OP-036", cases=tuple(_FAR))
def operands_may_lie_far_apart(dev: Device, case: str) -> None:
    """Operators on elements that are more than 2 GiB apart in memory agree with the CPU."""
    expected, actual = ramp((3, 5), torch.uint8), far_apart(dev)
    for row, values in zip(actual, expected, strict=True):
        row.copy_(values)
    dev.assert_equal(_FAR[case](actual), _FAR[case](expected))
    dev.assert_equal(torch.stack(list(actual)), expected)


_STRIDED: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + x.flip(0),
    "exp": lambda x: x.exp(),
    "flip": lambda x: x.flip(0, 1),
    "matmul": lambda x: x @ x.mT,
    "dot": lambda x: x[:, 0].dot(x[:, -1]),
    "mv": lambda x: x @ x[0],
    "sum": lambda x: x.sum(0),
    "argmax": lambda x: x.argmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(dim=0).values,
    "where": lambda x: torch.where(x > 0, x, -2 * x),
    "softmax": lambda x: x.softmax(0),
    "cat": lambda x: torch.cat([x, x[:1]]),
}


@check("operator/strided", "OP-037", cases=tuple(_STRIDED))
def operands_may_be_views(dev: Device, case: str) -> None:
    """Operators on transposed, expanded, sliced and overlapping operands agree with the CPU."""

    def program(device: torch.device) -> list[Tensor]:
        base = noise((6, 6)).to(device)
        views = [base.t(), base[:1].expand(6, 6), base[::2, 1:], base.flatten()[3:28].view(5, 5)]
        return [_STRIDED[case](view) for view in [*views, base.as_strided((5, 4), (2, 1))]]

    _agree(dev, program, rtol=1e-5, atol=1e-6)
