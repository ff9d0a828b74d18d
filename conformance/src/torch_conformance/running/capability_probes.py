# SPDX-License-Identifier: BSD-3-Clause
"""How to find out what a backend is able to do.

A descriptor declares a capability true or false; one that it leaves open is probed in a worker and
reported as probed. A probe returns whether the capability is there; raising, crashing or hanging
means that it is not.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

from torch_conformance.spec.capabilities import MEANING

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device

Probe = Callable[["Device"], bool]
PROBES: dict[str, Probe] = {}


def probe(name: str) -> Callable[[Probe], Probe]:
    """Register the function that finds out whether a backend has capability `name`."""
    if name not in MEANING:
        raise ValueError(f"unknown capability {name!r}")

    def register(function: Probe) -> Probe:
        PROBES[name] = function
        return function

    return register


@probe("accelerator")
def _accelerator(dev: Device) -> bool:
    return dev.is_accelerator


@probe("privateuse1")
def _privateuse1(dev: Device) -> bool:
    import torch

    return torch._C._get_privateuse1_backend_name() == dev.type


@probe("multi_device")
def _multi_device(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator or dev.count < 2:
        return False
    # Some count what there could be. That every counted device works is a requirement of its own.
    return torch.ones(2, device=dev.device(1)).cpu().tolist() == [1.0, 1.0]


@probe("streams")
def _streams(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    stream = dev.stream()
    with stream:
        stream.synchronize()
    return dev.current_stream() != stream


@probe("stream_priorities")
def _stream_priorities(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    dev.stream(priority=-1).synchronize()
    return _streams(dev)


@probe("events")
def _events(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    event = dev.event()
    event.record(dev.current_stream())
    event.synchronize()
    return bool(event.query())


@probe("event_timing")
def _event_timing(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    start, end = dev.event(timing=True), dev.event(timing=True)
    start.record(dev.current_stream())
    end.record(dev.current_stream())
    end.synchronize()
    return start.elapsed_time(end) >= 0.0


@probe("delay")
def _delay(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    stream = dev.stream()
    with stream:
        dev.delay(50.0)
        busy = not stream.query()
    stream.synchronize()
    return busy


@probe("async_copy")
def _async_copy(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    source = torch.ones(4).pin_memory()
    target = torch.empty(4, device=dev.device())
    stream = dev.stream()
    with stream:
        dev.delay(100.0)
        begin = time.monotonic()
        target.copy_(source, non_blocking=True)
        waited = time.monotonic() - begin
    stream.synchronize()
    return waited < 0.05


@probe("pinned_memory")
def _pinned_memory(dev: Device) -> bool:
    import torch

    return dev.is_accelerator and torch.empty(1, pin_memory=True).is_pinned()


@probe("record_stream")
def _record_stream(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch.empty(1, device=dev.device()).record_stream(dev.stream())
    return True


@probe("memory_stats")
def _memory_stats(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    before = torch.accelerator.memory_allocated(0)
    kept = torch.empty(1 << 20, dtype=torch.uint8, device=dev.device(0))
    grown = torch.accelerator.memory_allocated(0) - before
    return grown >= kept.numel() and bool(torch.accelerator.memory_stats(0))


@probe("memory_info")
def _memory_info(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    free, total = torch.accelerator.get_memory_info(0)
    return 0 <= free <= total and total > 0


@probe("empty_cache")
def _empty_cache(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch.accelerator.empty_cache()
    return True


@probe("allocator_settings")
def _allocator_settings(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch._C._accelerator_setAllocatorSettings("")
    return True


@probe("memory_protected")
def _memory_protected(dev: Device) -> bool:
    import torch

    from torch_conformance.authoring.device import run_forked

    if not dev.is_accelerator or not hasattr(os, "fork"):
        return False
    address = torch.zeros(16, device=dev.device()).data_ptr()

    def dereference() -> None:
        for fatal in (signal.SIGSEGV, signal.SIGBUS):
            signal.signal(fatal, signal.SIG_DFL)
        ctypes.string_at(address, 1)

    status, _ = run_forked(dereference)
    return address != 0 and -status in (signal.SIGSEGV, signal.SIGBUS)


@probe("device_guard")
def _device_guard(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    index = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(index)
    if torch.accelerator.current_device_index() != index:
        return False
    try:
        # A guard that takes any index, as that of backends in Python does, sets nothing.
        torch.accelerator.set_device_index(dev.count)
    except Exception:
        return True
    torch.accelerator.set_device_index(index)
    return False


@probe("synchronize")
def _synchronize(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch.accelerator.synchronize(0)
    return True


@probe("addresses")
def _addresses(dev: Device) -> bool:
    import torch

    alive = [torch.zeros(256, dtype=torch.uint8, device=dev.device()) for _ in range(4)]
    pointers = sorted(x.data_ptr() for x in alive)
    return all(high - low >= 256 for low, high in pairwise(pointers))


@probe("storage_allocation")
def _storage_allocation(dev: Device) -> bool:
    import torch

    return torch.UntypedStorage(8, device=dev.device()).nbytes() == 8


@probe("storage_resize")
def _storage_resize(dev: Device) -> bool:
    import torch

    storage = torch.zeros(8, dtype=torch.uint8, device=dev.device()).untyped_storage()
    storage.resize_(1 << 16)
    return storage.nbytes() == 1 << 16


@probe("generator")
def _generator(dev: Device) -> bool:
    import torch

    return torch.Generator(device=dev.device()).manual_seed(7).initial_seed() == 7


@probe("generator_offset")
def _generator_offset(dev: Device) -> bool:
    import torch

    generator = torch.Generator(device=dev.device())
    generator.set_offset(8)
    return generator.get_offset() == 8


@probe("capability_query")
def _capability_query(dev: Device) -> bool:
    import torch

    return dev.is_accelerator and bool(torch.accelerator.get_device_capability(0))


@probe("autocast")
def _autocast(dev: Device) -> bool:
    import torch

    # is_autocast_available is true of every PrivateUse1; the context raises where there is nothing.
    with torch.autocast(dev.type):
        return torch.is_autocast_enabled(dev.type)


@probe("serialization")
def _serialization(dev: Device) -> bool:
    import io

    import torch

    buffer = io.BytesIO()
    torch.save(torch.ones(2, device=dev.device()), buffer)
    buffer.seek(0)
    return torch.load(buffer).device.type == dev.type


@probe("fork")
def _fork(dev: Device) -> bool:
    return hasattr(os, "fork") and dev.descriptor.start_method == "fork"


@probe("threads")
def _threads(dev: Device) -> bool:
    """PyTorch itself uses threads; a backend that does not bear them has to say so."""
    return True


@probe("autoload")
def _autoload(dev: Device) -> bool:
    return dev.is_accelerator and dev.descriptor.autoload


_RECOVERY = """
import torch
x, beyond = torch.ones(4).to({device!r}), torch.tensor([4]).to({device!r})
try:
    x.index_select(0, beyond).cpu()
except (RuntimeError, IndexError):
    print("goes on:", (torch.ones(4).to({device!r}) + x).cpu().tolist() == [2.0] * 4)
"""


@probe("error_recovery")
def _error_recovery(dev: Device) -> bool:
    # In a process of its own: the error may be the end of the one that has it.
    return "goes on: True" in dev.python(_RECOVERY.format(device=str(dev.device()))).stdout


@probe("peer_copy")
def _peer_copy(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator or dev.count < 2:
        return False
    return torch.ones(2, device=dev.device(0)).to(dev.device(1)).cpu().tolist() == [1.0, 1.0]


@probe("native_handle")
def _native_handle(dev: Device) -> bool:
    return dev.is_accelerator and getattr(dev.stream(), "native_handle", None) is not None


@probe("backend_meta")
def _backend_meta(dev: Device) -> bool:
    import torch

    from torch_conformance.authoring.observe import backend_meta

    if dev.descriptor.backend_meta is None:
        return False
    tensor = torch.ones(2, device=dev.device())
    dev.attach_backend_meta(tensor)
    return bool(backend_meta(tensor))


@probe("sparse")
def _sparse(dev: Device) -> bool:
    import torch

    matrix = torch.eye(2)
    there = matrix.to_sparse().to(dev.device())
    return there.layout is torch.sparse_coo and bool((there.to_dense().cpu() == matrix).all())


def dtype_probe(name: str) -> Probe:
    """Whether tensors of a dtype come back from the device as they went."""

    def has_dtype(dev: Device) -> bool:
        import torch

        if name in dev.descriptor.unsupported_dtypes:
            return False
        dtype = getattr(torch, name)
        value = torch.ones((), dtype=dtype)
        if dtype.is_floating_point or dtype.is_complex:
            # 1 + eps tells a dtype from a narrower one that silently took its place.
            value += torch.finfo(dtype).eps
        back = value.to(dev.device()).cpu()
        return back.dtype == dtype and bool(back == value)

    return has_dtype


for _name in ("float64", "float16", "bfloat16", "complex64", "complex128"):
    probe(_name)(dtype_probe(_name))


@probe("fallback_counter")
def _fallback_counter(dev: Device) -> bool:
    return dev.descriptor.fallback_counts is not None


@probe("fault_injection")
def _fault_injection(dev: Device) -> bool:
    return dev.descriptor.fault is not None
