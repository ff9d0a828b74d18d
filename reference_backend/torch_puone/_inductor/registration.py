# SPDX-License-Identifier: BSD-3-Clause
"""What inductor knows of the device, all in one place."""

from __future__ import annotations

import functools

import torch
from torch._inductor.codegen.common import (
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

from . import lowering
from .identity import Identity
from .scheduling import PuoneScheduling
from .wrapper import DeviceOperations, PuoneWrapper


@functools.cache
def register() -> None:
    device = torch._C._get_privateuse1_backend_name()
    register_device_op_overrides(device, DeviceOperations())
    register_backend_for_device(
        device,
        PuoneScheduling,
        PuoneWrapper,
        device_fx_wrapper_codegen=WrapperFxCodegen,
        device_custom_pass=Identity(),
    )
    lowering.leave_to_operators(device)
    lowering.compute_on(device)
    lowering.leave_types_to_operators(device)
    lowering.call_pow_with_numbers(device)
    lowering.call_addcmul_with_a_number(device)
    lowering.keep_layouts(device)
    lowering.count_positions_in_order(device)
    lowering.store_what_is_costly(device)
