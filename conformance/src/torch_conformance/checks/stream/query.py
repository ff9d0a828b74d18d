# SPDX-License-Identifier: BSD-3-Clause
"""query() tells whether a stream has work left."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import LATE_MS, Device, becomes_true, check, while_held
from torch_conformance.checks._vectors import zeros


@check("stream/query:idle", "STREAM-010", needs=("streams", "delay"))
def query_of_an_idle_stream_is_true(dev: Device) -> None:
    """query() is True once a stream was synchronised."""
    stream = dev.stream()
    with stream:
        zeros(dev)
    stream.synchronize()
    assert stream.query() is True, "an idle stream claims to be busy"


@check("stream/query:busy", "STREAM-010", needs=("streams", "delay"))
def query_of_a_busy_stream_is_false(dev: Device) -> None:
    """query() is False while work is pending, and never waits."""
    with dev.stream() as stream:
        assert while_held(dev, stream.query) is False, "a busy stream claims to be done"


@check("stream/query:done_after_synchronize", "STREAM-010", needs=("streams", "delay"))
def query_after_synchronize_is_true(dev: Device) -> None:
    """query() is True after synchronize() waited for work."""
    with dev.stream() as stream:
        dev.delay(LATE_MS)
        stream.synchronize()
        assert stream.query() is True


@check("stream/query:done_by_itself", "STREAM-010", needs=("streams", "delay"))
def query_becomes_true(dev: Device) -> None:
    """query() becomes True when the work is done, also if no call waits for it."""
    with dev.stream() as stream:
        dev.delay(LATE_MS)
        assert becomes_true(stream.query), "query() never becomes True"


@check("stream/query:never_used", "STREAM-010", needs=("streams", "delay"))
def query_of_an_unused_stream_is_true(dev: Device) -> None:
    """query() of a new stream is True."""
    assert dev.stream().query() is True


@check("stream/query_default", "STREAM-010", needs=("streams", "delay"))
def query_of_the_default_stream_is_true_to_it(dev: Device) -> None:
    """query() of the default stream sees the work queued without naming a stream."""
    stream = dev.current_stream()
    assert while_held(dev, stream.query) is False
    stream.synchronize()
    assert stream.query() is True


#: Streams and events without work beside a busy stream of device 0, and what tells that.
_NEIGHBOURS: dict[str, Callable[[Device], Callable[[], bool]]] = {
    "unused_stream": lambda dev: dev.stream(0).query,
    "used_stream": lambda dev: _used(dev, dev.stream(0)).query,
    "default_stream": lambda dev: _used(dev, dev.default_stream(0)).query,
    "event": lambda dev: _used(dev, dev.stream(0)).record_event(dev.event()).query,
    "other_device": lambda dev: _used(dev, dev.stream(dev.count - 1)).query,
}


def _used(dev: Device, stream: torch.Stream) -> torch.Stream:
    """A stream whose work has been waited for."""
    with stream:
        zeros(dev, stream.device_index)
    stream.synchronize()
    return stream


@check(
    "stream/query_neighbour",
    "STREAM-010",
    cases=_NEIGHBOURS,
    needs=("streams", "events", "delay"),
    case_needs={"other_device": "multi_device"},
)
def query_is_about_one_stream(dev: Device, case: str) -> None:
    """query() of an idle stream or event is True while another stream is busy."""
    query = _NEIGHBOURS[case](dev)
    dev.synchronize()
    with dev.stream(0):
        assert while_held(dev, query) is True, "it is not True beside a busy stream"
    dev.synchronize()
