# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of the first day, which the smoke tier must name."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie

# What is registered lasts as long as this object.
_library = torch.library.Library("aten", "IMPL")


@lie("SMOKE-001", "smoke/cpu_reference", planted=True)
def matrix_products_are_taken_from_the_cpu() -> None:
    """The kernel for matrix products is registered for the CPU, too, where it finds no device."""

    def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left.new_zeros(left.shape[0], right.shape[1])

    _library.impl("mm", product, "CPU")


@lie("SMOKE-002", "smoke/descriptor_names", planted=True)
def what_delays_was_renamed() -> None:
    """The callable that keeps a stream busy has another name than the descriptor says."""
    module = torch.get_device_module(BACKEND)
    module._delay = module._sleep_ms
    del module._sleep_ms


@lie("SMOKE-002", "smoke/descriptor_capabilities", planted=True)
def free_memory_is_claimed_to_be_known() -> None:
    """Free and total memory are declared to be known, but asking for them raises."""

    def refuse(*_: Any) -> Any:
        raise NotImplementedError("memory info is not implemented")

    torch.accelerator.get_memory_info = refuse


@lie("SMOKE-003", "smoke/roundtrip_strided")
def copies_to_the_device_forget_strides(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor that is not contiguous is copied to the device in the order of its memory."""
    result = call(*args, **kwargs)
    if name == "_to_copy" and args[0].device.type == "cpu" and not args[0].is_contiguous():
        size = args[0].size()
        result.copy_(args[0].as_strided(size, torch.empty(size, device="meta").stride()))
    return result
