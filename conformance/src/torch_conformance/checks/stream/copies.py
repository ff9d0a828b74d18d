# SPDX-License-Identifier: BSD-3-Clause
"""Non-blocking copies return at once, wait for their turn in their stream, and arrive."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import LATE_MS, Device, becomes_true, check, while_held
from torch_conformance.checks._vectors import N, full, zeros

_COPY_NEEDS = ("streams", "delay", "async_copy", "pinned_memory")


def _verify_non_blocking(dev: Device, destination: torch.Tensor, source: torch.Tensor) -> None:
    """A non-blocking copy must return at once, wait for its turn, and then arrive."""
    stream = dev.stream(0)
    expected = dev.cpu(source).clone()
    dev.synchronize()

    def look() -> tuple[bool, bool]:
        destination.copy_(source, non_blocking=True)
        # A copy that went elsewhere has time to arrive.
        dev.default_stream(0).synchronize()
        time.sleep(0.01)
        return stream.query(), destination.is_cpu and bool((destination == expected).any())

    with stream:
        done, arrived = while_held(dev, look)
    assert done is False and not arrived, "the copy did not wait for its turn"
    dev.synchronize()
    dev.assert_equal(destination, expected)


@check("stream/non_blocking:to_host", "STREAM-048", needs=_COPY_NEEDS)
def non_blocking_copies_to_the_host_wait_in_their_stream(dev: Device) -> None:
    """A non-blocking copy to the host returns before it ran, in stream order, and arrives."""
    host = torch.zeros(N).pin_memory()
    _verify_non_blocking(dev, host, torch.ones(N, device=dev.device(0)))


@check("stream/non_blocking:to_device", "STREAM-048", needs=_COPY_NEEDS)
def non_blocking_copies_to_the_device_wait_in_their_stream(dev: Device) -> None:
    """A non-blocking copy from the host returns before it ran, in stream order, and arrives."""
    host = torch.zeros(N).pin_memory()
    _verify_non_blocking(dev, torch.ones(N, device=dev.device(0)), host)


@check("stream/non_blocking:between_devices", "STREAM-048", needs=_COPY_NEEDS)
def non_blocking_copies_between_devices_wait_in_their_stream(dev: Device) -> None:
    """A non-blocking copy to another device returns before it ran, and arrives."""
    dev.require("multi_device", "peer_copy")
    _verify_non_blocking(dev, zeros(dev, dev.count - 1), torch.ones(N, device=dev.device(0)))


@check("stream/non_blocking_order", "STREAM-048", needs=("streams", "async_copy", "pinned_memory"))
def non_blocking_round_trips_stay_in_order(dev: Device) -> None:
    """Copies in, work, and copies out, all non-blocking on one stream, stay in order."""
    sources = [torch.full((N,), float(k)).pin_memory() for k in range(16)]
    results = [torch.zeros(N).pin_memory() for _ in sources]
    x = zeros(dev)
    dev.synchronize()
    with dev.stream(0) as stream:
        for source, result in zip(sources, results, strict=True):
            x.copy_(source, non_blocking=True)
            x.add_(1)
            result.copy_(x, non_blocking=True)
    stream.synchronize()
    for k, result in enumerate(results):
        assert torch.equal(result, full(k + 1.0)), f"round trip {k} has {result[0].item()}"


def _copy_behind(dev: Device, host: torch.Tensor, source: torch.Tensor) -> None:
    """Copy on a stream that waits for another one, which is busy."""
    dev.require("streams", "delay")
    first, second = dev.stream(0), dev.stream(0)
    with first:
        dev.delay(LATE_MS)
    second.wait_stream(first)
    with second:
        host.copy_(source, non_blocking=True)


#: What queues a copy to pinned memory, in which the host sees it without a call.
_LEFT_ALONE: dict[str, Callable[[Device, torch.Tensor, torch.Tensor], object]] = {
    "alone": lambda dev, host, source: host.copy_(source, non_blocking=True),
    "behind_another_stream": _copy_behind,
}


@check("stream/progress", "STREAM-059", cases=_LEFT_ALONE, needs=("pinned_memory", "async_copy"))
def queued_work_runs_without_another_call(dev: Device, case: str) -> None:
    """After some idle time a copy that is queued is seen in pinned memory, without a call."""
    host = torch.zeros(1).pin_memory()
    source = torch.ones(1, device=dev.device(0))
    dev.synchronize()
    time.sleep(0.3)  # threads of a driver may go to sleep in it
    _LEFT_ALONE[case](dev, host, source)
    seen = becomes_true(lambda: host[0].item() == 1, seconds=2)
    dev.synchronize()
    assert seen, "the copy did not run until the host synchronised"
