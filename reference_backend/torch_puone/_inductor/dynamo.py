# SPDX-License-Identifier: BSD-3-Clause
"""The device as Dynamo sees it, and inductor through it."""

from __future__ import annotations

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

import torch_puone
from torch_puone import _C


def raw_stream(device_idx: int) -> int:
    """The driver's handle of the current stream, which PyTorch's annotations do not have."""
    # An attribute of this backend's own class; the annotation says torch.Stream.
    return torch_puone.current_stream(device_idx).native_handle  # type: ignore[attr-defined]


class PuoneInterface(DeviceInterface):
    """The functions of the device module under the names that Dynamo has for them."""

    device = torch_puone.device
    Event = torch_puone.Event
    Stream = torch_puone.Stream

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
    stream = staticmethod(torch_puone.stream)
    current_stream = staticmethod(torch_puone.current_stream)
    set_stream = staticmethod(torch_puone.set_stream)
    synchronize = staticmethod(torch_puone.synchronize)
    memory_allocated = staticmethod(torch_puone.memory_allocated)
    get_raw_stream = staticmethod(raw_stream)

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


def register() -> None:
    """What Dynamo asks about the device while it traces."""
    device = torch._C._get_privateuse1_backend_name()
    register_interface_for_device(device, PuoneInterface)
    for index in range(torch_puone.device_count()):
        register_interface_for_device(f"{device}:{index}", PuoneInterface)
    for function in (torch_puone.device_count, torch_puone.is_available):
        torch.compiler.assume_constant_result(function)
    torch.compiler.allow_in_graph(torch_puone.stream)  # Dynamo has a context for it
    _register_generator_states(device)
    # A torch.Stream in the place of a subclass of it, which the type of the decorator excludes.
    substitute = torch.compiler.substitute_in_graph(torch_puone.current_stream)
    substitute(_current_stream)  # type: ignore[arg-type]


def _register_generator_states(device: str) -> None:
    """So that a backward pass repeats what a checkpoint drew. PyTorch 2.13 asks devices for it."""
    from torch._functorch._aot_autograd import utils

    if hasattr(utils, "register_graphsafe_rng_device_type"):
        utils.register_graphsafe_rng_device_type(device)


def _current_stream(device: torch.types.Device = None) -> torch.Stream:
    """The one that Dynamo knows, which follows the contexts of the graph."""
    if device is None:
        return torch.accelerator.current_stream()
    return torch.accelerator.current_stream(torch.device(device))
