# SPDX-License-Identifier: BSD-3-Clause
"""The default stream, and which stream is current on each device and in each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import torch

from torch_conformance.authoring.api import Device, check, in_thread, in_threads, raised
from torch_conformance.checks._vectors import N, full


@check("stream/default:is_current", "STREAM-055", needs=("streams",))
def the_default_stream_is_current_at_first(dev: Device) -> None:
    """In a new thread the default stream is current."""
    assert in_thread(lambda: dev.current_stream(0)) == dev.module.default_stream(0)


@check("stream/default:of_device", "STREAM-040", needs=("streams",))
def every_device_has_a_default_stream(dev: Device) -> None:
    """The default stream of each device is a stream of that device."""
    for index in range(dev.count):
        assert dev.default_stream(index).device == dev.device(index)


@check("stream/default:by_device", "STREAM-040", needs=("streams",))
def the_default_stream_is_found_by_device(dev: Device) -> None:
    """torch.<type>.default_stream takes a torch.device as it takes an index."""
    for index in range(dev.count):
        by_device = dev.module.default_stream(dev.device(index))
        assert by_device == dev.module.default_stream(index)


@check("stream/default:constant", "STREAM-040", needs=("streams",))
def the_default_stream_does_not_change(dev: Device) -> None:
    """default_stream gives the same stream while another one is current."""
    default = dev.default_stream(0)
    with dev.stream(0):
        assert dev.default_stream(0) == default


@check("stream/default:usable", "STREAM-057", needs=("streams",))
def the_default_stream_can_be_entered(dev: Device) -> None:
    """The default stream can be entered and synchronised as any other stream."""
    default = dev.default_stream(0)
    with default:
        x = torch.ones(N, device=dev.device(0))
    default.synchronize()
    dev.assert_equal(x, full(1))


@check("stream/default:new_streams_differ", "STREAM-056", needs=("streams",))
def new_streams_are_not_the_default_stream(dev: Device) -> None:
    """None of forty created streams is the default stream."""
    assert dev.default_stream(0) not in [dev.stream(0) for _ in range(40)]


@check("stream/per_device", "STREAM-043", needs=("streams", "multi_device"))
def every_device_has_its_own_current_stream(dev: Device) -> None:
    """Setting the stream of one device leaves the current stream of the other alone."""
    before = dev.current_stream(1)
    with torch.accelerator.device_index(0), dev.stream(0) as stream:
        assert dev.current_stream(0) == stream
        assert dev.current_stream(1) == before


@check("stream/per_thread:new_thread", "STREAM-044", needs=("streams", "threads"))
def a_new_thread_begins_on_the_default_stream(dev: Device) -> None:
    """In a new thread the default stream is current, whatever is current in the one before."""
    with dev.stream(0):
        assert in_thread(lambda: dev.current_stream(0)) == dev.module.default_stream(0)


@check("stream/per_thread:set_elsewhere", "STREAM-044", needs=("streams", "threads"))
def a_thread_sets_its_own_stream_only(dev: Device) -> None:
    """A stream set in one thread does not become current in another."""
    before = dev.current_stream(0)
    in_thread(lambda: torch.accelerator.set_stream(dev.stream(0)))
    assert dev.current_stream(0) == before, "another thread changed this thread's stream"


@check("stream/per_thread:eight_threads", "STREAM-044", needs=("streams", "threads"))
def every_thread_has_its_own_current_stream(dev: Device) -> None:
    """In eight threads that each entered a stream, that stream is current."""
    everyone = threading.Barrier(8)

    def worker() -> bool:
        stream = dev.stream(0)
        with stream:
            everyone.wait(30)
            mine = dev.current_stream(0) == stream
            everyone.wait(30)
        return mine

    assert all(in_threads([worker] * 8))


_SETTERS: dict[str, Callable[[Device], Callable[[torch.Stream], None]]] = {
    "accelerator": lambda dev: torch.accelerator.set_stream,
    "module": lambda dev: dev.module.set_stream,
}


@check("stream/set_stream", "STREAM-045", cases=_SETTERS, needs=("streams",))
def set_stream_makes_a_stream_current(dev: Device, case: str) -> None:
    """set_stream makes a stream current until another one is set."""
    before, stream = dev.current_stream(0), dev.stream(0)
    setter = _SETTERS[case](dev)
    try:
        setter(stream)
        assert dev.current_stream(0) == stream
    finally:
        setter(before)
    assert dev.current_stream(0) == before


def _set_to_the_cpu(set_stream: Callable[[torch.Stream], object]) -> None:
    set_stream(torch.Stream(device="cpu"))


@check("stream/set_stream:wrong_type", "STREAM-045", needs=("streams",))
def set_stream_refuses_other_devices(dev: Device) -> None:
    """set_stream of a stream of the CPU raises and leaves the current stream."""
    for setter in _SETTERS.values():
        with dev.stream(0) as current:
            raised(partial(_set_to_the_cpu, setter(dev)))
            assert dev.current_stream(0) == current
