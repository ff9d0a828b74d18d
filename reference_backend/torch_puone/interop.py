# SPDX-License-Identifier: BSD-3-Clause
"""Sharing memory, without a copy, with other libraries that use the same hardware in this process.

To PyTorch a tensor here is of PrivateUse1, which DLPack calls kDLExtDev and no other library takes.
But the memory may well be memory that others know: the driver says by which name. Under this name
tensors leave, and come in:

    theirs = torch.from_dlpack(torch.puone.interop.export(ours))
    ours = torch.puone.interop.from_dlpack(theirs)

A driver whose memory nobody else can use, as that of `sim`, makes all of it NotImplementedError.

The stream protocol of DLPack orders the work before the exchange; for the work after it the two
sides wait for each other, as they would for two streams. That includes the end: whoever drops the
last tensor gives the memory back at once, so work queued on it has to be waited for before.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _C
from ._lazy import _lazy_init

__all__ = ["export", "from_dlpack"]

_NO_ORDER = -1  # DLPack: the consumer takes care of the order itself
_VERSION = (1, 0)  # the newest major version of DLPack that torch writes and reads


class _Exported:
    """A tensor as other libraries see it: the producer's side of the DLPack protocol."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._device = _C.dlpack_device(tensor.device.index)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The DLPack device type of the driver's memory, and its number of the device."""
        return self._device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of the tensor, after `stream`, a native stream, was made to wait for its work.

        Without a stream it is the native runtime's default stream that waits; -1 lets none wait.
        """
        if dl_device not in (None, self._device):
            raise BufferError(f"the tensor is on DLPack device {self._device}, not {dl_device}")
        index = self._tensor.device.index
        capsule = self._tensor.__dlpack__(max_version=max_version, copy=copy)
        _C.dlpack_relabel_export(capsule, index)
        if stream != _NO_ORDER:
            _C.native_stream_waits(_C.native_default_stream() if stream is None else stream, index)
        return capsule


def export(tensor: torch.Tensor) -> _Exported:
    """Wrap `tensor` for any `from_dlpack()`, which then shares its memory.

    Raises BufferError for what DLPack cannot carry: tensors that require grad, lazy conjugate and
    negative views, layouts that are not strided.
    """
    _lazy_init()
    if tensor.device.type != "puone":
        raise ValueError(f"only tensors of puone are exported here, not of {tensor.device}")
    if tensor.is_neg():  # torch would export the values before the negation
        raise BufferError("Can't export tensors with the negative bit set")
    if tensor.requires_grad or tensor.is_conj() or tensor.layout != torch.strided:
        tensor.__dlpack__()  # raises torch's own message for each of these
    return _Exported(tensor)


def from_dlpack(source: Any) -> torch.Tensor:
    """A tensor of puone that shares the memory of `source`, and keeps it until it dies.

    `source` has `__dlpack__()` and `__dlpack_device__()` and is in memory of one of the driver's
    devices, whoever allocated it; BufferError if not. The current stream of the device waits for
    the work that is queued on it.
    """
    _lazy_init()
    index = _C.dlpack_index(*map(int, source.__dlpack_device__()))
    stream = _C.native_stream(index)
    try:
        capsule = source.__dlpack__(stream=stream, max_version=_VERSION)
    except TypeError:  # of a time when capsules had no version
        capsule = source.__dlpack__(stream=stream)
    _C.dlpack_relabel_import(capsule, index)
    tensor: torch.Tensor = torch._C._from_dlpack(capsule)
    return tensor
