# SPDX-License-Identifier: BSD-3-Clause
"""Which devices there are, what they are, and which one this thread uses."""

from __future__ import annotations

from types import TracebackType

import torch
from torch.types import Device

from . import _C
from ._lazy import _lazy_init
from ._utils import _get_device_index


def device_count() -> int:
    """Number of devices; 0 without a usable driver. Touches no device and never raises."""
    return _C.device_count()


def is_available() -> bool:
    """Whether there is at least one device. Touches no device and never raises."""
    return device_count() > 0


def current_device() -> int:
    """Index of the calling thread's current device."""
    _lazy_init()
    return _C.current_device()


def set_device(device: Device) -> None:
    """Make `device` the calling thread's current device; a negative index changes nothing."""
    index = _get_device_index(device)
    if index >= 0:
        _lazy_init()
        _C.set_device(index)


def _exchange_device(device: int) -> int:
    """Make `device` current and return the index of the one before; negative: change nothing."""
    if device < 0:
        return -1
    _lazy_init()
    return _C.exchange_device(device)


def _maybe_exchange_device(device: int) -> int:
    """The same, under the name that torch's context managers expect for the way back."""
    return _exchange_device(device)


class device:  # noqa: N801 - named as torch.device and its counterparts are
    """Context manager that makes a device current: an int, "puone:1", a torch.device or None.

    None and "puone" keep the current device; a negative index makes it a no-op.
    """

    def __init__(self, device: Device) -> None:
        self.idx = _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _maybe_exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801 - named as its counterparts are
    """Context manager that makes the device of a tensor or storage current; a no-op for others."""

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage | torch.TypedStorage) -> None:
        super().__init__(_get_device_index(obj.device) if obj.device.type == "puone" else -1)


def synchronize(device: Device = None) -> None:
    """Wait until all work queued on the device is done, and report the errors it met."""
    _lazy_init()
    _C.synchronize(_get_device_index(device, optional=True))


def get_device_properties(device: Device = None) -> _C.DeviceProperties:
    """Name, total memory in bytes, capability and number of multiprocessors of the device."""
    _lazy_init()
    return _C.device_properties(_get_device_index(device, optional=True))


def get_device_name(device: Device = None) -> str:
    """Name of the device, for people."""
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Major and minor compute capability; (0, 0) where the idea has no meaning."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def is_tf32_supported() -> bool:
    """Whether float32 matrix products may be computed in TF32: never, they are exact float32."""
    return False


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether kernels and copies on `device` may address the memory of `peer_device`."""
    _lazy_init()
    return _C.can_access_peer(
        _get_device_index(device, optional=True), _get_device_index(peer_device)
    )
