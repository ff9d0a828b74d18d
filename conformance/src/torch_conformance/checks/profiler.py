# SPDX-License-Identifier: BSD-3-Clause
"""What torch.profiler says the device did: which work, when, where, and for which operator."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from torch_conformance.authoring.api import Device, check, raised

N = 1 << 18

#: Names of activities and of device types in the profiler, for device types that have their own.
_OWN = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}
#: How the categories of work are called in an exported trace.
_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
#: c10::DeviceType::CPU, as traces have it.
_CPU = 0
#: How far two times of one clock may be apart, in us.
_SLACK_US = 2.0


def _profiled(dev: Device, body: Callable[[], object], **options: Any) -> profile:
    """The profiler, after it has watched a function."""
    own = getattr(ProfilerActivity, _OWN.get(dev.type, "PrivateUse1"))
    dev.synchronize()
    with profile(activities=[ProfilerActivity.CPU, own], acc_events=True, **options) as watched:
        body()
    return watched


def _on_device(dev: Device, watched: profile) -> list[Any]:
    """What happened on the device, ranges included, in the order of time."""
    kind = getattr(DeviceType, _OWN.get(dev.type, "PrivateUse1"))
    found = [event for event in watched.events() if event.device_type == kind]
    return sorted(found, key=lambda event: (event.time_range.start, event.time_range.end))


def _work(dev: Device, watched: profile) -> list[Any]:
    """The kernels, copies and fills."""
    return [event for event in _on_device(dev, watched) if not event.is_user_annotation]


def _texts(events: Iterable[Any]) -> list[str]:
    return [
        f"{event.name} {event.time_range.start:.3f}-{event.time_range.end:.3f} us"
        for event in events
    ]


def _operators(watched: profile, name: str) -> list[Any]:
    """The calls of an operator, in the order of time."""
    found = [event for event in watched.events() if event.name == name]
    return sorted(found, key=lambda event: event.time_range.start)


def _ones(dev: Device, index: int = 0) -> torch.Tensor:
    return torch.ones(N, device=dev.device(index))


_WORK: dict[str, Callable[[torch.Tensor], object]] = {
    "kernel": lambda x: x * 2,
    "copy_on_device": lambda x: x.clone(),
    "copy_to_host": lambda x: x.cpu(),
    "copy_from_host": lambda x: torch.ones(N).to(x.device),
    "fill": lambda x: x.zero_(),
    "backward": lambda x: x.requires_grad_().sin().sum().backward(),
}


@check("profiler/work", "PROF-001", cases=_WORK, needs=("profiler",))
def work_is_in_the_profile(dev: Device, case: str) -> None:
    """Work that the device did is in the events, and took time."""
    x = _ones(dev)
    watched = _profiled(dev, lambda: _WORK[case](x))
    found = _work(dev, watched)
    assert found, "the profile has no work of the device"
    took = sum(event.time_range.elapsed_us() for event in found)
    assert took > 0, f"the work took {took} us: {_texts(found)}"


@check("profiler/each_piece", "PROF-001", needs=("profiler",))
def each_piece_of_work_is_in_the_profile(dev: Device) -> None:
    """Fifty calls of an operator have fifty times the work of one."""
    x = _ones(dev)
    one = len(_work(dev, _profiled(dev, lambda: x.mul_(2))))
    many = len(_work(dev, _profiled(dev, lambda: [x.mul_(2) for _ in range(50)])))
    assert one > 0, "the profile has no work of the device"
    assert many == 50 * one, f"{many} pieces of work for 50 calls, {one} for one call"


@check("profiler/pending", "PROF-001", needs=("profiler", "streams", "delay"))
def pending_work_is_in_the_profile(dev: Device) -> None:
    """Work that has not run when the profiler stops is waited for."""
    x, stream = _ones(dev), dev.stream()

    def queue() -> None:
        with stream:
            dev.delay(30.0)
            x.mul_(2)

    assert len(_work(dev, _profiled(dev, queue))) >= 2


@check("profiler/operator", "PROF-002", needs=("profiler",))
def work_belongs_to_its_operator(dev: Device) -> None:
    """Operators of one stream have work of their own, in the order of their calls."""
    x = _ones(dev)
    names = ("mul", "sin", "neg", "exp", "abs")

    def call() -> None:
        for name in names:
            getattr(x, name)(*([2] if name == "mul" else []))

    watched = _profiled(dev, call)
    work = {}
    for name in names:
        ids = _inside(_operators(watched, f"aten::{name}")[0])
        work[name] = [e for e in _work(dev, watched) if e.linked_correlation_id in ids]
    without = [name for name, found in work.items() if not found]
    assert not without, f"the profile has no work of the device for {', '.join(without)}"
    for (before, earlier), (after, later) in pairwise(work.items()):
        assert earlier[-1].time_range.end <= later[0].time_range.start + _SLACK_US, (
            f"the work of {after} begins before that of {before} ends, which was called before it"
        )


def _inside(event: Any) -> set[int]:
    """The ids of an operator and of those that it calls."""
    return {event.id}.union(*map(_inside, event.cpu_children))


@check("profiler/operator_of_backward", "PROF-002", needs=("profiler",))
def work_of_backward_belongs_to_its_operator(dev: Device) -> None:
    """What autograd queues from its own thread belongs to an operator, too."""
    x = _ones(dev).requires_grad_()
    loss = x.sin().sum()
    watched = _profiled(dev, loss.backward)
    known = {event.id for event in watched.events() if event.name.startswith("aten::")}
    lost = [e for e in _work(dev, watched) if e.linked_correlation_id not in known]
    assert _operators(watched, "aten::cos"), "the profile has no aten::cos"
    assert not lost, f"work of no operator: {_texts(lost)}"


@check("profiler/one_stream", "PROF-003", needs=("profiler", "streams"))
def work_of_a_stream_does_not_overlap(dev: Device) -> None:
    """Pieces of work of one stream follow each other."""
    x, stream = _ones(dev), dev.stream()

    def queue() -> None:
        with stream:
            for _ in range(20):
                x.mul_(2).sin_()

    found = _work(dev, _profiled(dev, queue))
    assert len(found) >= 40, f"{len(found)} pieces of work for 40 calls"
    for before, after in pairwise(found):
        assert before.time_range.end <= after.time_range.start + _SLACK_US, _texts((before, after))


@check("profiler/time_of_run", "PROF-004", needs=("profiler", "streams", "delay"))
def times_are_those_of_the_run(dev: Device) -> None:
    """Work behind 60 ms of other work begins that much later than its call."""
    x, stream = _ones(dev), dev.stream()

    def queue() -> None:
        with stream:
            dev.delay(60.0)
            x.sin()

    watched = _profiled(dev, queue)
    # A fallback calls the operator of the CPU within the call.
    call, *_ = _operators(watched, "aten::sin")
    last = _work(dev, watched)[-1]
    waited = (last.time_range.start - call.time_range.start) / 1e3
    assert waited >= 40, f"the work began {waited:.1f} ms after its call, behind 60 ms of work"


#: Milliseconds of work: a busy machine begins it late, which a longer one is less sensitive to.
_LASTING = (60.0, 600.0, 3000.0)


@check("profiler/elapsed", "PROF-005", needs=("profiler", "event_timing", "streams", "delay"))
def times_agree_with_events(dev: Device) -> None:
    """Work between two events takes as long as they measure."""
    start, end, stream = dev.event(timing=True), dev.event(timing=True), dev.stream()

    def queue(lasting: float) -> None:
        with stream:
            start.record(stream)
            dev.delay(lasting)
            end.record(stream)

    for lasting in _LASTING:
        found = _work(dev, _profiled(dev, partial(queue, lasting)))
        end.synchronize()
        traced = sum(event.time_range.elapsed_us() for event in found) / 1e3
        measured = start.elapsed_time(end)
        if abs(traced - measured) <= 2 + 0.02 * measured:
            return
    raise AssertionError(
        f"the work took {traced:.2f} ms in the profile, {measured:.2f} ms between the events"
    )


@check("profiler/sessions", "PROF-006", needs=("profiler",))
def profiles_hold_their_own_session(dev: Device) -> None:
    """An idle device has no work in its profile, whatever ran before."""
    x = _ones(dev)
    assert _work(dev, _profiled(dev, x.sin)), "the profile has no work of the device"
    x.cos()
    late = _work(dev, _profiled(dev, lambda: None))
    assert not late, f"work of before: {_texts(late)}"
    assert len(_work(dev, _profiled(dev, x.sin))) == len(_work(dev, _profiled(dev, x.sin)))


@check("profiler/device", "PROF-007", needs=("profiler", "multi_device"))
def work_has_its_device(dev: Device) -> None:
    """Work of the second device is reported for it."""
    tensors = [_ones(dev, index) for index in (0, 1)]
    for index, x in enumerate(tensors):
        found = {event.device_index for event in _work(dev, _profiled(dev, x.sin))}
        assert found == {index}, f"work of {x.device} is reported for devices {sorted(found)}"


@check("profiler/streams", "PROF-008", needs=("profiler", "streams"))
def streams_have_rows(dev: Device) -> None:
    """Two streams have two rows."""
    x, streams = _ones(dev), (dev.stream(), dev.stream())

    def queue() -> None:
        for _ in range(2):
            for stream in streams:
                with stream:
                    x.sin()

    found = _work(dev, _profiled(dev, queue))
    rows = Counter(event.device_resource_id for event in found)
    assert len(rows) == 2 and len(set(rows.values())) == 1, f"pieces of work by row: {dict(rows)}"


@check("profiler/exported", "PROF-009", needs=("profiler",))
def traces_can_be_exported(dev: Device) -> None:
    """Each piece of work is in the exported trace, with one arrow from the call that queued it."""
    x = _ones(dev)
    watched = _profiled(dev, lambda: [x.sin(), x.clone(), x.cpu()])
    events = _exported(watched)
    work = [event for event in events if event.get("cat") in _CATEGORIES]
    assert len(work) == len(_work(dev, watched)), f"{len(work)} pieces of work in the trace"
    flows = {phase: Counter(_flows(events, phase)) for phase in "sf"}
    assert sum(flows["f"].values()) == len(work), (
        f"{len(work)} pieces of work, and arrows to {sum(flows['f'].values())}"
    )
    assert flows["f"] == flows["s"], f"arrows without a begin or an end: {flows}"


def _exported(watched: profile) -> list[dict[str, Any]]:
    """The events of the exported trace."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        watched.export_chrome_trace(str(file))
        events: list[dict[str, Any]] = json.loads(file.read_text())["traceEvents"]
    return events


def _flows(events: list[dict[str, Any]], phase: str) -> list[Any]:
    """The numbers of the arrows from calls to work."""
    return [e["id"] for e in events if e.get("ph") == phase and e.get("cat") == "ac2g"]


@check("profiler/range", "PROF-010", needs=("profiler",))
def ranges_show_on_the_device(dev: Device) -> None:
    """A range of record_function is around the work that was queued inside of it."""
    x = _ones(dev)

    def call() -> None:
        with record_function("the range"):
            x.sin()

    found = _on_device(dev, _profiled(dev, call))
    ranges = [event for event in found if event.is_user_annotation and event.name == "the range"]
    work = [event for event in found if not event.is_user_annotation]
    assert len(ranges) == 1, f"{len(ranges)} ranges on the device for one of record_function"
    assert ranges[0].time_range.start <= work[0].time_range.start + _SLACK_US
    assert ranges[0].time_range.end >= work[-1].time_range.end - _SLACK_US


@check("profiler/range_once", "PROF-012", needs=("profiler",))
def ranges_count_their_work_once(dev: Device) -> None:
    """The time of the device of a range is the sum of the work inside."""
    x = _ones(dev)

    def call() -> None:
        with record_function("the range"):
            x.sin()
            x.cos()

    watched = _profiled(dev, call)
    took = sum(event.time_range.elapsed_us() for event in _work(dev, watched))
    [on_host] = [e for e in _operators(watched, "the range") if e.device_type == DeviceType.CPU]
    assert on_host.self_device_time_total == 0, (
        f"the range counts {on_host.self_device_time_total} us as its own"
    )
    counted = on_host.device_time_total
    assert abs(counted - took) <= _SLACK_US, f"the work took {took} us, the range {counted} us"


@check("profiler/memory", "PROF-011", needs=("profiler",))
def memory_is_reported(dev: Device) -> None:
    """An operator that allocates is reported with its bytes."""
    kept: list[torch.Tensor] = []
    watched = _profiled(
        dev, lambda: kept.append(torch.empty(N, device=dev.device())), profile_memory=True
    )
    [event] = _operators(watched, "aten::empty")
    reported = event.self_device_memory_usage
    assert reported >= 4 * N, f"{reported} bytes are reported for a tensor of {4 * N}"


def _instants(watched: profile, name: str) -> list[dict[str, int]]:
    """What the exported trace says of each event of this name about memory of a device."""
    found = [event["args"] for event in _exported(watched) if event.get("name") == name]
    return [said for said in found if said["Device Type"] != _CPU]


@check("profiler/memory_events", "PROF-011", needs=("profiler",))
def allocations_and_frees_are_events(dev: Device) -> None:
    """The trace has an allocation and its free, with their bytes and those in use then."""
    watched = _profiled(
        dev, lambda: torch.empty(N, device=dev.device()).device, profile_memory=True
    )
    events = _instants(watched, "[memory]")
    assert len(events) == 2, f"{len(events)} events of memory, not an allocation and its free"
    taken, freed = events
    assert taken["Bytes"] >= 4 * N
    assert freed["Bytes"] == -taken["Bytes"]
    assert freed["Total Allocated"] == taken["Total Allocated"] - taken["Bytes"]
    assert taken["Total Reserved"] >= taken["Total Allocated"]


@check("profiler/out_of_memory", "PROF-013", needs=("profiler", "memory_stats"))
def allocations_that_fail_are_events(dev: Device) -> None:
    """The trace has an allocation that failed, with the bytes wanted and those in use."""
    most = 1 << 46
    watched = _profiled(
        dev,
        lambda: raised(lambda: torch.empty(most, dtype=torch.uint8, device=dev.device())),
        profile_memory=True,
    )
    in_use = torch.accelerator.memory_stats(dev.device())["allocated_bytes.all.current"]
    events = _instants(watched, "[OutOfMemory]")
    assert len(events) == 1, f"{len(events)} events of one allocation that failed"
    [failed] = events
    assert failed["Bytes"] >= most
    assert failed["Total Allocated"] == in_use
