# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that show when optimizers step, keep their state, and are saved."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie


@lie("OPTIM-001 OPTIM-003", "optimizer/default:adam optimizer/foreach:adam")
def lists_take_the_first_scalar(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator on lists with a scalar for each tensor uses the first half of each."""
    if name == "_foreach_addcdiv_.ScalarList":
        args = (*args[:3], [scalar / 2 for scalar in args[3]])
    return call(*args, **kwargs)


@lie("OPTIM-002", "optimizer/loop:adam")
def a_factor_is_dropped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """addcmul_ adds the product without its factor."""
    if name == "addcmul_":
        kwargs = {}
    return call(*args, **kwargs)


@lie("OPTIM-004", "optimizer/fused:adamw optimizer/fused:sgd")
def the_fused_step_forgets_to_decay(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Fused optimizers ignore weight_decay."""
    if name.startswith("_fused_"):
        kwargs = {**kwargs, "weight_decay": 0.0}
    return call(*args, **kwargs)


@lie("OPTIM-005", "optimizer/capturable:adam")
def counters_stand_still(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Adding one to a tensor without dimensions does nothing."""
    if name in ("add_.Tensor", "add_.Scalar") and not args[0].dim() and not args[0].requires_grad:
        return args[0]
    return call(*args, **kwargs)


@lie("OPTIM-006", "optimizer/differentiable:adam")
def quotients_have_a_wrong_derivative(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Division in backward gives twice the quotient."""
    result = call(*args, **kwargs)
    inside = int(torch._C._current_graph_task_id()) != -1
    return result * 2 if inside and name.startswith("div.") else result


@lie("OPTIM-008", "optimizer/state:adam")
def state_is_narrow(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """zeros_like gives bfloat16."""
    result = call(*args, **kwargs)
    return result.bfloat16() if name == "zeros_like" else result


@lie("OPTIM-009", "optimizer/state_dict:adam")
def saved_state_loses_its_end(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """When a storage is copied to the CPU, its last quarter stays zero."""
    result = call(*args, **kwargs)
    if name == "copy_" and args[0].is_cpu and args[0].dtype == torch.uint8:
        args[0][-(args[0].numel() // 4) :] = 0
    return result


@lie("OPTIM-010 OPTIM-012", "optimizer/tensor_rate:sgd optimizer/scheduler:plateau")
def numbers_become_integers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """item() gives the integral part."""
    result = call(*args, **kwargs)
    return float(int(result) // 10) if name == "_local_scalar_dense" else result


@lie("OPTIM-011", "optimizer/groups:sgd")
def every_group_has_the_same_rate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The factor of an addition of lists is that of its first call."""
    if name == "_foreach_add_.List":
        kwargs = {"alpha": -0.01}
    return call(*args, **kwargs)


@lie("OPTIM-013", "optimizer/zero_grad:to_zero")
def only_the_first_is_zeroed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """_foreach_zero_ sets the first tensor of its list to zero."""
    return call(args[0][:1]) if name == "_foreach_zero_" else call(*args, **kwargs)


@lie("OPTIM-014", "optimizer/dtype:sgd:bfloat16 optimizer/dtype:sgd:float16")
def fused_steps_skip_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused optimizer moves parameters of 32 bits only."""
    if name == "_fused_sgd_" and args[0][0].element_size() == 2:
        return None
    return call(*args, **kwargs)


@lie("OPTIM-015", "optimizer/wide:sgd:float64")
def lists_compute_in_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Lists of float64 are updated in the precision of float32."""
    result = call(*args, **kwargs)
    if name.startswith("_foreach_") and args[0][0].dtype == torch.float64:
        for tensor in args[0]:
            tensor.copy_(tensor.float())
    return result


@lie("OPTIM-016", "optimizer/mixed:sgd")
def strided_tensors_of_lists_are_copied(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """In-place operators on lists update a copy of what is not contiguous."""
    if name.startswith("_foreach_") and name.partition(".")[0].endswith("_"):
        args = ([t if t.is_contiguous() else t.clone() for t in args[0]], *args[1:])
    return call(*args, **kwargs)


@lie("OPTIM-017", "optimizer/scaled:adamw optimizer/scaled:sgd")
def fused_steps_do_not_skip(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused optimizer steps whatever the scaler found."""
    if name.startswith("_fused_"):
        kwargs = {**kwargs, "found_inf": None}
    return call(*args, **kwargs)


@lie("OPTIM-018", "optimizer/averaged:exponential optimizer/averaged:equal")
def averages_follow_too_fast(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Interpolation of lists goes all the way."""
    if name == "_foreach_lerp_.Scalar":
        args = (*args[:2], 1.0)
    return call(*args, **kwargs)


@lie("OPTIM-019", "optimizer/devices:sgd")
def lists_are_of_the_first_device(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operators on lists do nothing for tensors of another device than the first."""
    if name.startswith("_foreach_") and args[0][0].device.index != 0 and name.endswith("_.List"):
        return None
    return call(*args, **kwargs)


@lie("OPTIM-020", "optimizer/hyperparameters_foreach:adam optimizer/hyperparameters_foreach:adamw")
def the_largest_moment_is_the_latest(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The maximum of two lists is the second one."""
    if name == "_foreach_maximum_.List":
        for tensor, other in zip(*args, strict=True):
            tensor.copy_(other)
        return None
    return call(*args, **kwargs)


@lie("OPTIM-020", "optimizer/hyperparameters_loop:rmsprop")
def products_are_never_subtracted(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """addcmul_ with a negative factor takes its absolute value."""
    if name in ("addcmul", "addcmul_") and kwargs.get("value", 1) < 0:
        kwargs = {"value": -kwargs["value"]}
    return call(*args, **kwargs)


@lie("OPTIM-021", "optimizer/hyperparameters_fused:adam optimizer/hyperparameters_fused:adamw")
def fused_steps_are_counted_once_for_all(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused optimizer takes the count of steps of its first parameter for every parameter."""
    if name in ("_fused_adam_", "_fused_adamw_"):
        counts = args[5]
        args = (*args[:5], [counts[0].clone() for _ in counts])
    return call(*args, **kwargs)


@lie("OPTIM-021", "optimizer/hyperparameters_fused:sgd")
def fused_momentum_is_never_damped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused optimizer ignores dampening."""
    if name.startswith("_fused_sgd_"):
        kwargs = {**kwargs, "dampening": 0.0}
    return call(*args, **kwargs)


@lie("OPTIM-022", "optimizer/tensor_betas:adam")
def scalars_of_tensors_keep_eight_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """item() of a tensor of float32 keeps eight bits."""
    result = call(*args, **kwargs)
    if name == "_local_scalar_dense" and isinstance(result, float):
        return float(torch.tensor(result).bfloat16())
    return result


@lie("OPTIM-023", "optimizer/grad_scale:adamw optimizer/grad_scale:sgd")
def fused_steps_take_scaled_gradients(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused optimizer does not divide gradients by grad_scale."""
    if name.startswith("_fused_"):
        kwargs = {**kwargs, "grad_scale": None}
    return call(*args, **kwargs)


@lie("OPTIM-017", "optimizer/found_inf:adamw optimizer/found_inf:adam")
def skipped_steps_decay(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused step that is skipped still changes the first moments."""
    result = call(*args, **kwargs)
    if name.startswith("_fused_adam") and kwargs.get("found_inf") is not None:
        for moment in args[2]:
            moment.mul_(1 - 0.1 * kwargs["found_inf"])
    return result
