# SPDX-License-Identifier: BSD-3-Clause
"""The recorded history of memory has every allocation and free, and snapshots agree with it."""

from __future__ import annotations

import time
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, in_threads
from torch_conformance.checks.memory._blocks import (
    LARGE,
    LIMITED,
    MIB,
    allocate,
    allocated_bytes,
    exhaust,
    first_segments,
    history,
    on_first_device,
    reserved_bytes,
    settle,
)


def _in_use(snapshot: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The blocks of tensors on the first device, by address."""
    found = {}
    for segment in first_segments(snapshot):
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found[block.get("address", address)] = block
            address += block["size"]
    return found


@check("memory/history:replayed", "MEM-052", needs=("memory_history",))
def replaying_the_history_gives_the_blocks_in_use(dev: Device) -> None:
    """Allocations minus frees are the blocks that were taken since recording began."""
    with on_first_device(dev), history(dev) as snapshot:
        before = _in_use(snapshot())
        kept = [allocate(dev, 1000 * (index + 1)) for index in range(24)]
        del kept[::3]
        kept.append(allocate(dev, LARGE))
        found = snapshot()
    live: dict[int, int] = {}
    for entry in found["device_traces"][0]:
        if entry["action"] == "alloc":
            assert entry["addr"] not in live, f"{entry['addr']:#x} is allocated twice"
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            live.pop(entry["addr"], None)
    blocks = {a: block["size"] for a, block in _in_use(found).items() if a not in before}
    live = {address: size for address, size in live.items() if address not in before}
    assert live == blocks, f"{len(live)} blocks by the history, {len(blocks)} in the segments"
    assert len(blocks) == len(kept), f"{len(blocks)} blocks for {len(kept)} tensors"


@check("memory/history:stacks", "MEM-053", needs=("memory_history",))
def the_history_names_the_line_that_allocated(dev: Device) -> None:
    """The innermost frame of ours, of an allocation and of its block, is the one that allocated."""
    with on_first_device(dev), history(dev) as snapshot:
        kept = allocate(dev, 5000)
        found = snapshot()
    # Not by data_ptr(), which need not be the address that the history has.
    entries = [
        entry
        for entry in found["device_traces"][0]
        if entry["action"] == "alloc" and entry["size"] >= kept.nbytes
    ]
    assert len(entries) == 1, f"{len(entries)} allocations of one tensor"
    file = allocate.__code__.co_filename
    for what in (entries[0], _in_use(found)[entries[0]["addr"]]):
        # A backend may have functions of its own in between.
        ours = [frame for frame in what["frames"] if frame["filename"] == file]
        names = [frame["name"] for frame in what["frames"]]
        assert [frame["name"] for frame in ours[:1]] == ["allocate"], f"the stack is {names[:4]}"


@check("memory/history:module", "MEM-053", needs=("memory_history",))
def the_segments_have_the_stacks_too(dev: Device) -> None:
    """memory_snapshot() gives the segments of the snapshot, with the stacks of their blocks."""
    module = torch.get_device_module(dev.type)
    if not hasattr(module, "memory_snapshot"):
        dev.unsupported(f"{module.__name__} has no memory_snapshot")
    with on_first_device(dev), history(dev) as snapshot:
        kept = allocate(dev, 5000)
        settle(dev)
        expected, found = _in_use(snapshot()), _in_use({"segments": module.memory_snapshot()})
    assert found.keys() == expected.keys(), f"of {kept.nbytes} bytes"
    for address, block in expected.items():
        frames = found[address]["frames"]
        assert frames == block["frames"], f"{len(frames)} frames, {len(block['frames'])} in all"


@check("memory/history:totals", "MEM-054", needs=("memory_history", "memory_stats"))
def a_snapshot_adds_up_to_the_counters(dev: Device) -> None:
    """Segments, and the blocks in use within them, have as many bytes as the counters report."""
    with on_first_device(dev):
        snapshot = torch.get_device_module(dev.type).memory._snapshot
        before = _in_use(snapshot())
        kept = [allocate(dev, 1000 * (index + 1)) for index in range(24)]
        kept.append(allocate(dev, LARGE))
        del kept[::3]
        dev.synchronize()
        found = snapshot()
        reserved, allocated = reserved_bytes(), allocated_bytes()
    segments = first_segments(found)
    total = sum(segment["total_size"] for segment in segments)
    assert total == reserved, f"segments of {total} bytes, {reserved} reserved"
    in_use = sum(segment["allocated_size"] for segment in segments)
    assert in_use == allocated, f"segments with {in_use} bytes in use, {allocated} allocated"
    for segment in segments:
        blocks = segment["blocks"]
        assert sum(block["size"] for block in blocks) == segment["total_size"], segment
        taken = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
        assert taken == segment["allocated_size"] <= segment["active_size"], segment
    asked = [b["requested_size"] for a, b in _in_use(found).items() if a not in before]
    assert sorted(asked) == sorted(x.nbytes for x in kept), f"requested_size of the new: {asked}"


@check("memory/history:asked_again", "MEM-052", needs=("memory_history",))
def recording_that_is_asked_for_again_goes_on(dev: Device) -> None:
    """A second call with the same settings keeps what the first has recorded."""
    with on_first_device(dev), history(dev, max_entries=1000) as snapshot:
        kept = [allocate(dev, 3000)]
        before = snapshot()["device_traces"][0]
        with history(dev, max_entries=1000):
            kept.append(allocate(dev, 4000))
            after = snapshot()["device_traces"][0]
    del kept
    addresses = [entry["addr"] for entry in before]
    assert addresses, "nothing was recorded"
    found = [entry["addr"] for entry in after[: len(before)]]
    assert found == addresses, f"{len(before)} entries before the call, {len(after)} after it"
    assert len(after) > len(before), "nothing was recorded after the second call"


@check("memory/history:newest", "MEM-055", needs=("memory_history",))
def a_short_history_has_the_newest_entries(dev: Device) -> None:
    """Of more entries than are kept the last are there, in order and with the time of the day."""
    with on_first_device(dev), history(dev, max_entries=8) as snapshot:
        kept = [allocate(dev, 1000 * (index + 1)) for index in range(30)]
        entries = snapshot()["device_traces"][0]
        now = time.time() * 1e6
    assert len(entries) == 8, f"{len(entries)} entries where 8 are kept"
    times = [entry["time_us"] for entry in entries]
    assert times == sorted(times), f"the entries are not in order: {times}"
    assert 0 <= now - times[-1] < 60e6, f"the last entry is of {times[-1]}, now it is {now:.0f}"
    sizes = [entry["size"] for entry in entries if entry["action"] == "alloc"]
    assert sizes == sorted(sizes), f"the entries are not in order: sizes {sizes}"
    assert sizes and sizes[-1] >= kept[-1].nbytes, f"the last allocation is missing: {sizes}"


@check("memory/history:out_of_memory", "MEM-056", needs=("memory_history", *LIMITED))
def a_failed_allocation_is_in_thehistory(dev: Device) -> None:
    """Running out of memory is an entry `oom`, with what was asked for and what was free."""
    with on_first_device(dev), history(dev) as snapshot:
        total = torch.accelerator.get_memory_info(0)[1]
        exhaust(dev, 0)
        entries = snapshot()["device_traces"][0]
    failed = [entry for entry in entries if entry["action"] == "oom"]
    assert len(failed) == 1, f"{len(failed)} entries oom: {[e['action'] for e in entries]}"
    assert failed[0]["size"] >= total + MIB, failed[0]
    assert 0 < failed[0]["device_free"] <= total, failed[0]


@check("memory/history:ended", "MEM-057", needs=("memory_history",))
def recording_ends(dev: Device) -> None:
    """After recording neither the history nor the stacks of blocks grow."""
    with on_first_device(dev):
        with history(dev) as snapshot:
            kept = [allocate(dev, 5000)]
        before = snapshot()
        kept.append(allocate(dev, 6000))
        if all(map(dev.has, LIMITED)):
            exhaust(dev, 0)
        found = snapshot()
        del kept
    length = len(before["device_traces"][0])
    later = [entry["action"] for entry in found["device_traces"][0][length:]]
    assert not later, f"what happens later is in the history all the same: {later}"
    known = _in_use(before)
    frames = [b["frames"] for a, b in _in_use(found).items() if a not in known]
    assert frames == [[]], f"the block of a later allocation has the stack {frames}"


@check("memory/history:segments", "MEM-058", needs=("memory_history", "empty_cache"))
def the_history_has_what_the_driver_gave(dev: Device) -> None:
    """Segments that were taken and returned since recording began give the segments there are."""
    with on_first_device(dev), history(dev) as snapshot:
        live = {s["address"]: s["total_size"] for s in first_segments(snapshot())}
        kept = allocate(dev, LARGE)
        gone = allocate(dev, 3 * LARGE)
        del gone
        settle(dev)
        found = snapshot()
    taken = returned = 0
    for entry in found["device_traces"][0]:
        if entry["action"] == "segment_map":
            dev.unsupported("segments of this allocator grow")
        if entry["action"] == "segment_alloc":
            live[entry["addr"]] = entry["size"]
            taken += entry["size"]
        elif entry["action"] == "segment_free":
            returned += live.pop(entry["addr"])
    assert live == {s["address"]: s["total_size"] for s in first_segments(found)}
    assert taken >= kept.nbytes + 3 * LARGE, f"segments of {taken} bytes were taken"
    assert returned >= 3 * LARGE, f"segments of {returned} bytes were returned"


def _made(dev: Device) -> list[torch.Tensor]:
    return [allocate(dev, 7000)]


def _freed(dev: Device) -> None:
    _drop(_made(dev))


def _drop(made: list[torch.Tensor]) -> None:
    made.clear()


#: The argument `context` -> whether blocks, allocations and frees have stacks by it. Whether a free
#: has that of its allocation where it has none of its own is left to the backend.
_CONTEXTS: dict[str, tuple[str | None, bool, bool, bool | None]] = {
    "none": (None, False, False, False),
    "state": ("state", True, False, False),
    "alloc": ("alloc", True, True, None),
    "all": ("all", True, True, True),
}


@check("memory/history_contexts", "MEM-060", cases=_CONTEXTS, needs=("memory_history",))
def the_history_has_the_stacks_that_were_asked_for(dev: Device, case: str) -> None:
    """Blocks, entries of allocations and entries of frees have a stack if `context` says so."""
    context, of_block, of_alloc, of_free = _CONTEXTS[case]
    with on_first_device(dev), history(dev, context=context) as snapshot:
        before = _in_use(snapshot())
        kept = allocate(dev, 5000)
        _freed(dev)
        found = snapshot()
        del kept
    blocks = [block for address, block in _in_use(found).items() if address not in before]
    assert [bool(block["frames"]) for block in blocks] == [of_block], "the stack of the block"
    for action, expected in (("alloc", of_alloc), ("free_requested", of_free)):
        entries = [e for e in found["device_traces"][0] if e["action"] == action]
        assert entries, f"no entry {action}"
        if expected is not None:
            has = [bool(entry["frames"]) for entry in entries]
            assert all(one is expected for one in has), f"entries {action} have stacks: {has}"


@check("memory/history:stack_of_a_free", "MEM-060", needs=("memory_history",))
def the_history_names_the_line_that_freed(dev: Device) -> None:
    """The innermost frame of ours, of a free, is the function that dropped the tensor."""
    with on_first_device(dev), history(dev) as snapshot:
        _freed(dev)
        entries = snapshot()["device_traces"][0]
    freed = [entry for entry in entries if entry["action"] == "free_requested"]
    assert len(freed) == 1, f"{len(freed)} entries free_requested of one tensor"
    ours = [frame["name"] for frame in freed[0]["frames"] if frame["filename"] == __file__]
    assert ours[:1] == ["_drop"], f"the stack is {ours[:4]}"


@check("memory/history:streams", "MEM-061", needs=("memory_history", "streams"))
def the_history_names_the_stream_of_the_memory(dev: Device) -> None:
    """Entries and blocks of a side stream name one stream, those of the default stream another."""
    with on_first_device(dev), history(dev) as snapshot:
        kept = [allocate(dev, 5000)]
        with dev.stream():
            kept.append(allocate(dev, 6000))
        found = snapshot()
        entries = [e for e in found["device_traces"][0] if e["action"] == "alloc"]
        del kept
    assert len(entries) == 2, f"{len(entries)} allocations of two tensors"
    assert entries[0]["stream"] != entries[1]["stream"], f"both are of {entries[0]['stream']}"
    for entry in entries:
        within = [
            s for s in first_segments(found) if 0 <= entry["addr"] - s["address"] < s["total_size"]
        ]
        streams = [segment["stream"] for segment in within]
        assert streams == [entry["stream"]], f"{entry['stream']}, but its segment has {streams}"


@check("memory/history:shortest", "MEM-055", cases=("0", "1"), needs=("memory_history",))
def the_shortest_history_has_an_entry_at_most(dev: Device, case: str) -> None:
    """A history of no entry, or of one, has one at most, and allocations go on."""
    with on_first_device(dev), history(dev, max_entries=int(case)) as snapshot:
        kept = [allocate(dev, 1000 * (index + 1)) for index in range(10)]
        entries = snapshot()["device_traces"][0]
        del kept
    assert len(entries) <= 1, f"{len(entries)} entries"


@check("memory/history:threads", "MEM-062", needs=("memory_history", "threads", "streams"))
def the_history_has_the_allocations_of_all_threads(dev: Device) -> None:
    """With four threads that allocate at once, on streams of their own, no entry is lost."""
    rounds, width = 20, 100
    inputs = [torch.zeros(700, device=dev.device(0)) for _ in range(width)]
    dev.synchronize()

    def work() -> None:
        with dev.stream(0):
            for _ in range(rounds):
                # One call for many allocations, in which no thread waits for the interpreter.
                torch._foreach_add(inputs, 1)

    with on_first_device(dev), history(dev, context=None) as snapshot:
        in_threads([work] * 4)
        entries = snapshot()["device_traces"][0]
    for action in ("alloc", "free_completed"):
        count = sum(entry["action"] == action for entry in entries)
        assert count >= 4 * rounds * width, f"{count} entries {action} of {4 * rounds * width}"
