# SPDX-License-Identifier: BSD-3-Clause
"""The Python module behind `torch.puone`: a reference backend for PyTorch's PrivateUse1 device.

Importing the package is all there is to do. It may be imported before torch, after it, or by torch
itself through the `torch.backends` entry point, and works on a machine without a device, where
`is_available()` is False. No device is touched until something needs one.
"""

# ruff: noqa: E402, F401 - the order matters; private names are part of the contract


def _autoload() -> None:
    """What `import torch` calls to find this backend: nothing is left to do once we are imported.

    Defined before torch is imported, because a program may import this package first: then
    `import torch` below loads the entry point while this module has only run up to there.
    """


import typing

import torch

from . import _registration

_registration.claim_name()

from . import (
    _C,
    _exit,
    _inductor,
    _multiprocessing,
    _utils,
    amp,
    faults,
    graphs,
    interop,
    memory,
    random,
    sanitizer,
    streams,
    tensor_tags,
)
from ._diagnostics import _fallback_counts, _reset_fallback_counts, _sleep_ms, driver_info
from ._inductor import register as _inductor_backend_init  # PyTorch 2.15 calls it
from ._lazy import _is_in_bad_fork, _lazy_call, _lazy_init, init, is_initialized
from ._version import __version__
from .amp import get_amp_supported_dtype, is_bf16_supported
from .devices import (
    _exchange_device,
    _maybe_exchange_device,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_tf32_supported,
    set_device,
    synchronize,
)
from .graphed_callables import make_graphed_callables
from .graphs import PUONEGraph, graph, graph_pool_handle, is_current_stream_capturing
from .memory import (
    device_memory_used,
    empty_cache,
    get_per_process_memory_fraction,
    host_empty_cache,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    ipc_collect,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    _get_generator,
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from .tensor_tags import _attach_backend_meta, get_tensor_tags, set_tensor_tags

OutOfMemoryError = torch.OutOfMemoryError
AcceleratorError = torch.AcceleratorError


if not typing.TYPE_CHECKING:  # to a type checker it would mean that every name is there

    def __getattr__(name: str) -> object:
        # torch.utils.checkpoint reads `_initialized` to decide whether the device has a random
        # state to save; it must be the state of now, not a copy taken at import.
        if name == "_initialized":
            return is_initialized()
        if name in _inductor.NAMES:
            return _inductor.register()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # Not what this module itself imports, such as torch.
    return sorted([*__all__, *(name for name in globals() if name.startswith("_"))])


_registration.register()
_inductor.follow_dynamo()
_multiprocessing.register()
sanitizer._enable_from_environment()

__all__ = [
    "AcceleratorError",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "PUONEGraph",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "driver_info",
    "empty_cache",
    "faults",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_tensor_tags",
    "graph",
    "graph_pool_handle",
    "graphs",
    "host_empty_cache",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "interop",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "sanitizer",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_tensor_tags",
    "stream",
    "streams",
    "synchronize",
    "tensor_tags",
]
