# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that show when whole models are trained."""

from __future__ import annotations

from typing import Any

import torch
from lies import Call, lie


def _in_backward() -> bool:
    return int(torch._C._current_graph_task_id()) != -1


def _scaled(result: Any, factor: float) -> Any:
    """The result with its floating point tensors multiplied by a factor."""
    if isinstance(result, torch.Tensor):
        return result * factor if result.is_floating_point() else result
    if isinstance(result, (list, tuple)):
        return type(result)(_scaled(item, factor) for item in result)
    return result


@lie("MODEL-001 MODEL-003", "model/eval:vit model/sgd:vit")
def gelu_is_approximated(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """GELU and its derivative use the approximation by tanh unasked."""
    if name in ("gelu", "gelu_backward"):
        kwargs = {**kwargs, "approximate": "tanh"}
    return call(*args, **kwargs)


@lie("MODEL-002", "model/low_precision:vit:float16 model/low_precision:vit:bfloat16")
def products_of_halves_are_rounded_first(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Matrix products of 16-bit types round their operands to 8 bits."""
    if name in ("addmm", "mm", "bmm") and args[-1].dtype in (torch.float16, torch.bfloat16):
        rounded = [a.to(torch.float8_e4m3fn).to(a.dtype) for a in args[-2:]]
        args = (*args[:-2], *rounded)
    return call(*args, **kwargs)


@lie("MODEL-012", "model/generate:lstm")
def the_second_best_is_chosen(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """argmax overlooks the largest number."""
    if name == "argmax":
        return args[0].topk(2, dim=args[1])[1].select(args[1], 1)
    return call(*args, **kwargs)


@lie("MODEL-003", "model/sgd:vit")
def norms_have_a_wrong_derivative(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradients of layer norm are one percent too large."""
    result = call(*args, **kwargs)
    return _scaled(result, 1.01) if name == "native_layer_norm_backward" else result


@lie("MODEL-003", "model/sgd:lstm")
def repeated_tokens_count_once(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of an embedding is divided by how often a row was looked up."""
    if name == "embedding_dense_backward":
        args = (*args[:4], True, *args[5:])
    return call(*args, **kwargs)


@lie("MODEL-004", "model/adamw:mlp")
def the_second_moment_is_forgotten(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The running average of squared gradients is not kept."""
    if name == "_foreach_addcmul_.Scalar":
        torch._foreach_zero_(args[0])
    return call(*args, **kwargs)


@lie("MODEL-005", "model/accumulate:mlp")
def gradients_are_replaced(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A second backward pass overwrites the gradients of the first."""
    if name == "add_.Tensor" and _in_backward():
        return args[0].copy_(args[1])
    return call(*args, **kwargs)


@lie("MODEL-006", "model/clip:mlp")
def the_norm_of_a_list_is_that_of_its_first(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The norms of a list of tensors are all that of the first."""
    result = call(*args, **kwargs)
    return [result[0]] * len(result) if name == "_foreach_norm.Scalar" else result


@lie("MODEL-007", "model/recompute:vit model/recompute_reentrant:vit")
def a_forward_inside_of_backward_differs(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """What is computed anew in backward is not what was computed in forward."""
    result = call(*args, **kwargs)
    return result * 1.01 if name == "gelu" and _in_backward() else result


@lie("MODEL-008", "model/autocast:mlp:float16")
def autocast_casts_nothing(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A cast to float16 leaves a tensor as it is."""
    if name == "_to_copy" and kwargs.get("dtype") == torch.float16:
        return args[0].clone()
    return call(*args, **kwargs)


@lie("MODEL-008", "model/autocast:mlp:*")
def casts_have_no_derivative(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Gradients that pass a cast are halved."""
    result = call(*args, **kwargs)
    return result * 0.5 if name == "_to_copy" and _in_backward() else result


@lie("MODEL-009", "model/grad_scaler:mlp")
def infinite_gradients_are_not_found(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The operator that looks for infinite gradients never reports one."""
    result = call(*args, **kwargs)
    if name == "_amp_foreach_non_finite_check_and_unscale_":
        args[1].zero_()
    return result


@lie("MODEL-010", "model/resume:mlp")
def products_depend_on_chance(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The last bits of a matrix product differ from call to call."""
    result = call(*args, **kwargs)
    return result * (1 + 1e-6 * torch.rand(()).item()) if name == "addmm" else result


@lie("MODEL-011", "model/migrate:mlp")
def the_end_of_a_storage_is_not_saved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """When a storage is copied to the CPU, its last quarter stays zero."""
    result = call(*args, **kwargs)
    if name == "copy_" and args[0].is_cpu and args[0].dtype == torch.uint8:
        args[0][-(args[0].numel() // 4) :] = 0
    return result
