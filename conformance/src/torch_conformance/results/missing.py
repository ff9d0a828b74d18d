# SPDX-License-Identifier: BSD-3-Clause
"""What a message of PyTorch or of Python says is missing in the backend."""

from __future__ import annotations

import re
from typing import NamedTuple

# What kinds of things there are.
OPERATOR, AUTOCAST, DTYPE, FUNCTION = "operator", "autocast", "dtype", "function"
HOOK, GUARD, ALLOCATOR, CAPABILITY = "hook", "guard", "allocator", "capability"

# Functions of torch.<type> that PyTorch and its users call. A missing attribute of another name is
# a mistake inside of the backend.
FUNCTIONS = frozenset(
    (
        *("device_count", "is_available", "current_device", "set_device", "device", "device_of"),
        *("Stream", "Event", "stream", "current_stream", "default_stream", "set_stream"),
        *("synchronize", "get_device_name", "get_device_properties", "get_device_capability"),
        *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
        *("memory_stats", "memory_summary", "mem_get_info", "empty_cache"),
        *("reset_peak_memory_stats", "reset_accumulated_memory_stats"),
        *("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed"),
        *("get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all"),
        *("default_generators", "is_initialized", "init", "_lazy_call", "_lazy_init"),
        *("_is_in_bad_fork", "is_bf16_supported", "get_amp_supported_dtype"),
    )
)

# Methods of the guard by what their default implementations say that the backend does not support.
GUARD_METHODS = {
    "acquiring a default stream": "getDefaultStream",
    "acquiring a stream from pool": "getStreamFromGlobalPool",
    "create a new Stream": "getNewStream",
    "getting stream native handle": "getStreamNativeHandle",
    "events": "record, block, queryEvent and destroyEvent",
    "getting device capabilities": "getDeviceCapability",
    "querying streams": "queryStream",
    "synchronizing streams": "synchronizeStream",
    "synchronizing events": "synchronizeEvent",
    "synchronizing all streams on device": "synchronizeDevice",
    "elapsedTime": "elapsedTime",
}


# What a message says is missing: pattern, kind, and the name with the groups of the match.
SIGNS = (
    (r"from the 'Autocast\w+' backend", AUTOCAST, "dispatch key AutocastPrivateUse1"),
    (r"Could not run '(aten::[\w.]+)'", OPERATOR, "{0}"),
    (r"fallback function is registered for schema (aten::\w+(?:\.\w+)?)", OPERATOR, "{0}"),
    (r"\b(\w+_overrideable) not implemented", OPERATOR, "aten::{0}"),
    (r"\"(\w+)\" not implemented for '(\w+)'", DTYPE, "{0} for {1}"),
    (r"Try to call torch\.\w+\.(\w+)\. The backend must register", FUNCTION, "{0}"),
    (r"module miss some necessary func", FUNCTION, "get_amp_supported_dtype"),
    (r"(?:module|type object) '[\w.]+' has no attribute '(\w+)'", FUNCTION, "{0}"),
    (r"'[\w.]*Module\w*' object has no attribute '(\w+)'", FUNCTION, "{0}"),
    (r"RegisterPrivateUse1HooksInterface`\s*and implement `(\w+)`", HOOK, "{0}"),
    (r"Backend doesn't support ([\w ]+)\.", GUARD, "{0}"),
    (r"Allocator for \w+ is not a DeviceAllocator", ALLOCATOR, "c10::DeviceAllocator"),
)
# A message begins with what is wrong. Some are a flood of text, in which patterns take long.
READ_UP_TO = 4_000
_SIGNS = [(re.compile(pattern), kind, name) for pattern, kind, name in SIGNS]


class Missing(NamedTuple):
    """Something that is not implemented."""

    kind: str
    name: str


def read(message: str) -> Missing | None:
    """The first thing that a message says is missing."""
    for pattern, kind, name in _SIGNS:
        match = pattern.search(message, 0, READ_UP_TO)
        if match:
            text = name.format(*match.groups())
            if kind == FUNCTION and text not in FUNCTIONS:
                continue
            return Missing(kind, GUARD_METHODS.get(text, text) if kind == GUARD else text)
    return None
