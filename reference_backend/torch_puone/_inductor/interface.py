# SPDX-License-Identifier: BSD-3-Clause
"""The device as Dynamo and inductor see it."""

from __future__ import annotations

import torch
from torch._dynamo.device_interface import DeviceInterface
from torch._inductor.codegen.common import DeviceOpOverrides

import torch_puone
from torch_puone import _C


class PuoneInterface(DeviceInterface):
    """The functions of the device module under the names that Dynamo has for them."""

    device = torch_puone.device  # type: ignore[assignment]
    Event = torch_puone.Event  # type: ignore[assignment]
    Stream = torch_puone.Stream  # type: ignore[assignment]

    class Worker:
        """The same, where inductor compiles."""

        set_device = staticmethod(torch_puone.set_device)
        current_device = staticmethod(torch_puone.current_device)
        get_device_properties = staticmethod(torch_puone.get_device_properties)

    current_device = staticmethod(torch_puone.current_device)
    set_device = staticmethod(torch_puone.set_device)
    exchange_device = staticmethod(torch_puone._exchange_device)
    maybe_exchange_device = staticmethod(torch_puone._maybe_exchange_device)
    device_count = staticmethod(torch_puone.device_count)
    is_available = staticmethod(torch_puone.is_available)
    stream = staticmethod(torch_puone.stream)  # type: ignore[assignment]
    current_stream = staticmethod(torch_puone.current_stream)
    set_stream = staticmethod(torch_puone.set_stream)  # type: ignore[assignment]
    synchronize = staticmethod(torch_puone.synchronize)
    memory_allocated = staticmethod(torch_puone.memory_allocated)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return torch_puone.current_stream(device_idx).native_handle

    @staticmethod
    def get_compute_capability(device: torch.types.Device = None) -> str:
        index = torch.device(device).index if device is not None else None
        return _C.module_target(torch_puone.current_device() if index is None else index)[0]

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @staticmethod
    def is_gpu() -> bool:
        """Inductor takes it for "has Triton"."""
        return False

    @staticmethod
    def exposes_streams() -> bool:
        return True


class DeviceOperations(DeviceOpOverrides):
    """Lines of generated Python that concern the device."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"from torch_puone._inductor.runtime import raw_stream as {name}"

    def set_device(self, device_idx: int) -> str:
        return f"torch.puone.set_device({device_idx})"

    def synchronize(self) -> str:
        return "torch.puone.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.puone.device({device_idx})"

    def current_stream(self) -> str:
        return "torch.puone.current_stream()"
