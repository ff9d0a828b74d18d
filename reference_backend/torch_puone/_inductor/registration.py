# SPDX-License-Identifier: BSD-3-Clause
"""What inductor and Dynamo know of puone, all in one place."""

from __future__ import annotations

import functools

import torch
from torch._dynamo.device_interface import register_interface_for_device
from torch._inductor.codegen.common import (
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

from . import lowering
from .identity import Identity
from .interface import DeviceOperations, PuoneInterface
from .scheduling import PuoneScheduling
from .wrapper import PuoneWrapper


@functools.cache
def register() -> None:
    device = torch._C._get_privateuse1_backend_name()
    register_interface_for_device(device, PuoneInterface)
    for index in range(torch.get_device_module(device).device_count()):
        register_interface_for_device(f"{device}:{index}", PuoneInterface)
    register_device_op_overrides(device, DeviceOperations())
    register_backend_for_device(
        device,
        PuoneScheduling,
        PuoneWrapper,
        device_fx_wrapper_codegen=WrapperFxCodegen,
        device_custom_pass=Identity(),
    )
    lowering.leave_to_operators(device)
