# SPDX-License-Identifier: BSD-3-Clause
"""The counters of memory_stats have their keys, agree with each other, and can be read first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import AT_ONCE, Device, check, ends, tail
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    on_first_device,
    statistics,
)


def _stats_of_five_blocks(dev: Device) -> dict[str, Any]:
    """The statistics of device 0 while five blocks of a thousand bytes live."""
    with on_first_device(dev):
        live = [allocate(dev, 1000) for _ in range(5)]
        stats: dict[str, Any] = torch.accelerator.memory_stats(0)
        del live
    return stats


@check("memory/counters:keys", "MEM-011", needs=("memory_stats",))
def statistics_have_the_documented_keys(dev: Device) -> None:
    """memory_stats has the documented keys."""
    core = ("allocation", "allocated_bytes", "active_bytes", "reserved_bytes", "segment")
    metrics = ("current", "peak", "allocated", "freed")
    wanted = {f"{name}.all.{metric}" for name in core for metric in metrics}
    missing = {*wanted, "num_alloc_retries", "num_ooms"} - set(_stats_of_five_blocks(dev))
    assert not missing, f"missing: {sorted(missing)}"


@check("memory/counters:integers", "MEM-011", needs=("memory_stats",))
def statistics_are_integers(dev: Device) -> None:
    """The counters of memory_stats are integers and not negative."""
    now = _stats_of_five_blocks(dev)
    counters = {k: v for k, v in now.items() if "." in k or k.startswith("num_")}
    wrong = {k: v for k, v in counters.items() if not isinstance(v, int) or v < 0}
    assert counters and not wrong, wrong


@check("memory/counters:difference", "MEM-011", needs=("memory_stats",))
def statistics_agree_with_each_other(dev: Device) -> None:
    """What is current is what was allocated less what was freed."""
    now = _stats_of_five_blocks(dev)
    for name in ("allocation", "allocated_bytes", "reserved_bytes"):
        current = now[f"{name}.all.allocated"] - now[f"{name}.all.freed"]
        assert now[f"{name}.all.current"] == current, name


@check("memory/counters:bounds", "MEM-011", needs=("memory_stats",))
def statistics_are_within_their_bounds(dev: Device) -> None:
    """What is allocated is no more than what is reserved, and neither exceeds its peak."""
    now = _stats_of_five_blocks(dev)
    allocated, reserved = (now[f"{n}_bytes.all.current"] for n in ("allocated", "reserved"))
    assert 5000 <= allocated <= reserved
    assert now["allocated_bytes.all.peak"] >= allocated
    assert now["reserved_bytes.all.peak"] >= reserved


def _counted(name: str) -> int:
    return int(torch.accelerator.memory_stats(0)[f"allocation.all.{name}"])


@check("memory/counters:count_of_blocks", "MEM-011", needs=("memory_stats",))
def statistics_count_the_live_blocks(dev: Device) -> None:
    """The number of current allocations is that of the live blocks."""
    with on_first_device(dev):
        before = _counted("current")
        live = [allocate(dev, 1000) for _ in range(5)]
        assert _counted("current") - before == len(live)
        del live
        assert _counted("current") == before


@check("memory/counters:history", "MEM-011", needs=("memory_stats",))
def statistics_count_what_was_allocated_and_freed(dev: Device) -> None:
    """The history counts each block that was allocated, and each that was freed."""
    with on_first_device(dev):
        allocated, freed = _counted("allocated"), _counted("freed")
        live = [allocate(dev, 1000) for _ in range(5)]
        del live
        assert _counted("allocated") == allocated + 5
        assert _counted("freed") == freed + 5


#: Calls of functions of memory, and what is true of their results before anything is allocated.
_FIRST_USES = {
    "stats": "torch.accelerator.memory_stats() is not None",
    "allocated": "torch.accelerator.memory_allocated() == 0",
    "max_reserved": "torch.accelerator.max_memory_reserved() == 0",
    "reset_peak": "torch.accelerator.reset_peak_memory_stats() is None",
    "reset_accumulated": "torch.accelerator.reset_accumulated_memory_stats() is None",
    "empty_cache": "torch.accelerator.empty_cache() is None",
    "info": "0 <= torch.accelerator.get_memory_info()[0] <= torch.accelerator.get_memory_info()[1]",
    "module_allocated": "module.memory_allocated() == 0",
    "module_reset_peak": "module.reset_peak_memory_stats() is None",
    "module_empty_cache": "module.empty_cache() is None",
    "module_snapshot": "module.memory_snapshot() == []",
    "module_history": "module.memory._snapshot()['segments'] == []",
}
_FIRST_USE = (
    "module = torch.get_device_module(torch.device(D).type)\n"
    "assert {code}\n"
    "torch.ones(3, device=D)\n" + AT_ONCE
)


def _offers(dev: Device, name: str, code: str) -> bool:
    """Whether the backend has the function; the chapter registration asks for those it lacks."""
    if name == "info":
        return dev.has("memory_info")
    function = code.partition("module.")[2].partition("(")[0]
    found = dev.bare_module
    for word in filter(None, function.split(".")):
        found = getattr(found, word, None)
    return found is not None


@check("memory/first_use", "MEM-051", needs=("memory_stats", "fork"))
def memory_can_be_asked_about_first(dev: Device) -> None:
    """Every function of memory works as the first use of the device, which then allocates."""
    calls = {name: code for name, code in _FIRST_USES.items() if _offers(dev, name, code)}
    ended = ends(dev, {name: _FIRST_USE.format(code=code) for name, code in calls.items()})
    wrong = {name: tail(end.output) for name, end in ended.items() if end.status != 0}
    assert not wrong, f"before the first use of the device: {wrong}"


#: What a module reports of a device.
_REPORTED: dict[str, Callable[[Any, int], Any]] = {
    "allocated": lambda module, index: module.memory_allocated(index),
    "reserved": lambda module, index: module.memory_reserved(index),
    "max_allocated": lambda module, index: module.max_memory_allocated(index),
    "max_reserved": lambda module, index: module.max_memory_reserved(index),
    "stats": lambda module, index: dict(module.memory_stats(index)),
}


@check("memory/parity", "MEM-012", cases=_REPORTED, needs=("memory_stats",))
def both_modules_report_the_same(dev: Device, case: str) -> None:
    """torch.<type> and torch.accelerator report the same numbers for every device."""
    kept = [allocate(dev, 3000 * (index + 1), index) for index in range(dev.count)]
    for index in range(len(kept)):
        assert _REPORTED[case](dev.module, index) == _REPORTED[case](torch.accelerator, index)


#: A size in a memory summary, such as `12 MiB` or `1.5 GB`.
_SIZE = re.compile(r"(?<![\w.])(\d+)(?:\.(\d+))?\s*([KMGT]?)i?B\b")


@check("memory/summary", "MEM-065", needs=("memory_stats",))
def the_summary_has_the_figures_of_the_statistics(dev: Device) -> None:
    """memory_summary shows the allocated bytes, with their unit, as memory_stats has them."""
    if not hasattr(dev.module, "memory_summary"):
        dev.unsupported("the device module has no memory_summary")
    with on_first_device(dev):
        for count in (1, 3 * LARGE + 5 * MIB):
            x = allocate(dev, count)
            wanted = [statistics(0)[f"allocated_bytes.all.{name}"] for name in ("current", "peak")]
            lines = dev.module.memory_summary(0).splitlines()
            row = next((line for line in lines if "allocated memory" in line.lower()), None)
            if row is None:
                dev.unsupported("the summary has no row of allocated memory")
            sizes = _SIZE.findall(row)
            assert len(sizes) >= 2, f"sizes without units: {row}"
            for (whole, part, prefix), value in zip(sizes, wanted, strict=False):
                unit = 1024 ** " KMGT".index(prefix or " ")
                shown = float(f"{whole}.{part or 0}") * unit
                coarse = unit / 10 ** len(part)
                assert abs(shown - value) <= coarse, f"{value} bytes are shown as {row}"
            del x
