# SPDX-License-Identifier: BSD-3-Clause
"""The host waits for streams and devices, and for the work behind a value that it reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from torch_conformance.authoring.api import (
    FULL,
    LATE_MS,
    Device,
    check,
    in_thread,
    in_threads,
    while_held,
)
from torch_conformance.checks._vectors import N, full, zeros
from torch_conformance.checks.stream._streams import ORDERINGS, producer

_WAITERS: dict[str, Callable[[Device, torch.Stream], Any]] = {
    "stream": lambda dev, stream: stream.synchronize(),
    "device": lambda dev, stream: torch.accelerator.synchronize(stream.device_index),
    "module": lambda dev, stream: dev.module.synchronize(stream.device_index),
    "event": lambda dev, stream: stream.record_event().synchronize(),
}


@check(
    "stream/synchronize", "STREAM-011", cases=tuple(_WAITERS), needs=("streams", "events", "delay")
)
def synchronize_waits_for_the_work(dev: Device, case: str) -> None:
    """When a synchronisation returns, the work queued before it is done."""
    stream = dev.stream(0)
    after = dev.event()
    with stream:
        dev.delay(LATE_MS)
        after.record(stream)
    _WAITERS[case](dev, stream)
    # A query that lies is another requirement's business: both have to say "done".
    assert after.query() and stream.query(), "it returned while work was pending"


@check(
    "stream/synchronize_result",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "async_copy", "pinned_memory"),
)
def synchronize_waits_for_the_result(dev: Device, case: str) -> None:
    """When a synchronisation returns, a copy to host memory queued before it has arrived."""
    stream = dev.stream(0)
    x = torch.ones(N, device=dev.device(0))
    host = torch.zeros(N).pin_memory()
    dev.synchronize()
    with stream:
        dev.delay(LATE_MS)
        host.copy_(x, non_blocking=True)
    _WAITERS[case](dev, stream)
    assert torch.equal(host, full(1)), "it returned before the copy arrived"


def _waits_from_a_thread(dev: Device, case: str, index: int) -> None:
    stream = dev.stream(index)
    with stream:
        dev.delay(LATE_MS)
    in_thread(lambda: _WAITERS[case](dev, stream))
    assert stream.query(), "it returned while work was pending"


@check(
    "stream/synchronize_from_thread",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "threads"),
)
def threads_without_work_can_wait(dev: Device, case: str) -> None:
    """A synchronisation from a thread that never used the device waits for the work of others."""
    _waits_from_a_thread(dev, case, 0)


@check(
    "stream/synchronize_from_thread_elsewhere",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "threads", "multi_device"),
)
def threads_without_work_can_wait_for_any_device(dev: Device, case: str) -> None:
    """A thread whose current device is the first one can wait for the work of the last one."""
    _waits_from_a_thread(dev, case, dev.count - 1)


def _waits_for_a_waiting_stream(dev: Device, case: str, index: int) -> None:
    """The host waits for a stream of device `index` that has nothing to do but to wait."""
    then = dev.stream(index)
    work = dev.event()
    dev.synchronize()
    with dev.stream(0) as first:
        dev.delay(LATE_MS)
        work.record(first)
    then.wait_event(work)
    _WAITERS[case](dev, then)
    assert work.query(), "it returned before the work for which the stream waits"
    assert then.query(), "it returned while the stream was waiting"


@check(
    "stream/synchronize_waiting",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay"),
)
def synchronize_waits_for_a_waiting_stream(dev: Device, case: str) -> None:
    """Synchronising a stream that only waits for another one waits for the work of that one."""
    _waits_for_a_waiting_stream(dev, case, 0)


@check(
    "stream/synchronize_waiting_device",
    "STREAM-011",
    cases=tuple(_WAITERS),
    needs=("streams", "events", "delay", "multi_device"),
)
def synchronize_waits_for_a_waiting_device(dev: Device, case: str) -> None:
    """Synchronising a device whose stream only waits for another device waits for that work."""
    _waits_for_a_waiting_stream(dev, case, dev.count - 1)


#: Longer than a quarter of a second, after which a wait with a limit may give up.
_LONG_MS = 320.0
#: Longer than the next limits that come to mind, one and two seconds.
_VERY_LONG_MS = 2200.0


def _host_waits_long(dev: Device, ms: float) -> None:
    """All waits of the host, in threads of their own, for one piece of work."""
    stream, work = dev.stream(0), dev.event()
    dev.synchronize()
    with stream:
        dev.delay(ms)
        work.record(stream)

    def wait(case: str) -> tuple[str, bool]:
        _WAITERS[case](dev, stream)
        return case, work.query()

    done = dict(in_threads([partial(wait, case) for case in _WAITERS]))
    assert all(done.values()), f"returned with the work done: {done}"


def _streams_wait_long(dev: Device, ms: float) -> None:
    """All waits of streams, one stream each, for one piece of work."""
    waits = [wait for case, wait in ORDERINGS.items() if not case.startswith("host")]
    x, results = zeros(dev), [zeros(dev) for _ in waits]
    dev.synchronize()
    first = producer(dev, x, late_ms=ms)
    for wait, result in zip(waits, results, strict=True):
        with dev.stream(0) as then:
            wait(first, then)
            result.copy_(x)
    dev.synchronize()
    for result in results:
        dev.assert_equal(result, full(1))


_LONG_WAITS: dict[str, Callable[[Device, float], None]] = {
    "host": _host_waits_long,
    "stream": _streams_wait_long,
}
_LONG_NEEDS = ("streams", "events", "delay", "threads")


@check("stream/long_wait", ("STREAM-011", "STREAM-021"), cases=_LONG_WAITS, needs=_LONG_NEEDS)
def long_work_is_waited_for(dev: Device, case: str) -> None:
    """Waits of the host and of streams last as long as work of a third of a second."""
    _LONG_WAITS[case](dev, _LONG_MS)


@check(
    "stream/very_long_wait",
    ("STREAM-011", "STREAM-021"),
    cases=_LONG_WAITS,
    needs=_LONG_NEEDS,
    breadth=FULL,
)
def very_long_work_is_waited_for(dev: Device, case: str) -> None:
    """Waits of the host and of streams last as long as work of two seconds."""
    _LONG_WAITS[case](dev, _VERY_LONG_MS)


_READERS: dict[str, Callable[[torch.Tensor], float]] = {
    "item": lambda x: x[N - 1].item(),
    "cpu": lambda x: x.cpu()[-1].item(),
    "tolist": lambda x: x.tolist()[-1],
    "to": lambda x: x.to("cpu")[-1].item(),
    "copy": lambda x: torch.zeros(N).copy_(x)[-1].item(),
    "bool": lambda x: 5.0 if bool(x[0] == 5) else 0.0,
}


@check("stream/host_reads", "STREAM-012", cases=tuple(_READERS), needs=("delay",))
def host_reads_see_queued_work(dev: Device, case: str) -> None:
    """Reading a value on the host waits for the work queued on the current stream."""
    streams: list[AbstractContextManager[Any]] = [nullcontext()]
    if dev.has("streams"):
        streams.append(dev.stream())
    for stream in streams:
        x = zeros(dev)
        assert _READERS[case](x) == 0.0
        dev.synchronize()
        with stream:
            dev.delay(LATE_MS)
            x.fill_(5)
            value = _READERS[case](x)
        assert value == 5.0, f"the host read {value} before the queued work ran, in {stream}"


@check("stream/synchronize_device:every_stream", "STREAM-031", needs=("streams", "delay"))
def device_synchronize_covers_every_stream(dev: Device) -> None:
    """Synchronising a device waits for all of its streams."""
    streams = [dev.stream(0) for _ in range(5)]
    for stream in streams:
        with stream:
            dev.delay(LATE_MS)
    torch.accelerator.synchronize(0)
    assert all(stream.query() for stream in streams), "a stream was left busy"


@check("stream/synchronize_device:only_this_device", "STREAM-032", needs=("streams", "delay"))
def device_synchronize_waits_for_no_other_device(dev: Device) -> None:
    """Synchronising device 0 does not wait for device 1."""
    dev.require("multi_device")
    with dev.stream(1) as busy:

        def look() -> bool:
            torch.accelerator.synchronize(0)
            return busy.query()

        assert while_held(dev, look) is False, "synchronize(0) waited for device 1"


#: The current device, and the argument that means device 1.
_SYNCHRONIZED: dict[str, Callable[[Device], tuple[int, Any]]] = {
    "by_index": lambda dev: (1, 1),
    "by_device": lambda dev: (1, dev.device(1)),
    "from_other_current": lambda dev: (0, 1),
}


@check("stream/synchronize_device", "STREAM-031", cases=_SYNCHRONIZED, needs=("streams", "delay"))
def device_synchronize_covers_the_device_named(dev: Device, case: str) -> None:
    """Synchronising device 1, by index or device, waits for it whichever device is current."""
    dev.require("multi_device")
    current, argument = _SYNCHRONIZED[case](dev)
    with dev.stream(1) as busy:
        dev.delay(LATE_MS)
    with torch.accelerator.device_index(current):
        torch.accelerator.synchronize(argument)
    assert busy.query(), "synchronize(1) did not wait for device 1"
