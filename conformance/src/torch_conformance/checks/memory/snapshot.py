# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots and the history of memory as tools read them: fields, choices, files, observers."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.cuda import _memory_viz

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    first_segments,
    history,
    on_first_device,
    settings,
)

#: The fields of a snapshot, by where they are, and their types: what tools look up.
_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "segment": {
        "device": int,
        "address": int,
        "total_size": int,
        "allocated_size": int,
        "active_size": int,
        "requested_size": int,
        "stream": int,
        "segment_type": str,
        "segment_pool_id": tuple,
        "is_expandable": bool,
        "blocks": list,
        "frames": list,
    },
    "block": {"address": int, "size": int, "requested_size": int, "state": str, "frames": list},
    "entry": {
        "action": str,
        "addr": int,
        "size": int,
        "stream": int,
        "time_us": int,
        "pool_id": tuple,
    },
    "frame": {"filename": str, "line": int, "name": str},
}


def _recorded(dev: Device) -> dict[str, Any]:
    """A snapshot of a little work: blocks of both pools, one of them freed."""
    with on_first_device(dev), history(dev) as snapshot:
        kept = [allocate(dev, size) for size in (1000, 3 * MIB, LARGE)]
        del kept[1]
        found: dict[str, Any] = snapshot()
    return found


def _parts(snapshot: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    segments = first_segments(snapshot)
    blocks = [block for segment in segments for block in segment["blocks"]]
    entries = [e for e in snapshot["device_traces"][0] if e["action"] == "alloc"]
    frames = [frame for entry in entries for frame in entry["frames"]]
    return {"segment": segments, "block": blocks, "entry": entries, "frame": frames}


@check("memory/snapshot_fields", "MEM-067", cases=_FIELDS, needs=("memory_history",))
def snapshots_have_the_fields_that_tools_read(dev: Device, case: str) -> None:
    """Segments, blocks, entries and frames have their fields, of the right types."""
    found = _parts(_recorded(dev))[case]
    assert found, f"the snapshot has no {case}"
    for part in found:
        for field, kind in _FIELDS[case].items():
            assert isinstance(part.get(field), kind), f"{field} of a {case}: {part.get(field)!r}"


@check("memory/snapshot_fields:values", "MEM-067", needs=("memory_history",))
def snapshots_have_the_values_that_tools_know(dev: Device) -> None:
    """Types of segments, states of blocks and kinds of entries are among those of PyTorch."""
    snapshot = _recorded(dev)
    parts = _parts(snapshot)
    assert {part["segment_type"] for part in parts["segment"]} <= {"small", "large"}
    states = {part["state"] for part in parts["block"]}
    assert states <= {"active_allocated", "active_awaiting_free", "inactive"}, states
    known = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"}
    known |= {"segment_map", "segment_unmap", "snapshot", "oom"}
    actions = {entry["action"] for entry in snapshot["device_traces"][0]}
    assert actions <= known, f"unknown actions {actions - known}"
    assert len(snapshot["device_traces"]) == dev.count, "a history for each device"


@check("memory/snapshot_fields:sums", "MEM-067", needs=("memory_history",))
def segments_say_what_their_blocks_add_up_to(dev: Device) -> None:
    """The sizes of a segment are the sums of those of its blocks: of all, in use, or taken."""
    states = {
        "total_size": ("active_allocated", "active_awaiting_free", "inactive"),
        "active_size": ("active_allocated", "active_awaiting_free"),
        "allocated_size": ("active_allocated",),
    }
    for segment in _parts(_recorded(dev))["segment"]:
        blocks = segment["blocks"]
        sums = {
            field: sum(block["size"] for block in blocks if block["state"] in counted)
            for field, counted in states.items()
        }
        sums["requested_size"] = sum(
            block["requested_size"] for block in blocks if block["state"] != "inactive"
        )
        said = {field: segment[field] for field in sums}
        assert said == sums, f"a segment says {said}, its blocks add up to {sums}"


#: Functions of torch.cuda._memory_viz that read a snapshot.
_VIEWERS: dict[str, Callable[[Any], Any]] = {
    "trace": _memory_viz.trace,
    "segsum": _memory_viz.segsum,
    "trace_plot": _memory_viz.trace_plot,
    "segment_plot": _memory_viz.segment_plot,
}


@check("memory/snapshot_viewer", "MEM-067", cases=_VIEWERS, needs=("memory_history",))
def tools_read_snapshots(dev: Device, case: str) -> None:
    """The functions of torch.cuda._memory_viz make their text of a snapshot."""
    text = _VIEWERS[case](_recorded(dev))
    assert isinstance(text, str) and len(text) > 100, text


@check("memory/snapshot_file", "MEM-068", needs=("memory_history",))
def snapshots_are_written_to_files(dev: Device) -> None:
    """_dump_snapshot writes what _snapshot gives, as a pickle."""
    memory = torch.get_device_module(dev.type).memory
    if not hasattr(memory, "_dump_snapshot"):
        dev.unsupported(f"torch.{dev.type}.memory has no _dump_snapshot")
    with on_first_device(dev), history(dev) as snapshot, TemporaryDirectory() as folder:
        kept = allocate(dev, 5000)
        file = Path(folder) / "snapshot.pickle"
        memory._dump_snapshot(str(file))
        written = pickle.loads(file.read_bytes())
        found = snapshot()
        del kept
    assert first_segments(written) == first_segments(found), "the segments differ"


@check("memory/snapshot_settings", "MEM-067", needs=("memory_history", "allocator_settings"))
def snapshots_name_the_settings_of_the_allocator(dev: Device) -> None:
    """The settings in a snapshot are those that the allocator was given."""
    text = "max_split_size_mb:30,garbage_collection_threshold:0.5,expandable_segments:False"
    with on_first_device(dev), settings(dev, text), history(dev) as snapshot:
        found = snapshot()["allocator_settings"]
    wanted = {
        "PYTORCH_ALLOC_CONF": text,
        "max_split_size": 30 * MIB,
        "garbage_collection_threshold": 0.5,
        "expandable_segments": False,
    }
    differing = {name: found.get(name) for name in wanted if found.get(name) != wanted[name]}
    assert not differing, f"{differing} where the allocator was given {text}"


@check("memory/snapshot_augmented", "MEM-067", needs=("memory_history",))
def snapshots_can_have_the_names_of_compiled_code(dev: Device) -> None:
    """augment_with_fx_traces adds to the frames of compiled code, and leaves the rest as it is."""
    memory = torch.get_device_module(dev.type).memory
    if "augment_with_fx_traces" not in inspect.signature(memory._snapshot).parameters:
        dev.unsupported(f"torch.{dev.type}.memory._snapshot has no augment_with_fx_traces")
    with on_first_device(dev), history(dev) as snapshot:
        kept = allocate(dev, 5000)
        plain, augmented = snapshot(), memory._snapshot(augment_with_fx_traces=True)
        del kept
    assert first_segments(augmented) == first_segments(plain), "the segments differ"


#: What the arguments of _record_memory_history may not be, and the word that is unknown.
_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "enabled": ({"enabled": "sometimes"}, "sometimes"),
    "context": ({"context": "much"}, "much"),
    "stacks": ({"stacks": "few"}, "few"),
    "skip_actions": ({"skip_actions": ["alloc", "borrowed"]}, "borrowed"),
}


@check("memory/history_refused", "MEM-069", cases=_REFUSED, needs=("memory_history",))
def unknown_choices_of_a_history_are_refused(dev: Device, case: str) -> None:
    """An unknown choice raises and names itself; what is recorded stays as it was."""
    memory = torch.get_device_module(dev.type).memory
    options, wrong = _REFUSED[case]
    with on_first_device(dev), history(dev) as snapshot:
        error = raised(lambda: memory._record_memory_history(**options))
        kept = allocate(dev, 5000)
        entries = snapshot()["device_traces"][0]
        del kept
    assert isinstance(error, (ValueError, RuntimeError)), f"{type(error).__name__}: {error}"
    assert wrong in str(error), f"{wrong!r} is not in the message: {error}"
    assert any(entry["action"] == "alloc" for entry in entries), "the recording has ended"


@check("memory/history_cleared", "MEM-070", needs=("memory_history",))
def a_history_can_be_cleared(dev: Device) -> None:
    """clear_history drops the entries that there are, and recording goes on."""
    memory = torch.get_device_module(dev.type).memory
    with on_first_device(dev), history(dev) as snapshot:
        kept = [allocate(dev, 5000)]
        memory._record_memory_history(stacks="python", clear_history=True)
        kept.append(allocate(dev, 7000))
        entries = snapshot()["device_traces"][0]
        del kept
    sizes = [entry["size"] for entry in entries if entry["action"] == "alloc"]
    assert len(sizes) == 1 and sizes[0] >= 7000, f"allocations of {sizes} bytes after clearing"


@check("memory/history_skipped", "MEM-071", needs=("memory_history",))
def entries_of_chosen_kinds_are_left_out(dev: Device) -> None:
    """skip_actions leaves out entries of these kinds, and no others."""
    with on_first_device(dev), history(dev, skip_actions=["free_requested"]) as snapshot:
        kept = allocate(dev, 5000)
        del kept
        entries = snapshot()["device_traces"][0]
    actions = {entry["action"] for entry in entries}
    assert "free_requested" not in actions, "a kind that is left out is there"
    assert {"alloc", "free_completed"} <= actions, f"only {actions} are there"


@check(
    "memory/observer",
    "MEM-072",
    needs=("memory_history", "memory_limit", "memory_info", "memory_stats"),
)
def observers_see_memory_run_out(dev: Device) -> None:
    """An observer is called before each OutOfMemoryError, with the device and the sizes."""
    memory = torch.get_device_module(dev.type).memory
    if not hasattr(memory, "attach_out_of_memory_observer"):
        dev.unsupported(f"torch.{dev.type}.memory has no attach_out_of_memory_observer")
    seen: list[tuple[int, int, int, int]] = []
    index = dev.count - 1
    with on_first_device(dev):
        total = torch.accelerator.get_memory_info(index)[1]
        memory.attach_out_of_memory_observer(lambda *told: seen.append(told))
        error = raised(lambda: allocate(dev, 2 * total, index))
    assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"
    assert len(seen) == 1, f"the observer was called {len(seen)} times"
    device, size, limit, free = seen[0]
    assert device == index, f"device {device} instead of {index}"
    assert size >= 2 * total, f"{size} bytes instead of {2 * total}"
    assert 0 <= free <= limit <= total, f"{free} free of {limit}, of {total} in all"


@check("memory/snapshot_pool", "MEM-073", needs=("memory_history", "graphs"))
def snapshots_name_the_pool_of_a_graph(dev: Device) -> None:
    """Segments that a capture takes have the pool of its graph, others have none."""
    with on_first_device(dev), history(dev) as snapshot:
        x = allocate(dev, 1000)
        graph = torch.accelerator.Graph()
        with dev.stream(), graph:
            y = x + 1
        found = first_segments(snapshot())
        pools = {tuple(segment["segment_pool_id"]) for segment in found}
        wanted = {(0, 0), tuple(graph.pool())}
        del x, y, graph
    assert pools == wanted, f"pools {pools} instead of {wanted}"
