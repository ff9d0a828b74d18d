# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that show when modules are used, moved, copied and saved."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie
from torch import nn


@lie("MODULE-001 MODULE-002", "module/forward:relu6:float32 module/inference:relu6:float32")
def relu6_has_no_upper_bound(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """hardtanh is bounded below only."""
    if name in ("hardtanh", "relu6"):
        return args[0].clamp_min(0)
    return call(*args, **kwargs)


@lie("MODULE-001", "module/forward:batchnorm2d:float32")
def statistics_forget_the_correction(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The running variance is that of the batch, without Bessel's correction."""
    if name != "native_batch_norm" or not args[5]:
        return call(*args, **kwargs)
    count = args[0].numel() / args[0].shape[1]
    old = args[4].clone()
    result = call(*args, **kwargs)
    added = args[4] - (1 - args[6]) * old
    args[4].sub_(added / count)
    return result


@lie("MODULE-003", "module/backward:conv2d:float32")
def a_backward_is_off_by_a_factor(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of a convolution's weight is that of the mean over the batch."""
    result = call(*args, **kwargs)
    if name == "convolution_backward" and result[1] is not None:
        return result[0], result[1] / args[1].shape[0], result[2]
    return result


@lie("MODULE-004", "module/low_precision:linear:float16 module/low_precision:linear:bfloat16")
def linear_returns_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product of 16-bit operands has the type in which it was accumulated."""
    result = call(*args, **kwargs)
    return result.float() if name in ("addmm", "mm") else result


@lie("MODULE-005", "module/move:embedding")
def moving_rounds(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Moving a tensor goes through a type of less precision."""
    if name == "_to_copy" and args[0].dtype == torch.float32:
        args = (args[0].bfloat16().float(),)
    return call(*args, **kwargs)


@lie("MODULE-006 MODULE-009", "module/construct:linear module/materialize:linear")
def initialisation_does_nothing(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """uniform_ leaves the memory as it is, here zero."""
    return args[0].zero_() if name == "uniform_" else call(*args, **kwargs)


@lie("MODULE-007", "module/state_dict:linear")
def loading_skips_small_tensors(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy of up to eight elements is lost."""
    if name == "copy_" and args[0].numel() <= 8:
        return args[0]
    return call(*args, **kwargs)


@lie("MODULE-008", "module/deepcopy:linear")
def clones_share_memory(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A clone is another view of the same memory."""
    if name == "clone":
        return args[0].view(args[0].shape)
    return call(*args, **kwargs)


@lie("MODULE-010", "module/shared:*")
def parameters_are_replaced(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Tensors of the device cannot become the data of a tensor of the CPU."""
    if name == "_has_compatible_shallow_copy_type":
        return args[0].device == args[1].device
    return call(*args, **kwargs)


@lie("MODULE-011", "module/gradients_move:*", planted=True)
def gradients_stay_behind() -> None:
    """Moving a module drops its gradients."""
    move = nn.Module.to

    def dropping(self: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        self.zero_grad()
        return move(self, *args, **kwargs)

    nn.Module.to = dropping  # type: ignore[method-assign, assignment]  # the lie


@lie("MODULE-012", "module/channels_last:relu module/channels_last:maxpool2d")
def outputs_are_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Results have the default strides, whatever those of the input are."""
    result = call(*args, **kwargs)
    if name in ("relu", "max_pool2d_with_indices"):
        whole = result if isinstance(result, tuple) else (result,)
        whole = tuple(tensor.contiguous() for tensor in whole)
        return whole if isinstance(result, tuple) else whole[0]
    return result


@lie("MODULE-013", "module/hooks:full_backward", planted=True)
def backward_hooks_are_not_called() -> None:
    """register_full_backward_hook takes the hook and forgets it."""
    nn.Module.register_full_backward_hook = lambda *_: None  # type: ignore[method-assign, assignment]  # the lie


@lie("MODULE-014", "module/parametrize:weight_norm")
def norms_are_squared(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The norm inside of weight norm lacks its root."""
    result = call(*args, **kwargs)
    if name in ("norm.ScalarOpt_dim", "linalg_vector_norm"):
        return result * result
    if name == "_weight_norm_interface":
        return result[0] / result[1], result[1]
    return result


@lie("MODULE-015", "module/save", planted=True)
def the_location_is_ignored() -> None:
    """torch.load puts everything on the device."""
    load = torch.load

    def stubborn(*args: Any, **kwargs: Any) -> Any:
        return load(*args, **{**kwargs, "map_location": BACKEND})

    torch.load = stubborn
