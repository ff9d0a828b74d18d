# SPDX-License-Identifier: BSD-3-Clause
"""Streams as objects: how they are made and compared, their priorities, and their handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, while_held
from torch_conformance.checks._vectors import full, zeros


@check("stream/create:default_device", "STREAM-001", needs=("streams",))
def streams_are_created_on_the_current_device(dev: Device) -> None:
    """torch.Stream() is a stream of the current device."""
    assert torch.Stream().device == dev.device(torch.accelerator.current_device_index())


@check("stream/create:type", "STREAM-001", needs=("streams",))
def streams_are_created_by_type(dev: Device) -> None:
    """torch.Stream takes the device type without an index."""
    assert torch.Stream(device=dev.type).device.type == dev.type


@check("stream/create:indexed", "STREAM-001", needs=("streams",))
def streams_are_created_on_the_device_asked_for(dev: Device) -> None:
    """torch.Stream takes a device with an index."""
    last = dev.device(dev.count - 1)
    assert torch.Stream(device=last).device == last


@check("stream/create:every_device", "STREAM-001", needs=("streams",))
def streams_of_every_device_work(dev: Device) -> None:
    """A new stream of every device is usable at once."""
    for index in range(dev.count):
        with dev.stream(index) as stream:
            dev.assert_equal(torch.ones(3, device=stream.device), torch.ones(3))


@check("stream/create:device_attributes", "STREAM-001", needs=("streams",))
def streams_know_their_device(dev: Device) -> None:
    """A stream has the index of its device and a number."""
    stream = dev.stream(0)
    assert stream.device_index == 0
    assert isinstance(stream.stream_id, int)
    assert torch.device(dev.type, stream.device_index) == stream.device


@check("stream/create:module_class", "STREAM-001", needs=("streams",))
def streams_are_created_by_the_module(dev: Device) -> None:
    """torch.<type>.Stream makes streams of the device asked for that are usable at once."""
    last = dev.device(dev.count - 1)
    assert dev.module.Stream(last).device == last
    stream = dev.module.Stream()
    assert isinstance(stream, torch.Stream)
    with stream:
        dev.assert_equal(torch.ones(3, device=dev.type), torch.ones(3))


def _current_in(dev: Device, stream: torch.Stream) -> torch.Stream:
    """What is current inside a stream: another handle of it."""
    with stream:
        return dev.current_stream(0)


def _rebuilt(stream: torch.Stream) -> torch.Stream:
    return torch.Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )


#: What holds for two streams of device 0.
_IDENTITY: dict[str, Callable[[Device, torch.Stream, torch.Stream], bool]] = {
    "equal": lambda dev, a, b: _current_in(dev, a) == a,
    "unequal": lambda dev, a, b: (
        a != b and a.stream_id != b.stream_id and a != dev.current_stream(0)
    ),
    "hash": lambda dev, a, b: len({a, _current_in(dev, a), b}) == 2,
    "rebuilt": lambda dev, a, b: _rebuilt(a) == a and hash(_rebuilt(a)) == hash(a),
    "other_type": lambda dev, a, b: a != torch.Stream(device="cpu") and (a == 3) is False,
    "text": lambda dev, a, b: dev.type in repr(a),
}


@check("stream/identity", "STREAM-002", cases=_IDENTITY, needs=("streams",))
def streams_compare_by_identity(dev: Device, case: str) -> None:
    """Two handles of a stream are equal and hash alike; other streams are not equal."""
    a, b = dev.stream(0), dev.stream(0)
    assert _IDENTITY[case](dev, a, b), f"it does not hold for {a!r} and {b!r}"


@check("stream/identity:other_device", "STREAM-002", needs=("streams",))
def streams_of_different_devices_are_not_equal(dev: Device) -> None:
    """The current streams of two devices are not equal."""
    dev.require("multi_device")
    assert dev.current_stream(0) != dev.current_stream(dev.count - 1)


_PRIORITIES = {"high": -1, "low": 1, "default": 0}


@check("stream/priority", "STREAM-003", cases=_PRIORITIES, needs=("stream_priorities",))
def priorities_are_accepted(dev: Device, case: str) -> None:
    """Streams of a high, low and default priority are made and work."""
    try:
        stream = dev.stream(0, priority=_PRIORITIES[case])
    except (RuntimeError, ValueError) as error:
        raise AssertionError(f"priority {_PRIORITIES[case]} was refused: {error}") from error
    _verify_usable(dev, stream)


@check("stream/priority:out_of_range", "STREAM-003", needs=("stream_priorities",))
def priorities_out_of_range_are_clamped_or_refused(dev: Device) -> None:
    """A stream of a priority that no device has works or is refused with an exception."""
    try:
        stream = dev.stream(0, priority=-1000)
    except (RuntimeError, ValueError):
        return
    _verify_usable(dev, stream)


@check("stream/priority:read_back", "STREAM-058", needs=("stream_priorities",))
def priorities_can_be_read(dev: Device) -> None:
    """A stream of the module has, on each device, the priority that it was made with."""
    make, ask = dev.module.Stream, getattr(dev.module.Stream, "priority_range", None)
    if ask is None or not hasattr(make, "priority"):
        dev.unsupported("streams of the device module have no priority and priority_range()")
    least, greatest = ask()
    assert greatest <= 0 <= least, f"least {least}, greatest {greatest}"
    for index in {0, dev.count - 1}:
        streams = {priority: make(index, priority) for priority in range(greatest, least + 1)}
        assert {p: stream.priority for p, stream in streams.items()} == {p: p for p in streams}
        for outside, nearest in ((greatest - 7, greatest), (least + 7, least)):
            assert make(index, outside).priority == nearest


@check("stream/priority:mixed_order", "STREAM-003", needs=("stream_priorities", "delay"))
def priorities_change_no_order(dev: Device) -> None:
    """Work of high priority that waits for work of low priority runs after it."""
    x = zeros(dev)
    dev.synchronize()
    low, high = dev.stream(0, priority=0), dev.stream(0, priority=-1)
    with low:
        dev.delay(LATE_MS)
        x.fill_(1)
    high.wait_stream(low)
    with high:
        x.mul_(3)
    dev.assert_equal(x, full(3))


def _verify_usable(dev: Device, stream: torch.Stream) -> None:
    x = zeros(dev)
    dev.synchronize()
    with stream:
        x.fill_(1).add_(1)
    stream.synchronize()
    dev.assert_equal(x, full(2))


@check("stream/native_handle:integer", "STREAM-004", needs=("streams", "native_handle"))
def native_handles_are_integers(dev: Device) -> None:
    """native_handle is a number other than zero."""
    stream: Any = dev.stream(0)  # Torch's stubs lack native_handle.
    assert isinstance(stream.native_handle, int) and stream.native_handle != 0


@check("stream/native_handle:distinct", "STREAM-004", needs=("streams", "native_handle"))
def native_handles_are_distinct(dev: Device) -> None:
    """Two streams have different native handles."""
    a: Any = dev.stream(0)
    b: Any = dev.stream(0)
    assert a.native_handle != b.native_handle


@check("stream/native_handle:stable", "STREAM-004", needs=("streams", "native_handle"))
def native_handles_do_not_change(dev: Device) -> None:
    """Every handle of a stream has the same native handle."""
    stream: Any = dev.stream(0)
    handle = stream.native_handle
    with stream:
        current: Any = dev.current_stream(0)
        assert current.native_handle == handle


@check("stream/external", "STREAM-060", needs=("streams", "native_handle", "delay"))
def a_stream_of_a_native_handle_is_that_queue(dev: Device) -> None:
    """A stream that is made of another one's handle is busy and idle with it, in one order."""
    owner: Any = dev.stream(0)  # Torch's stubs lack native_handle.
    same = _external(dev)(owner.native_handle, device=dev.device(0))
    x = zeros(dev)
    dev.synchronize()
    with owner:
        assert not while_held(dev, same.query), "it is idle while its owner is busy"
        x.fill_(1)
    with same:
        y = x + 1
    same.synchronize()
    assert owner.query(), "its owner is busy after it was synchronised"
    dev.assert_equal(y, full(2))


@check(
    "stream/external:current_device",
    "STREAM-060",
    needs=("streams", "native_handle", "multi_device", "device_guard"),
)
def a_stream_of_a_native_handle_is_of_the_current_device(dev: Device) -> None:
    """Without a device, a stream that is made of a handle belongs to the device that is current."""
    external, last = _external(dev), dev.device(dev.count - 1)
    owner: Any = dev.stream(last.index)
    with torch.accelerator.device_index(last.index):
        same = external(owner.native_handle)
    assert same.device == last
    assert same.native_handle == owner.native_handle


def _external(dev: Device) -> Any:
    """The class of streams that are made of native handles."""
    external = getattr(dev.module, "ExternalStream", None)
    if external is None:
        dev.unsupported(f"{dev.module.__name__} has no ExternalStream")
    return external
