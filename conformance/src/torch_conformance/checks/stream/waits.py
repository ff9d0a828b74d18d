# SPDX-License-Identifier: BSD-3-Clause
"""Streams wait for other streams and for events, and do not hold the host."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, while_held
from torch_conformance.checks._vectors import full, zeros
from torch_conformance.checks.stream._streams import ORDERINGS, producer


@check("stream/wait", "STREAM-021", cases=tuple(ORDERINGS), needs=("streams", "events", "delay"))
def work_after_a_wait_sees_the_work_before(dev: Device, case: str) -> None:
    """Work queued after a wait runs only after the work that was waited for."""
    x, y = zeros(dev), zeros(dev)
    dev.synchronize()
    first, then = producer(dev, x), dev.stream(0)
    ORDERINGS[case](first, then)
    with then:
        y.copy_(x)
    then.synchronize()
    dev.assert_equal(y, full(1))


@check("stream/wait_shape:chain", "STREAM-022", needs=("streams", "events", "delay"))
def waits_order_a_chain(dev: Device) -> None:
    """In a chain of streams each sees the work of the one it waited for."""
    x = zeros(dev)
    dev.synchronize()
    before = producer(dev, x)
    for _ in range(5):
        after = dev.stream(0)
        after.wait_stream(before)
        with after:
            x.add_(1)
        before = after
    before.synchronize()
    dev.assert_equal(x, full(6))


@check("stream/wait_shape:idle_links", "STREAM-022", needs=("streams", "events", "delay"))
def waits_pass_through_idle_streams(dev: Device) -> None:
    """A chain of streams without work of their own hands the wait on."""
    x, y = zeros(dev), zeros(dev)
    dev.synchronize()
    before = producer(dev, x)
    for _ in range(5):
        after = dev.stream(0)
        after.wait_stream(before)
        before = after
    with before:
        y.copy_(x)
    before.synchronize()
    dev.assert_equal(y, full(1))


@check("stream/wait_shape:fan_in", "STREAM-022", needs=("streams", "events", "delay"))
def waits_join_streams(dev: Device) -> None:
    """A stream that waited for several others sees the work of each."""
    y, parts = zeros(dev), [zeros(dev) for _ in range(4)]
    dev.synchronize()
    # Each is later than the one before: to wait for any one of them is not enough.
    streams = [producer(dev, part, k + 1.0, LATE_MS * (k + 1) / 2) for k, part in enumerate(parts)]
    with dev.stream(0) as join:
        for stream in streams:
            join.wait_stream(stream)
        for part in parts:
            y.add_(part)
    join.synchronize()
    dev.assert_equal(y, full(10))


@check("stream/wait_shape:fan_out", "STREAM-022", needs=("streams", "events", "delay"))
def waits_fork_streams(dev: Device) -> None:
    """Several streams that waited for one event each see the work before it."""
    x, targets = zeros(dev), [zeros(dev) for _ in range(4)]
    dev.synchronize()
    event = producer(dev, x).record_event()
    for target in targets:
        with dev.stream(0) as stream:
            stream.wait_event(event)
            target.copy_(x)
    for target in targets:
        dev.assert_equal(target, full(1))


@check("stream/wait_shape:ping_pong", "STREAM-022", needs=("streams", "events", "delay"))
def waits_order_two_streams_in_turns(dev: Device) -> None:
    """Two streams that wait for each other in turns work in turns."""
    x = zeros(dev)
    dev.synchronize()
    a, b = dev.stream(0), dev.stream(0)
    with a:
        dev.delay(LATE_MS)
    for _ in range(5):
        with a:
            a.wait_stream(b)
            x.add_(1)
        with b:
            b.wait_stream(a)
            x.mul_(2)
    b.synchronize()
    dev.assert_equal(x, full(62))


@check("stream/wait_shape:to_default", "STREAM-022", needs=("streams", "events", "delay"))
def the_default_stream_can_wait(dev: Device) -> None:
    """Work on the default stream sees the work of a stream that it waited for."""
    x, y = zeros(dev), zeros(dev)
    dev.synchronize()
    first = producer(dev, x)
    dev.current_stream(0).wait_stream(first)
    y.copy_(x)
    dev.assert_equal(y, full(1))


@check("stream/wait_shape:write_after_read", "STREAM-022", needs=("streams", "events", "delay"))
def waits_keep_writes_behind_reads(dev: Device) -> None:
    """A write that waited for a late read does not change what is read."""
    x, y = zeros(dev), zeros(dev)
    dev.synchronize()
    x.fill_(7)
    reader = dev.stream(0)
    reader.wait_stream(dev.current_stream(0))
    with reader:
        dev.delay(LATE_MS)
        y.copy_(x)
    dev.current_stream(0).wait_stream(reader)
    x.fill_(9)
    dev.assert_equal(y, full(7))
    dev.assert_equal(x, full(9))


#: In which order the streams that one stream waits for end their work.
_ENDS: dict[str, tuple[int, ...]] = {
    "first_to_last": (0, 1, 2, 3, 4, 5),
    "last_to_first": (5, 4, 3, 2, 1, 0),
    "mixed": (3, 0, 5, 1, 4, 2),
}


def _producers(dev: Device, ends: tuple[int, ...]) -> list[tuple[torch.Stream, torch.Tensor]]:
    """Streams that each fill a tensor, of zeros before, with ones: the later the larger its end."""
    parts = [zeros(dev) for _ in ends]
    dev.synchronize()
    return [
        (producer(dev, part, late_ms=LATE_MS * (end + 1) / len(ends)), part)
        for end, part in zip(ends, parts, strict=True)
    ]


@check("stream/wait_many", "STREAM-022", cases=_ENDS, needs=("streams", "events", "delay"))
def waits_hold_in_any_order_of_completion(dev: Device, case: str) -> None:
    """Between waits for several streams, a stream's work runs after the waits before it."""
    results = [zeros(dev) for _ in _ENDS[case]]
    with dev.stream(0) as then:
        for (stream, part), result in zip(_producers(dev, _ENDS[case]), results, strict=True):
            then.wait_stream(stream)
            result.copy_(part)
    then.synchronize()
    for result in results:
        dev.assert_equal(result, full(1))


@check("stream/wait_many_at_once", "STREAM-022", cases=_ENDS, needs=("streams", "events", "delay"))
def waits_add_up_in_any_order_of_completion(dev: Device, case: str) -> None:
    """Work behind several waits in a row runs after all of them."""
    results = [zeros(dev) for _ in _ENDS[case]]
    with dev.stream(0) as then:
        producers = _producers(dev, _ENDS[case])
        for stream, _ in producers:
            then.wait_stream(stream)
        for (_, part), result in zip(producers, results, strict=True):
            result.copy_(part)
    then.synchronize()
    for result in results:
        dev.assert_equal(result, full(1))


@check("stream/wait_many:hundreds", "STREAM-022", needs=("streams", "events", "delay"))
def a_stream_can_have_hundreds_of_pending_waits(dev: Device) -> None:
    """A stream with 300 pending waits is busy until the last of them has ended."""
    x, y = zeros(dev), zeros(dev)
    first, then = dev.stream(0), dev.stream(0)
    dev.synchronize()

    def look() -> bool:
        for _ in range(300):
            then.wait_event(first.record_event())
        return then.query()

    with first:
        assert while_held(dev, look) is False, "it does not wait"
        dev.delay(LATE_MS)
        x.fill_(1)
    then.wait_stream(first)
    with then:
        y.copy_(x)
    then.synchronize()
    dev.assert_equal(y, full(1))


@check(
    "stream/wait_host",
    "STREAM-023",
    cases=("wait_event", "wait_stream"),
    needs=("streams", "events", "delay"),
)
def waiting_streams_do_not_hold_the_host(dev: Device, case: str) -> None:
    """wait_event and wait_stream return at once; only the stream waits."""
    first, then = dev.stream(), dev.stream()

    def look() -> tuple[bool, bool]:
        ORDERINGS[case](first, then)
        return first.query(), then.query()

    with first:
        pending = while_held(dev, look)
    assert pending == (False, False), f"(first, waiting) stream done: {pending}"
    dev.synchronize()


@check("stream/wait_later_work", "STREAM-024", needs=("streams", "events", "delay"))
def a_wait_covers_only_earlier_work(dev: Device) -> None:
    """wait_stream covers the work queued so far and nothing that is queued later."""
    first, then = dev.stream(), dev.stream()
    then.wait_stream(first)

    def look() -> bool:
        then.synchronize()
        return first.query()

    with first:
        assert while_held(dev, look) is False


@check(
    "stream/wait_device",
    "STREAM-025",
    cases=("wait_event", "wait_stream", "event_wait"),
    needs=("streams", "events", "delay", "multi_device", "peer_copy"),
)
def streams_wait_across_devices(dev: Device, case: str) -> None:
    """A stream of device 1 can wait for work of device 0 and then sees its result."""
    x, y = zeros(dev, 0), zeros(dev, 1)
    dev.synchronize()
    first, then = producer(dev, x), dev.stream(1)
    ORDERINGS[case](first, then)
    with then:
        y.copy_(x, non_blocking=True)
    then.synchronize()
    dev.assert_equal(y, full(1))
