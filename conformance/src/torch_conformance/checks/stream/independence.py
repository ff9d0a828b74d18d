# SPDX-License-Identifier: BSD-3-Clause
"""A busy stream or device does not delay the work of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, while_held
from torch_conformance.checks._vectors import full, zeros


def _verify_unhindered(dev: Device, work: Callable[[], Any]) -> None:
    """Fail if `work`, which waits for other streams, takes as long as a busy stream is busy."""
    busy = dev.stream()
    dev.synchronize()

    def look() -> bool:
        work()
        return busy.query()

    with busy:
        assert while_held(dev, look) is False, "the other stream waited for the busy one"
    dev.synchronize()


def _fill(stream: torch.Stream, x: torch.Tensor) -> None:
    """Fill `x` with 4 on a stream, and wait for that."""
    with stream:
        x.fill_(4)
    stream.synchronize()


@check("stream/independent:synchronize", "STREAM-030", needs=("streams", "delay"))
def synchronize_waits_for_one_stream_only(dev: Device) -> None:
    """An idle stream can be synchronised while another stream is busy."""
    _verify_unhindered(dev, dev.stream().synchronize)


@check("stream/independent:fill", "STREAM-030", needs=("streams", "delay"))
def a_busy_stream_does_not_delay_another(dev: Device) -> None:
    """Work on one stream is done, and can be waited for, while another stream is busy."""
    x, other = zeros(dev), dev.stream()
    _verify_unhindered(dev, lambda: _fill(other, x))
    dev.assert_equal(x, full(4))


@check("stream/independent:read", "STREAM-030", needs=("streams", "delay"))
def a_busy_stream_does_not_delay_reads(dev: Device) -> None:
    """The result of one stream can be read on the host while another stream is busy."""
    x, other = zeros(dev), dev.stream()

    def work() -> None:
        with other:
            x.fill_(4)
            assert x[0].item() == 4

    _verify_unhindered(dev, work)
    dev.assert_equal(x, full(4))


@check("stream/independent:default_is_no_barrier", "STREAM-030", needs=("streams", "delay"))
def the_default_stream_is_no_barrier(dev: Device) -> None:
    """Work on the default stream does not wait for a busy stream."""
    x, default = zeros(dev), dev.default_stream()
    _verify_unhindered(dev, lambda: _fill(default, x))
    dev.assert_equal(x, full(4))


@check("stream/independent:three", "STREAM-030", needs=("streams", "delay"))
def a_busy_stream_does_not_delay_new_ones(dev: Device) -> None:
    """Work on each of three streams made while another stream is busy is done meanwhile."""
    x = zeros(dev)

    def work() -> None:
        for stream in [dev.stream() for _ in range(3)]:
            _fill(stream, x)

    _verify_unhindered(dev, work)
    dev.assert_equal(x, full(4))


@check("stream/independent:shorter", "STREAM-030", needs=("streams", "delay"))
def a_long_wait_does_not_delay_a_short_one(dev: Device) -> None:
    """What takes a short time on one stream ends before what began earlier and takes longer."""
    x, other = zeros(dev), dev.stream()

    def work() -> None:
        with other:
            dev.delay(5)
            x.fill_(4)
        other.synchronize()

    _verify_unhindered(dev, work)
    dev.assert_equal(x, full(4))


@check("stream/independent:other_device", "STREAM-030", needs=("streams", "delay"))
def a_busy_device_does_not_delay_another(dev: Device) -> None:
    """Work on device 0 is done, can be waited for and read while device 1 is busy."""
    dev.require("multi_device")
    x, busy, other = zeros(dev), dev.stream(1), dev.stream(0)
    dev.synchronize()

    def look() -> tuple[float, bool]:
        _fill(other, x)
        with other:
            value = x[0].item()
        return value, busy.query()

    with busy:
        assert while_held(dev, look) == (4.0, False), "(value, device 1 done)"
    dev.synchronize()
