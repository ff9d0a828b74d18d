# SPDX-License-Identifier: BSD-3-Clause
"""A stream that is entered is current inside, with its device; after it the former one is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from torch_conformance.authoring.api import Device, check, in_thread, raised


@contextmanager
def _restored(dev: Device) -> Iterator[None]:
    """Fail unless the stream that is current on device 0 now is current at the end."""
    before = dev.current_stream(0)
    yield
    assert dev.current_stream(0) == before, "the former stream is not current again"


@check("stream/context:selects", "STREAM-041", needs=("streams",))
def a_stream_is_current_inside(dev: Device) -> None:
    """A stream as a context is current inside it."""
    a = dev.stream(0)
    with _restored(dev), a:
        assert dev.current_stream(0) == a


@check("stream/context:restores", "STREAM-041", needs=("streams",))
def the_former_stream_is_current_again(dev: Device) -> None:
    """After a stream as a context the former stream is current."""
    with _restored(dev), dev.stream(0):
        torch.ones(3, device=dev.device(0))


@check("stream/context:default", "STREAM-041", needs=("streams",))
def the_stream_of_a_new_thread_is_current_again(dev: Device) -> None:
    """In a new thread the default stream is current, and again after a stream as a context."""
    default, stream = dev.default_stream(0), dev.stream(0)

    def work() -> None:
        for _ in range(2):
            assert dev.current_stream(0) == default, "not the default stream"
            with stream:
                assert dev.current_stream(0) == stream
            assert dev.current_stream(0) == default, "the default stream is not current again"

    in_thread(work)


@check("stream/context:after_exception", "STREAM-041", needs=("streams",))
def exceptions_leave_a_stream(dev: Device) -> None:
    """An exception passes through a stream as a context, and the former stream is current."""

    def work() -> None:
        with dev.stream(0):
            raise KeyError("on purpose")

    with _restored(dev):
        assert isinstance(raised(work), KeyError)


@check("stream/context:nested", "STREAM-041", needs=("streams",))
def streams_can_be_nested(dev: Device) -> None:
    """Streams can be entered inside one another, also one inside itself."""
    a, b = dev.stream(0), dev.stream(0)
    with _restored(dev), a:
        with b:
            assert dev.current_stream(0) == b
            with a:
                assert dev.current_stream(0) == a
            assert dev.current_stream(0) == b
        assert dev.current_stream(0) == a


@check("stream/context:reentered", "STREAM-041", needs=("streams",))
def a_stream_can_be_entered_again(dev: Device) -> None:
    """A stream can be entered and left several times."""
    a = dev.stream(0)
    for _ in range(3):
        with _restored(dev), a:
            assert dev.current_stream(0) == a


@check("stream/context:returns_itself", "STREAM-041", needs=("streams",))
def a_stream_enters_as_itself(dev: Device) -> None:
    """`with stream as entered` gives the stream itself."""
    a = dev.stream(0)
    with _restored(dev), a as entered:
        assert entered is a


@check("stream/context:module_stream", "STREAM-041", needs=("streams",))
def the_modules_context_selects_a_stream(dev: Device) -> None:
    """Inside torch.<type>.stream(s) the stream is current; after it the former one is."""
    a = dev.stream(0)
    with _restored(dev), dev.module.stream(a):
        assert dev.current_stream(0) == a


@check("stream/context:module_none", "STREAM-041", needs=("streams",))
def the_modules_context_of_none_selects_nothing(dev: Device) -> None:
    """torch.<type>.stream(None) leaves the current stream."""
    a = dev.stream(0)
    with _restored(dev), a, dev.module.stream(None):
        assert dev.current_stream(0) == a


@check("stream/context:module_after_exception", "STREAM-041", needs=("streams",))
def exceptions_leave_the_modules_context(dev: Device) -> None:
    """An exception passes through torch.<type>.stream(s), and the former stream is current."""

    def work() -> None:
        with dev.module.stream(dev.stream(0)):
            raise KeyError("on purpose")

    with _restored(dev):
        assert isinstance(raised(work), KeyError)


@check("stream/context:module_nested", "STREAM-041", needs=("streams",))
def the_modules_contexts_nest_and_are_entered_again(dev: Device) -> None:
    """Contexts of torch.<type>.stream() nest, also with streams, and can be entered again."""
    a, b = dev.stream(0), dev.stream(0)
    context = dev.module.stream(a)
    for _ in range(2):
        with _restored(dev), context:
            with b:
                assert dev.current_stream(0) == b
                with dev.module.stream(a):
                    assert dev.current_stream(0) == a
                assert dev.current_stream(0) == b
            assert dev.current_stream(0) == a


@contextmanager
def _from_device_0(dev: Device) -> Iterator[torch.Stream]:
    """A stream of device 1 while device 0 is current; fails unless that is so again at the end."""
    with torch.accelerator.device_index(0):
        outer = dev.current_stream(1)
        yield dev.stream(1)
        assert torch.accelerator.current_device_index() == 0, "device not restored"
        assert dev.current_stream(1) == outer, "the other device's stream was not restored"


def _verify_current(dev: Device, stream: torch.Stream) -> None:
    assert torch.accelerator.current_device_index() == 1
    assert dev.current_stream(1) == stream


@check("stream/context_device:selects_device", "STREAM-042", needs=("streams", "multi_device"))
def stream_context_switches_the_device(dev: Device) -> None:
    """Inside a stream of another device the stream and its device are current."""
    with _from_device_0(dev) as stream, stream:
        _verify_current(dev, stream)


@check("stream/context_device:restores_device", "STREAM-042", needs=("streams", "multi_device"))
def stream_context_restores_the_device(dev: Device) -> None:
    """After a stream of another device the former device and both streams are current."""
    with _from_device_0(dev) as stream, _restored(dev), stream:
        torch.ones(2, device=stream.device)


@check("stream/context_device:after_exception", "STREAM-042", needs=("streams", "multi_device"))
def exceptions_restore_the_device(dev: Device) -> None:
    """An exception that leaves a stream of another device restores the device and both streams."""
    with _from_device_0(dev) as stream:

        def work() -> None:
            with stream:
                raise KeyError("on purpose")

        assert isinstance(raised(work), KeyError)


@check("stream/context_device:allocates_there", "STREAM-042", needs=("streams", "multi_device"))
def stream_context_decides_where_tensors_are_made(dev: Device) -> None:
    """Inside a stream of another device a tensor of the device type is made on that device."""
    with _from_device_0(dev) as stream, stream:
        assert torch.ones(2, device=dev.type).device == dev.device(1)


@check("stream/context_device:set_stream", "STREAM-042", needs=("streams", "multi_device"))
def set_stream_switches_the_device(dev: Device) -> None:
    """set_stream to a stream of another device makes that device current as well."""
    with _from_device_0(dev) as stream:
        outer = dev.current_stream(1)
        torch.accelerator.set_stream(stream)
        try:
            assert torch.accelerator.current_stream() == stream
            _verify_current(dev, stream)
        finally:
            torch.accelerator.set_stream(outer)
            torch.accelerator.set_device_index(0)


@check("stream/context_device:module_stream", "STREAM-042", needs=("streams", "multi_device"))
def the_modules_context_switches_the_device(dev: Device) -> None:
    """Inside torch.<type>.stream(s) of another device the stream and its device are current."""
    with _from_device_0(dev) as stream, dev.module.stream(stream):
        _verify_current(dev, stream)


@check(
    "stream/context_device:module_after_exception",
    "STREAM-042",
    needs=("streams", "multi_device"),
)
def exceptions_in_the_modules_context_restore_the_device(dev: Device) -> None:
    """An exception that leaves torch.<type>.stream(s) restores the device and both streams."""
    with _from_device_0(dev) as stream:

        def work() -> None:
            with dev.module.stream(stream):
                raise KeyError("on purpose")

        assert isinstance(raised(work), KeyError)


@check("stream/context_device:nested", "STREAM-042", needs=("streams", "multi_device"))
def contexts_of_two_devices_nest(dev: Device) -> None:
    """Streams of two devices, entered in one another, restore device and streams level by level."""
    with _from_device_0(dev) as stream, _restored(dev), stream:
        inner = dev.stream(0)
        with inner:
            assert torch.accelerator.current_device_index() == 0
            assert (dev.current_stream(0), dev.current_stream(1)) == (inner, stream)
        _verify_current(dev, stream)
