# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that the OpInfo tier has to notice; registered with those of `lies`."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie


@lie("OPINFO-UNARY-001", "opinfo/forward:sinh:int64")
def whole_numbers_are_not_widened_enough(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The hyperbolic sine of whole numbers is computed in half precision."""
    if name.startswith("sinh") and not args[0].is_floating_point():
        args = (args[0].half(), *args[1:])
        return call(*args, **kwargs).float()
    return call(*args, **kwargs)


@lie("OPINFO-RANDOM-002", "opinfo/forward:bernoulli:float32")
def random_tensors_have_a_dimension_more(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """bernoulli gives as many numbers as asked for, in another shape."""
    result = call(*args, **kwargs)
    return result[None] if name == "bernoulli" else result


@lie("OPINFO-UNARY-003 OPINFO-BINARY-003", "opinfo/out:sinh:float32 opinfo/out:mul:float32")
def strides_of_out_are_ignored(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A result is written to out= as if that were contiguous."""
    out = kwargs.get("out")
    if isinstance(out, torch.Tensor) and out.numel() and not out.is_contiguous():
        plain = call(*args, **{**kwargs, "out": torch.empty_like(out).contiguous()})
        out.as_strided(out.shape, plain.stride()).copy_(plain)
        return out
    return call(*args, **kwargs)


@lie("OPINFO-UNARY-003", "opinfo/out:sinh:float32")
def out_takes_any_dtype(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A result is converted to the dtype of out=, whatever is lost."""
    if name == "sinh.out" and not kwargs["out"].is_floating_point():
        return kwargs["out"].copy_(call(*args, out=torch.empty_like(args[0])))
    return call(*args, **kwargs)


@lie("OPINFO-UNARY-004", "opinfo/inplace:sinh:float32")
def in_place_computes_elsewhere(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """sinh_ leaves its result in a temporary."""
    return call(args[0].clone()) if name == "sinh_" else call(*args, **kwargs)


@lie(
    "OPINFO-UNARY-005 OPINFO-BLAS-005",
    "opinfo/noncontiguous:sinh:float32 opinfo/noncontiguous:mm:float32",
)
def memory_is_read_in_a_row(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A kernel takes every input for contiguous."""
    if name in ("sinh", "mm"):
        args = tuple(a.as_strided(a.shape, torch.empty(a.shape).stride()) for a in args)
    return call(*args, **kwargs)


@lie(
    "OPINFO-INDEX-007 OPINFO-JOIN-007 OP-030",
    "opinfo/error:gather opinfo/error:cat opinfo/misfit:mm:float32",
)
def wrong_arguments_are_overlooked(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Whatever an operator complains about, something is returned."""
    try:
        return call(*args, **kwargs)
    except (RuntimeError, IndexError):
        return torch.zeros((), device=BACKEND)


@lie("OPINFO-UNARY-008", "opinfo/gradient:tanh:float32")
def a_backward_kernel_is_wrong(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The backward of tanh forgets the square."""
    if name == "tanh_backward":
        return args[0] * (1 - args[1])
    return call(*args, **kwargs)


@lie("OPINFO-UNARY-009", "opinfo/gradgrad:sin:float32")
def a_second_backward_loses_its_sign(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """neg, which the second derivative of the sine needs, copies."""
    return args[0].clone() if name == "neg" else call(*args, **kwargs)


@lie("OPINFO-FOREACH-010", "opinfo/foreach:_foreach_add:float32")
def lists_are_added_without_their_factor(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """_foreach_add ignores alpha."""
    if name == "_foreach_add.List":
        kwargs = {key: value for key, value in kwargs.items() if key != "alpha"}
    return call(*args, **kwargs)


@lie("OPINFO-FOREACH-011", "opinfo/foreach:_foreach_exp_inplace:float32")
def the_end_of_a_list_is_not_reached(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """_foreach_exp_ skips the last tensor of the list."""
    return call(args[0][:-1]) if name == "_foreach_exp_" else call(*args, **kwargs)
