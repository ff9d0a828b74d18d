# SPDX-License-Identifier: BSD-3-Clause
"""Streams may be dropped at any time, serve several threads, and leak nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import (
    FULL,
    LATE_MS,
    Device,
    becomes_true,
    check,
    in_thread,
)
from torch_conformance.checks._leaks import assert_nothing_left
from torch_conformance.checks._vectors import N, full, zeros
from torch_conformance.checks.stream._streams import producer


@check("stream/pause", "STREAM-053", needs=("streams", "delay"), breadth=FULL)
def a_device_works_after_a_pause(dev: Device) -> None:
    """Work that comes after six seconds without any is done, also if no call waits for it."""
    x, stream = zeros(dev), dev.stream(0)
    dev.synchronize()
    time.sleep(6)  # threads that serve the device may end when they have had nothing to do
    with stream:
        x.fill_(1)
    assert becomes_true(stream.query), "the work is never done"
    dev.assert_equal(x, full(1))


@check("stream/lifetime:dropped_while_busy", "STREAM-053", needs=("streams", "delay"))
def streams_may_be_dropped_any_time(dev: Device) -> None:
    """The work of a stream object that was dropped while it was busy is done."""
    x = zeros(dev)
    dev.synchronize()
    producer(dev, x)  # the stream is dropped at once
    dev.assert_equal(x, full(1))


@check("stream/lifetime:dropped_in_context", "STREAM-053", needs=("streams", "delay"))
def a_context_keeps_its_stream(dev: Device) -> None:
    """The work of a stream to which only its context refers is done."""
    x = zeros(dev)
    dev.synchronize()
    with dev.stream(0):
        dev.delay(LATE_MS)
        x.fill_(1)
    dev.assert_equal(x, full(1))


@check("stream/lifetime:many_live", "STREAM-054", needs=("streams", "delay"))
def many_streams_work_at_once(dev: Device) -> None:
    """The work of each of 64 streams that exist at once is done."""
    x = zeros(dev)
    dev.synchronize()
    streams = [dev.stream(0) for _ in range(64)]
    parts = [x[k : k + 64] for k in range(0, N, 64)]
    for stream, part in zip(streams, parts, strict=True):
        with stream:
            part.fill_(1)
    dev.assert_equal(x, full(1))


@check("stream/lifetime:other_thread", "STREAM-050", needs=("streams", "delay"))
def work_of_another_thread_is_waited_for(dev: Device) -> None:
    """synchronize() waits for what another thread queued on the stream."""
    x, stream = zeros(dev), dev.stream(0)
    dev.synchronize()

    def fill() -> None:
        with stream:
            dev.delay(LATE_MS)
            x.fill_(1)

    in_thread(fill)
    stream.synchronize()
    assert stream.query()
    assert x[-1].item() == 1, "the work of another thread was not waited for"
    dev.assert_equal(x, full(1))


@check("stream/lifetime:thread_ended", "STREAM-050", needs=("streams", "delay"))
def streams_outlive_the_thread_that_made_them(dev: Device) -> None:
    """synchronize() waits for the work of a stream whose thread has ended."""
    x = zeros(dev)
    dev.synchronize()
    stream = in_thread(lambda: producer(dev, x))
    stream.synchronize()
    assert x[-1].item() == 1, "the work of the thread was not waited for"
    dev.assert_equal(x, full(1))


def _use(dev: Device, stream: torch.Stream, x: torch.Tensor) -> None:
    with stream:
        x.fill_(1)


def _use_and_wait(dev: Device, stream: torch.Stream, x: torch.Tensor) -> None:
    _use(dev, stream, x)
    dev.current_stream(0).wait_stream(stream)


_USES: dict[str, Callable[[Device, torch.Stream, torch.Tensor], None]] = {
    "created": lambda dev, stream, x: None,
    "used": _use,
    "waited_for": _use_and_wait,
}


@check("stream/leak", "STREAM-051", cases=_USES, needs=("streams", "events"))
def thousands_of_streams_leak_nothing(dev: Device, case: str) -> None:
    """Creating and dropping thousands of streams holds threads and file descriptors flat."""
    x = zeros(dev)

    def batch(count: int) -> None:
        for _ in range(count):
            _USES[case](dev, dev.stream(0), x)
        dev.synchronize()

    assert_nothing_left(batch, 200, 1000, slack=4)


def _query(stream: torch.Stream) -> None:
    assert stream.query(), "an idle stream claims to be busy"


def _wait_for_itself(stream: torch.Stream) -> None:
    stream.wait_stream(stream)
    stream.wait_event(stream.record_event())


_IDLE: dict[str, Callable[[torch.Stream], None]] = {
    "synchronize": lambda stream: stream.synchronize(),
    "device": lambda stream: torch.accelerator.synchronize(0),
    "query": _query,
    "wait_self": _wait_for_itself,
}


@check("stream/idle", "STREAM-052", cases=_IDLE, needs=("streams", "events"))
def idle_streams_are_no_special_case(dev: Device, case: str) -> None:
    """Synchronising, querying or waiting for an idle or the same stream returns at once."""
    stream = dev.stream(0)
    for _ in range(100):
        _IDLE[case](stream)
    with stream:
        dev.assert_equal(torch.ones(3, device=dev.device(0)), torch.ones(3))
