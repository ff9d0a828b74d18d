# SPDX-License-Identifier: BSD-3-Clause
"""What a backend may be able to do, in one word each, and what a run knows about it.

A capability is present, absent or broken. What needs an absent capability is not asked. What needs
a broken one fails: the backend offers the capability, and it does not work.

A new capability is an entry here and its probe in `running/capability_probes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

MEANING: dict[str, str] = {
    "accelerator": "the device is not the CPU",
    "privateuse1": "the backend is reached through the PrivateUse1 dispatch key",
    "multi_device": "two devices or more that can be used",
    "streams": "torch.Stream objects whose work runs in order, next to each other",
    "stream_priorities": "streams of different priority",
    "events": "torch.Event can be recorded on a stream, waited for and queried",
    "event_timing": "events with timing measure elapsed time",
    "delay": "work that keeps a stream busy for a given time can be queued",
    "async_copy": "a copy with non_blocking=True returns before the work queued ahead of it ran",
    "pinned_memory": "host memory can be pinned",
    "record_stream": "Tensor.record_stream keeps memory from being reused too early",
    "memory_stats": "torch.accelerator.memory_allocated and memory_stats count",
    "memory_info": "free and total device memory can be asked for",
    "empty_cache": "the caching allocator can give its memory back on request",
    "memory_limit": "running out of device memory can be provoked cheaply",
    "allocator_settings": "the allocator takes settings from the standard configuration string",
    "memory_protected": "a host dereference of device memory faults",
    "device_guard": "the current device can be read and set",
    "synchronize": "torch.accelerator.synchronize waits for the work of a device",
    "addresses": "Tensor.data_ptr is an address, and no handle of memory that is elsewhere",
    "storages": "Tensor.untyped_storage gives the storage of a tensor",
    "plain_tensors": "tensors are of the class torch.Tensor, and not of a subclass of it",
    "storage_allocation": "torch.UntypedStorage(n, device=...) gets memory from the allocator",
    "storage_resize": "UntypedStorage.resize_ changes the memory behind its tensors",
    "generator": "torch.Generator on the device",
    "generator_offset": "the generator's offset can be read and set",
    "capability_query": "torch.accelerator.get_device_capability tells the supported dtypes",
    "autocast": "torch.autocast supports the device type",
    "serialization": "tensors can be saved and loaded",
    "backend_meta": "tensors carry metadata of the backend (c10::BackendMeta), and hooks save it",
    "fork": "a process that has imported torch can fork and use the device in the child",
    "threads": "the device can be used from several threads",
    "autoload": "`import torch` alone loads the backend through its entry point",
    "deferred_errors": "an error in queued work surfaces at a later synchronisation",
    "error_recovery": "a device goes on after an error of its work, a bad index say, was raised",
    "peer_copy": "tensors can be copied from one device to another",
    "native_handle": "a stream gives its native handle",
    "collectives": "processes exchange tensors of the device through torch.distributed",
    "ipc": "processes use the same tensors of the device through torch.multiprocessing",
    "profiler": "torch.profiler records the work of the device",
    "memory_history": "the device module records allocations (memory._record_memory_history)",
    "graphs": "torch.accelerator.Graph captures work of a stream and replays it",
    "compile": "torch.compile with its default backend generates code for the device",
    "sparse": "tensors of sparse layouts",
    "float64": "tensors of float64",
    "float16": "tensors of float16",
    "bfloat16": "tensors of bfloat16",
    "complex64": "tensors of complex64",
    "complex128": "tensors of complex128",
    "fallback_counter": "the backend counts operators that ran by CPU fallback",
    "fault_injection": "faults of the device can be injected",
}

#: What PyTorch says when the storage or the address of a tensor is asked for that has none.
NO_STORAGE = (
    r"[Cc]annot access (data pointer|storage) of|doesn't have storage|on an invalid python storage"
)

#: Capabilities whose probes take seconds; that is so where an interpreter has to import torch. They
#: are probed if a selected check declares in `needs` that it needs them; checks cannot ask for them
#: while they run.
COSTLY = frozenset({"compile", "error_recovery", "fork", "profiler"})

#: What PyTorch says when a backend has no function to wait for a whole device.
NO_SYNCHRONIZE = r"doesn't support synchronizing all streams on device"

#: Capabilities that the suite can use only through a key of the descriptor.
KEYS: dict[str, str] = {
    "delay": "delay",
    "fallback_counter": "fallback_counts",
    "fault_injection": "fault",
    "backend_meta": "backend_meta",
}


class State(str, Enum):
    """What is known about a capability of a backend."""

    PRESENT = "present"
    ABSENT = "absent"
    BROKEN = "broken"

    def __str__(self) -> str:
        return self.value


class Stated(Protocol):
    """What a report says of a capability."""

    @property
    def value(self) -> bool: ...
    @property
    def broken(self) -> str | None: ...


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a backend; what is not in here is absent."""

    present: frozenset[str] = frozenset()
    broken: Mapping[str, str] = field(default_factory=dict)
    """Name of the capability and what its probe saw."""

    @classmethod
    def of(cls, table: Mapping[str, Stated]) -> Capabilities:
        """From the table of a report."""
        return cls(
            frozenset(name for name, entry in table.items() if entry.value),
            {name: entry.broken for name, entry in table.items() if entry.broken},
        )

    def state(self, name: str) -> State:
        """What is known about one capability."""
        if name in self.present:
            return State.PRESENT
        return State.BROKEN if name in self.broken else State.ABSENT


#: How `describe_broken` begins: the same for all checks that need the capability.
BROKEN = re.compile(r"capability '\w+' is broken: ")


def describe_broken(name: str, seen: str) -> str:
    """The failure of a check that needs a broken capability."""
    return f"capability {name!r} is broken: {seen}"
