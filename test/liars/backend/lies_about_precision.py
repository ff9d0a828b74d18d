# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in automatic mixed precision and in gradient scaling."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie

# ---- mixed precision ---------------------------------------------------------------------------

_PLANTED: list[torch.library.Library] = []


def _autocast_kernel(operator: str, kernel: Any = torch.library.fallthrough_kernel) -> None:
    """Replace what an operator does under autocast, by default by nothing at all."""
    library = torch.library.Library("aten", "IMPL")
    library.impl(operator, kernel, "AutocastPrivateUse1", allow_override=True)
    _PLANTED.append(library)


@lie("AUTOCAST-001", "autocast/lower:mm:float16 autocast/lower:linear:bfloat16", planted=True)
def products_are_not_lowered() -> None:
    """mm is missing from the list of the lower precision."""
    _autocast_kernel("mm")


@lie("AUTOCAST-001 OP-020", "autocast/lower:linear:bfloat16 operator/autocast:linear", planted=True)
def linear_layers_are_not_lowered() -> None:
    """linear and what it is made of are missing from the list of the lower precision."""
    for operator in ("linear", "addmm", "mm", "matmul"):
        _autocast_kernel(operator)


@lie("AUTOCAST-002", "autocast/fp32:exp:float16 autocast/fp32:exp:bfloat16", planted=True)
def exp_stays_in_low_precision() -> None:
    """exp is missing from the float32 list."""
    _autocast_kernel("exp")


@lie("AUTOCAST-003", "autocast/promote:dot:float16", planted=True)
def dot_is_not_promoted() -> None:
    """dot is missing from the promote list."""
    _autocast_kernel("dot")


@lie("AUTOCAST-004", "autocast/refused:*", planted=True)
def unsafe_losses_are_accepted() -> None:
    """binary_cross_entropy runs under autocast."""
    _autocast_kernel("binary_cross_entropy")


@lie("AUTOCAST-005", "autocast/unlisted:relu", planted=True)
def autocast_casts_everything() -> None:
    """relu is lowered, though it is on no list."""

    def lowered(x: torch.Tensor) -> torch.Tensor:
        with torch._C._DisableAutocast():
            return torch.relu(x.to(torch.get_autocast_dtype(BACKEND)))

    _autocast_kernel("relu", lowered)


@lie("AUTOCAST-006", "autocast/nesting:dtype autocast/nesting:exception", planted=True)
def inner_regions_leak() -> None:
    """Leaving an inner region does not bring the data type of the outer one back."""
    leave = torch.autocast.__exit__

    def forgetful(self: Any, *error: Any) -> Any:
        self.prev_fastdtype = self.fast_dtype
        return leave(self, *error)

    torch.autocast.__exit__ = forgetful  # type: ignore[method-assign]  # the lie


@lie("AUTOCAST-007", "autocast/default_dtype", planted=True)
def one_type_is_not_listed() -> None:
    """The module does not list bfloat16 among the types of autocast."""
    torch.get_device_module(BACKEND).get_amp_supported_dtype = lambda: [torch.float16]


@lie("AUTOCAST-008", "autocast/cache_cleared autocast/cache_freed", planted=True)
def casts_are_kept_for_ever() -> None:
    """Leaving the outermost region does not drop the cached casts."""
    torch.clear_autocast_cache = lambda: None


@lie("AUTOCAST-009", "autocast/gradients:float16")
def backward_in_low_precision_is_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The derivative of tanh is taken for one in low precision."""
    if name == "tanh_backward" and args[0].dtype != torch.float32:
        return args[0].clone()
    return call(*args, **kwargs)


@lie("AUTOCAST-010", "autocast/custom_function:*", planted=True)
def custom_functions_are_of_another_device() -> None:
    """custom_fwd looks at the autocast state of the CPU."""
    decorate = torch.amp.custom_fwd

    def misled(*, device_type: str, cast_inputs: torch.dtype | None = None) -> Any:
        return decorate(device_type="cpu", cast_inputs=cast_inputs)

    torch.amp.custom_fwd = misled  # type: ignore[assignment]  # the lie


@lie("AUTOCAST-011", "autocast/unsupported_dtype", planted=True)
def every_type_is_accepted() -> None:
    """A region takes every floating data type, whatever the module lists."""
    module: Any = torch.get_device_module(BACKEND)
    listed = module.get_amp_supported_dtype
    begin = torch.autocast.__init__

    def lenient(self: Any, *args: Any, **kwargs: Any) -> None:
        module.get_amp_supported_dtype = lambda: [*listed(), torch.float32, torch.float64]
        try:
            begin(self, *args, **kwargs)
        finally:
            module.get_amp_supported_dtype = listed

    torch.autocast.__init__ = lenient  # type: ignore[method-assign]  # the lie


@lie("AUTOCAST-012", "autocast/cache:on", planted=True)
def casts_are_never_kept() -> None:
    """A weight is cast anew for each use."""
    begin = torch.autocast.__init__

    def wasteful(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **{**kwargs, "cache_enabled": False})

    torch.autocast.__init__ = wasteful  # type: ignore[method-assign]  # the lie


# ---- gradient scaling --------------------------------------------------------------------------

_UNSCALE = "_amp_foreach_non_finite_check_and_unscale_"
_UPDATE = "_amp_update_scale_"


@lie("SCALER-001", "grad_scaler/scale:tensor")
def full_fills_with_one(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The tensor of the scale holds 1."""
    return call(args[0], 1.0, **kwargs) if name == "full" else call(*args, **kwargs)


@lie("SCALER-002", "grad_scaler/unscale:float32 grad_scaler/clip:norm")
def only_one_gradient_is_unscaled(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Of a list of gradients the first is unscaled, and of that not what is small."""
    if name == _UNSCALE:
        found, inverse = args[1:]
        return call([], found, inverse) if args[0][0].numel() > 5 else call(args[0][:1], *args[1:])
    return call(*args, **kwargs)


@lie("SCALER-003", "grad_scaler/unscale_order:fp16", planted=True)
def float16_gradients_are_unscaled() -> None:
    """Gradients in float16 are unscaled like others."""
    scaler: Any = torch.amp.GradScaler
    unscale = scaler._unscale_grads_

    def lenient(self: Any, *arguments: Any) -> Any:
        return unscale(self, *arguments[:-1], True)

    scaler._unscale_grads_ = lenient


@lie("SCALER-004", "grad_scaler/skip:*")
def only_infinity_is_noticed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A NaN gradient does not count as not finite."""
    if name == _UNSCALE and any(tensor.isnan().any() for tensor in args[0]):
        return call([tensor.nan_to_num_() for tensor in args[0]], *args[1:])
    return call(*args, **kwargs)


@lie("SCALER-004 OP-021", "grad_scaler/skip:* operator/grad_scaler:overflow")
def overflows_are_not_noticed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """found_inf is never set."""
    result = call(*args, **kwargs)
    if name == _UNSCALE:
        args[1].zero_()
    return result


@lie("SCALER-005 SCALER-011", "grad_scaler/growth grad_scaler/update_operator")
def the_scale_never_backs_off(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The update of the scale does not look at found_inf."""
    if name == _UPDATE:
        args = (*args[:2], torch.zeros_like(args[2]), *args[3:])
    return call(*args, **kwargs)


@lie("SCALER-006", "grad_scaler/state_dict:used")
def good_steps_are_not_counted(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The update of the scale leaves the growth tracker as it was."""
    if name == _UPDATE:
        args = (args[0], args[1].clone(), *args[2:])
    return call(*args, **kwargs)


@lie("SCALER-007", "grad_scaler/two_devices")
def flags_do_not_travel(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A 0-dim tensor loses its value between devices."""
    result = call(*args, **kwargs)
    target = kwargs.get("device")
    if name == "_to_copy" and target is not None and target.type == BACKEND:
        lost = args[0].numel() == 1 and args[0].device.type == BACKEND
        return result.zero_() if lost else result
    return result


@lie("SCALER-008", "grad_scaler/optimizer:sgd_fused")
def fused_optimizers_do_not_skip(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused optimizer ignores found_inf."""
    return call(*args, **{k: v for k, v in kwargs.items() if k != "found_inf"})


@lie("SCALER-009", "grad_scaler/autocast")
def every_step_is_skipped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """found_inf is always set."""
    result = call(*args, **kwargs)
    if name == _UNSCALE:
        args[1].fill_(1.0)
    return result


@lie("SCALER-010", "grad_scaler/unscale_operator:sticky")
def found_inf_is_cleared(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Unscaling clears found_inf first, so that only the last group of gradients counts."""
    if name == _UNSCALE:
        args[1].zero_()
    return call(*args, **kwargs)
