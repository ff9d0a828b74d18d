# SPDX-License-Identifier: BSD-3-Clause
"""The module `torch.<type>`: found by each way, and its devices, streams, memory and state."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.registration._members import Member, is_index, none, verify_member

_MODULE: dict[str, Callable[[str], Any]] = {
    "attribute": lambda type: getattr(torch, type),
    "by_string": torch.get_device_module,
    "by_device": lambda type: torch.get_device_module(torch.device(type)),
    "by_index": lambda type: torch.get_device_module(torch.device(type, 0)),
    "importable": lambda type: sys.modules.get(f"torch.{type}"),
}


@check("registration/module", "REG-010", cases=_MODULE)
def device_module_is_registered(dev: Device, case: str) -> None:
    """torch.<type> exists, and get_device_module and `import torch.<type>` agree on it."""
    module = getattr(torch, dev.type, None)
    assert module is not None, f"torch has no attribute {dev.type!r}"
    assert _MODULE[case](dev.type) is module


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_stream(value: Any) -> bool:
    return isinstance(value, torch.Stream)


_ENUMERATION: dict[str, Member] = {
    "device_count": (lambda m: m.device_count(), lambda v: is_index(v) and v >= 1),
    "is_available": (lambda m: m.is_available(), lambda v: v is True),
    "current_device": (lambda m: m.current_device(), is_index),
    "set_device": (lambda m: m.set_device(m.current_device()), none),
    "device": (lambda m: m.device(0), lambda v: hasattr(v, "__enter__") and hasattr(v, "__exit__")),
}
_STREAMS: dict[str, Member] = {
    "stream_class": (lambda m: m.Stream(), _is_stream),
    "event_class": (lambda m: m.Event(), lambda v: isinstance(v, torch.Event)),
    "current_stream": (lambda m: m.current_stream(), _is_stream),
    "current_stream_of": (lambda m: m.current_stream(0), _is_stream),
    "default_stream": (lambda m: m.default_stream(), _is_stream),
    "default_stream_of": (lambda m: m.default_stream(0), _is_stream),
    "set_stream": (lambda m: m.set_stream(m.current_stream()), none),
    "stream": (lambda m: m.stream(m.current_stream()), lambda v: hasattr(v, "__enter__")),
    "synchronize": (lambda m: m.synchronize(), none),
    "synchronize_device": (lambda m: m.synchronize(0), none),
}
_DESCRIPTION: dict[str, Member] = {
    "get_device_name": (lambda m: m.get_device_name(0), _is_text),
    "get_device_name_current": (lambda m: m.get_device_name(), _is_text),
    "get_device_properties": (
        lambda m: m.get_device_properties(0),
        lambda v: _is_text(v.name) and v.total_memory > 0,
    ),
    "get_device_capability": (lambda m: m.get_device_capability(0), lambda v: v is not None),
}
_MEMORY: dict[str, Member] = {
    "memory_allocated": (lambda m: m.memory_allocated(), is_index),
    "max_memory_allocated": (lambda m: m.max_memory_allocated(), is_index),
    "memory_reserved": (lambda m: m.memory_reserved(), is_index),
    "max_memory_reserved": (lambda m: m.max_memory_reserved(), is_index),
    "memory_stats": (lambda m: m.memory_stats(), lambda v: "allocated_bytes.all.current" in v),
    "memory_summary": (lambda m: m.memory_summary(), _is_text),
    "reset_peak_memory_stats": (lambda m: m.reset_peak_memory_stats(), none),
    "reset_accumulated_memory_stats": (lambda m: m.reset_accumulated_memory_stats(), none),
    "mem_get_info": (
        lambda m: m.mem_get_info(),
        lambda v: len(v) == 2 and 0 <= v[0] <= v[1] and v[1] > 0,
    ),
    "empty_cache": (lambda m: m.empty_cache(), none),
}
_STATE: dict[str, Member] = {
    "is_initialized": (lambda m: m.is_initialized(), lambda v: v is True),
    "init": (lambda m: m.init(), none),
    "init_twice": (lambda m: (m.init(), m.init())[1], none),
    "lazy_call": (lambda m: m._lazy_call(lambda: None), none),
}


@check("registration/enumeration", "REG-011", cases=tuple(_ENUMERATION), needs=("accelerator",))
def module_enumerates_devices(dev: Device, case: str) -> None:
    """torch.<type> offers the functions to count, query and choose devices."""
    verify_member(dev, _ENUMERATION, case)


@check("registration/streams", "REG-012", cases=tuple(_STREAMS), needs=("streams",))
def module_offers_streams(dev: Device, case: str) -> None:
    """torch.<type> offers streams and events under their conventional names."""
    verify_member(dev, _STREAMS, case)


@check("registration/description", "REG-013", cases=tuple(_DESCRIPTION), needs=("accelerator",))
def module_describes_devices(dev: Device, case: str) -> None:
    """torch.<type> describes a device by name, properties and capability."""
    verify_member(dev, _DESCRIPTION, case)


@check("registration/memory", "REG-014", cases=tuple(_MEMORY), needs=("memory_stats",))
def module_reports_memory(dev: Device, case: str) -> None:
    """torch.<type> reports and manages memory under the conventional names."""
    verify_member(dev, _MEMORY, case)


@check("registration/state", "REG-017", cases=tuple(_STATE), needs=("accelerator",))
def module_tells_its_state(dev: Device, case: str) -> None:
    """torch.<type> tells whether it is initialised, and initialising it again is harmless."""
    verify_member(dev, _STATE, case)


@check("registration/lazy_call", "REG-017", needs=("accelerator",))
def lazy_call_runs_once_initialised(dev: Device) -> None:
    """A function given to _lazy_call after initialisation runs, and runs once."""
    torch.empty(1, device=dev.device())
    calls: list[int] = []
    dev.module._lazy_call(lambda: calls.append(1))
    torch.empty(1, device=dev.device())
    assert calls == [1], f"the function ran {len(calls)} times"
