# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events, over the device-independent torch.Stream and torch.Event."""

from __future__ import annotations

from types import TracebackType

import torch
from torch.types import Device
from typing_extensions import Self

from . import _C
from ._lazy import _lazy_init
from ._registration import NAME
from ._utils import _get_device_index


class _OnThisDevice(type):
    """Streams and events of this device type are instances, also those that torch itself made."""

    def __instancecheck__(cls, instance: object) -> bool:
        base = torch.Stream if issubclass(cls, torch.Stream) else torch.Event
        return isinstance(instance, base) and instance.device.type == NAME


class Stream(torch.Stream, metaclass=_OnThisDevice):
    """A queue of device work that runs in order, taken from the device's pool.

    Args:
        device: where; the current device if None or negative.
        priority: lower is more urgent; a value outside `priority_range()` is clamped.
        stream_id, device_index, device_type: an existing stream, as torch.Stream takes them.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **triple: int) -> Self:
        _lazy_init()
        if not triple:
            index = -1 if device is None else _get_device_index(device, optional=True)
            triple = _triple(_C.stream_from_pool(index, priority))
        return super().__new__(cls, **triple)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(least, greatest) priority; the greatest is the lowest number."""
        _lazy_init()
        return _C.stream_priority_range()

    def wait_event(self, event: torch.Event) -> None:
        """Make later work of this stream wait for what `event` has recorded."""
        if event.event_id == 0 and _C.sanitizer_is_enabled():  # PyTorch drops such a wait
            _C.sanitizer_never_recorded(self.stream_id, self.device_index, self.device_type)
        super().wait_event(event)

    @property
    def priority(self) -> int:
        """Priority that the stream really has, after clamping."""
        return _C.stream_priority(self.stream_id, self.device_index, self.device_type)

    def __repr__(self) -> str:
        return f"<torch.{NAME}.Stream device={self.device} id={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, of its native handle.

    Work queued here and work that the library queues run in one order. The library keeps the stream
    and has to keep it alive while it is used here. The same handle gives the same stream.

    Args:
        stream_ptr: the native handle, as the library's driver gives it (for driver `cuda`, a
            `cudaStream_t`).
        device: of the stream; the current device if None.

    Raises NotImplementedError where the driver cannot wrap streams, RuntimeError for a handle that
    is no stream of the device. As torch.cuda.ExternalStream.
    """

    def __new__(cls, stream_ptr: int, device: Device = None) -> Self:
        _lazy_init()
        index = _get_device_index(device, optional=True)
        return super().__new__(cls, **_triple(_C.stream_from_external(stream_ptr, index)))


class Event(torch.Event, metaclass=_OnThisDevice):
    """A mark in a stream's work, which the host and other streams can wait for.

    Makes a plain torch.Event of this device type: torch 2.13 refuses instances of a subclass as the
    argument of `torch.Event.elapsed_time()` and `torch.Stream.record_event()`.

    Args:
        enable_timing: whether `elapsed_time()` may be asked of it.
        blocking: `synchronize()` sleeps rather than spins. With `enable_timing` it always does.
        interprocess: not supported; raises NotImplementedError.
    """

    def __new__(  # type: ignore[misc]  # returns another class, see above
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        if interprocess:
            raise NotImplementedError(
                f"{NAME} has no events between processes, because the contract with drivers shares "
                "memory only (csrc/hal/ipc.h). Work on a tensor is done when it is sent; after "
                "that, synchronise before another process goes on"
            )
        _lazy_init()
        if blocking and not enable_timing:  # torch.Event takes `blocking` and drops it
            return _C.blocking_event()
        return torch.Event(device=NAME, enable_timing=enable_timing)


class StreamContext:
    """Context manager that makes a stream, and its device, current; None makes it a no-op.

    On exit the previous stream of that device and the previous device are current again. It may be
    entered again, also while it is active.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous: list[tuple[int, Stream]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            _lazy_init()
            self._previous.append((_C.current_device(), current_stream(self.stream.device)))
            set_stream(self.stream)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.stream is not None:
            device, stream = self._previous.pop()
            set_stream(stream)
            _C.set_device(device)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context manager that makes `stream` current; see StreamContext."""
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """The calling thread's current stream of the device."""
    _lazy_init()
    return _wrap(_C.current_stream(_get_device_index(device, optional=True)))


def default_stream(device: Device = None) -> Stream:
    """The stream of the device that is current until another one is set."""
    _lazy_init()
    return _wrap(_C.default_stream(_get_device_index(device, optional=True)))


def get_stream_from_external(data_ptr: int, device: Device = None) -> Stream:
    """The ExternalStream of a native handle, by the name that torch.xpu and torch.cuda have."""
    return ExternalStream(data_ptr, device)


def set_stream(stream: torch.Stream) -> None:
    """Make `stream`, and its device, the calling thread's current ones."""
    _lazy_init()
    _C.set_stream(stream.stream_id, stream.device_index, stream.device_type)
    _C.set_device(stream.device_index)


def _wrap(triple: _C.StreamTriple) -> Stream:
    return Stream(**_triple(triple))


def _dedicated_stream(device: int) -> Stream:
    """A stream that the pool gives to nobody, for as long as the process lives."""
    _lazy_init()
    return Stream(**_triple(_C.take_dedicated_stream(device)))


def _triple(triple: _C.StreamTriple) -> dict[str, int]:
    return dict(zip(("stream_id", "device_index", "device_type"), triple, strict=True))
