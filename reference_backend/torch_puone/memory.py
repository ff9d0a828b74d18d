# SPDX-License-Identifier: BSD-3-Clause
"""What the caching allocators hold, and how to make them hold less. Sizes are bytes."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from torch.types import Device

from . import _C
from ._lazy import _lazy_init, is_initialized
from ._registration import NAME
from ._utils import _get_device_index

#: What `set_per_process_memory_fraction()` has set, by device.
_fractions: dict[int, float] = {}


def empty_cache() -> None:
    """Give cached device memory that nobody uses back to the driver."""
    if is_initialized():
        _C.empty_cache()


def ipc_collect() -> None:
    """Release memory that was sent to other processes, where those are done with it or have ended.

    An allocation that finds no cached memory does the same. As torch.cuda.ipc_collect.
    """
    if is_initialized():
        _C.collect_sent_storages()


def host_empty_cache() -> None:
    """Give cached pinned host memory that nobody uses back to the driver."""
    if is_initialized():
        _C.host_empty_cache()


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """`memory_stats()` as nested dictionaries; empty before the device is initialised."""
    if not is_initialized():
        return {}
    return _C.memory_stats(_get_device_index(device, optional=True))


def memory_stats(device: Device = None) -> OrderedDict[str, Any]:
    """Statistics of the device allocator under the keys that torch.accelerator uses.

    "{allocation,segment,active,inactive_split}" count blocks, the same with "_bytes" and
    "reserved_bytes", "requested_bytes" count bytes; each is followed by
    ".{all,large_pool,small_pool}.{current,peak,allocated,freed}". Counters such as "num_ooms" and
    "num_alloc_retries" stand by themselves.
    """
    return OrderedDict(sorted(_flatten(memory_stats_as_nested_dict(device))))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """`host_memory_stats()` as nested dictionaries; empty before the device is initialised."""
    return _C.host_memory_stats() if is_initialized() else {}


def host_memory_stats() -> OrderedDict[str, Any]:
    """Statistics of the pinned host memory allocator, under torch.cuda's keys.

    Blocks and bytes are followed by ".{current,peak,allocated,freed}". "host_alloc_time" and
    "host_free_time", the time in the driver, are in microseconds and followed by
    ".{total,max,min,count,avg}".
    """
    return OrderedDict(sorted(_flatten(host_memory_stats_as_nested_dict())))


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors occupy now."""
    return int(memory_stats(device).get("allocated_bytes.all.current", 0))


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes that tensors occupied since the start or `reset_peak_memory_stats()`."""
    return int(memory_stats(device).get("allocated_bytes.all.peak", 0))


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds now, in use or cached."""
    return int(memory_stats(device).get("reserved_bytes.all.current", 0))


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes that the allocator held since the start or `reset_peak_memory_stats()`."""
    return int(memory_stats(device).get("reserved_bytes.all.peak", 0))


def reset_peak_memory_stats(device: Device = None) -> None:
    """Start the peaks again at the current values."""
    _lazy_init()
    _C.reset_peak_memory_stats(_get_device_index(device, optional=True))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Start the totals ("allocated", "freed") and the counters again at zero."""
    _lazy_init()
    _C.reset_accumulated_memory_stats(_get_device_index(device, optional=True))


def reset_max_memory_allocated(device: Device = None) -> None:
    """Older name of `reset_peak_memory_stats()`."""
    reset_peak_memory_stats(device)


def reset_max_memory_reserved(device: Device = None) -> None:
    """Older name of `reset_peak_memory_stats()`."""
    reset_peak_memory_stats(device)


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as its driver sees them."""
    _lazy_init()
    return _C.mem_get_info(_get_device_index(device, optional=True))


def device_memory_used(device: Device = None) -> int:
    """Bytes of the device that are in use, by this process and others, as its driver sees them."""
    free, total = mem_get_info(device)
    return total - free


def memory_snapshot() -> list[dict[str, Any]]:
    """Every segment of every device's allocator, with its blocks.

    Blocks have the Python stack that allocated them if `_record_memory_history()` is on.
    """
    return _C.memory_snapshot() if is_initialized() else []


def _record_memory_history(
    enabled: Literal["state", "all"] | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: Literal["python", "all"] = "all",
    max_entries: int = sys.maxsize,
    device: Device = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Sequence[str] | None = None,
) -> None:
    """Record what is allocated and freed, and where in the program, until the next call.

    The arguments are those of `torch.cuda.memory._record_memory_history`, which documents them.
    All devices are recorded, whatever `device` is. Thread-safe.

    Args:
        enabled: None stops; "state" keeps the stacks of what is allocated; "all" also keeps a
            history of the last `max_entries` allocations and frees.
        context: what has a stack: None nothing, "state" what is allocated, "alloc" also entries of
            allocations in the history, "all" also frees.
        stacks: "python", or "all" for C++ frames, too, which take long to look up.
        clear_history: forget what was recorded before.
        skip_actions: kinds of entries that are not kept, such as "free_requested".

    Raises NotImplementedError for `compile_context` and `global_record_annotations`.
    """
    if compile_context or global_record_annotations:
        raise NotImplementedError(
            f"{NAME} records neither compile contexts nor annotations in the memory history"
        )
    _lazy_init()
    _C.record_memory_history(
        enabled, context, stacks, max_entries, clear_history, list(skip_actions or ())
    )


def _snapshot(device: Device = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Segments and history of all devices, in the format of `torch.cuda.memory._snapshot`.

    What reads that reads this: `torch.cuda._memory_viz`, and https://pytorch.org/memory_viz after
    `_dump_snapshot()`. With `augment_with_fx_traces` frames of FX code name its original source.
    """
    if not is_initialized():
        return {
            "segments": [],
            "device_traces": [],
            "allocator_settings": {},
            "external_annotations": [],
        }
    snapshot = _C.whole_memory_snapshot()
    if augment_with_fx_traces:
        from torch._utils import _augment_memory_snapshot_stack_traces

        return _augment_memory_snapshot_stack_traces(snapshot)  # type: ignore[arg-type,return-value]
    return snapshot


def _dump_snapshot(
    filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Write `_snapshot()` to a file that https://pytorch.org/memory_viz opens."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(augment_with_fx_traces=augment_with_fx_traces), file)


def attach_out_of_memory_observer(observer: Callable[[int, int, int, int], object]) -> None:
    """Call `observer(device, size, total, free)` before each OutOfMemoryError, from now on.

    `size` is that of the failed request, `total` what the allocator may take, `free` what the
    driver has; all in bytes. It runs on the thread that allocates, and may free memory or dump a
    snapshot. An exception in it is reported and does not replace the OutOfMemoryError. As CUDA's
    `torch._C._cuda_attach_out_of_memory_observer`.
    """
    _lazy_init()
    _C.attach_out_of_memory_observer(observer)


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Let the allocator take at most this part, in (0, 1], of the device's memory."""
    if not isinstance(fraction, float):
        raise TypeError(f"fraction must be a float, but got {type(fraction).__name__}")
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1], but got {fraction}")
    _lazy_init()
    index = _get_device_index(device, optional=True)
    _C.set_memory_fraction(fraction, index)
    _fractions[index] = fraction


def get_per_process_memory_fraction(device: Device = None) -> float:
    """The part of the device's memory that the allocator may take; 1.0 unless it was set."""
    _lazy_init()
    index = _get_device_index(device, optional=True)
    mem_get_info(index)  # which checks it
    return _fractions.get(index, 1.0)


# (key of memory_stats, what people call it, whether it counts bytes)
_SUMMARY_ROWS = (
    ("allocated_bytes", "Allocated memory", True),
    ("active_bytes", "Active memory", True),
    ("requested_bytes", "Requested memory", True),
    ("reserved_bytes", "Reserved memory", True),
    ("inactive_split_bytes", "Non-releasable memory", True),
    ("allocation", "Allocations", False),
    ("active", "Active allocations", False),
    ("segment", "Segments", False),
    ("inactive_split", "Non-releasable blocks", False),
)
_SUMMARY_METRICS = ("current", "peak", "allocated", "freed")


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The allocator's statistics as a table; `abbreviated` leaves the single pools out."""
    _lazy_init()
    index = _get_device_index(device, optional=True)
    stats = memory_stats(index)
    header = f"{'metric':<24}" + "".join(f"{metric:>14}" for metric in _SUMMARY_METRICS)
    lines = [
        f"puone memory summary, device {index}: "
        f"{stats.get('num_ooms', 0)} out-of-memory errors, "
        f"{stats.get('num_alloc_retries', 0)} retries after emptying the cache",
        header,
        "-" * len(header),
    ]
    for key, label, is_bytes in _SUMMARY_ROWS:
        for pool in ("all",) if abbreviated else ("all", "large_pool", "small_pool"):
            name = label if pool == "all" else f"  {pool.replace('_', ' ')}"
            values = (stats.get(f"{key}.{pool}.{metric}", 0) for metric in _SUMMARY_METRICS)
            cells = (_bytes(value) if is_bytes else str(value) for value in values)
            lines.append(f"{name:<24}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines) + "\n"


def _bytes(count: float) -> str:
    if count < 1024:
        return f"{count} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"


def _flatten(stats: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in stats.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
