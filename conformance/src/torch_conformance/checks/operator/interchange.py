# SPDX-License-Identifier: BSD-3-Clause
"""Tensors are exchanged with other libraries: by DLPack, and with NumPy."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, raised, ramp

_EXCHANGED: dict[str, Callable[[Tensor], Tensor]] = {
    "same_memory": lambda x: x,
    "strided": lambda x: x.t()[1:, ::2],
    "dtype": lambda x: x.to(torch.int16),
}


@check("operator/dlpack", "OP-027", cases=_EXCHANGED, needs=("plain_tensors", "addresses"))
def tensors_are_exchanged_by_dlpack(dev: Device, case: str) -> None:
    """torch.from_dlpack of a device tensor shares its memory, geometry and data type."""
    x = _EXCHANGED[case](ramp((4, 6)).to(dev.device(), copy=True))
    y = torch.utils.dlpack.from_dlpack(x)
    assert (y.device, y.dtype) == (x.device, x.dtype)
    assert (y.shape, y.stride(), y.data_ptr()) == (x.shape, x.stride(), x.data_ptr())
    y.fill_(3)
    dev.assert_equal(x, torch.full(x.shape, 3, dtype=x.dtype))


_IN_CAPSULE: dict[str, Callable[[Tensor], Tensor]] = {
    "share": lambda x: x,
    "view": lambda x: x.t()[1:, ::2],
}


def _from_a_capsule(x: Tensor) -> Tensor:
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert y.device == x.device
    assert (y.data_ptr(), y.stride()) == (x.data_ptr(), x.stride())
    return y


@check("operator/dlpack_capsule", "OP-028", cases=_IN_CAPSULE, needs=("plain_tensors", "addresses"))
def dlpack_capsules_share_memory(dev: Device, case: str) -> None:
    """A tensor from a DLPack capsule shares memory and geometry with the one that went in."""
    expected = ramp((4, 6))
    whole = expected.to(dev.device(), copy=True)
    y = _from_a_capsule(_IN_CAPSULE[case](whole))
    _IN_CAPSULE[case](expected).fill_(3)
    y.fill_(3)
    dev.assert_equal(whole, expected)


@check("operator/dlpack_capsule:outlive", "OP-028", needs=("plain_tensors", "addresses"))
def dlpack_capsules_keep_memory_alive(dev: Device) -> None:
    """A tensor from a DLPack capsule keeps the memory when the one that went in is gone."""
    y = _from_a_capsule(ramp((4, 6)).to(dev.device(), copy=True))
    torch.full((4, 6), -1.0, device=dev.device())
    dev.assert_equal(y, ramp((4, 6)))


@check("operator/dlpack_capsule:fixed", "OP-028", needs=("plain_tensors", "addresses"))
def memory_from_a_dlpack_capsule_does_not_grow(dev: Device) -> None:
    """A storage from a DLPack capsule refuses to grow, and the tensor that went in is whole."""
    x = ramp((4, 6)).to(dev.device(), copy=True)
    storage = _from_a_capsule(x).untyped_storage()
    error = raised(lambda: storage.resize_(2 * storage.nbytes()))
    assert isinstance(error, RuntimeError), f"resize_ of memory that DLPack lent: {error!r}"
    dev.assert_equal(x, ramp((4, 6)))


@check("operator/dlpack_capsule:to_host", "OP-028", needs=("plain_tensors", "addresses"))
def dlpack_capsules_can_be_asked_for_on_the_host(dev: Device) -> None:
    """A DLPack capsule that is asked for on the CPU holds the values of the device tensor."""
    x = ramp((4, 6)).to(dev.device(), copy=True)
    capsule = x.__dlpack__(dl_device=(torch.utils.dlpack.DLDeviceType.kDLCPU, 0))
    assert torch.equal(torch.utils.dlpack.from_dlpack(capsule), ramp((4, 6)))


@check("operator/dlpack_host:refused", "OP-028", needs=("accelerator",))
def numpy_is_refused_device_memory(dev: Device) -> None:
    """numpy.from_dlpack of a device tensor raises."""
    import numpy

    x = ramp((4, 6)).to(dev.device())
    error = raised(lambda: numpy.from_dlpack(x))
    assert isinstance(error, (RuntimeError, BufferError, ValueError, TypeError)), repr(error)


@check("operator/dlpack_host:brought", "OP-028", needs=("accelerator",))
def numpy_arrays_reach_the_device_by_a_copy(dev: Device) -> None:
    """An array of numpy that is brought to the device is a copy there."""
    import numpy

    array = numpy.arange(6, dtype=numpy.float32)
    x = torch.from_dlpack(array).to(dev.device())
    array[:] = 0
    dev.assert_equal(x, torch.arange(6.0))
