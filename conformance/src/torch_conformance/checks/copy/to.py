# SPDX-License-Identifier: BSD-3-Clause
"""to(): when it returns the same tensor, its signatures, and gradients through copies."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, ramp
from torch_conformance.checks.copy._copies import DIRECTIONS, CopyTo, Ends

#: A tensor, made from one on the device, and what to() is given that changes nothing about it.
_SAME: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, object]]] = {
    "device": lambda x: (x, x.device),
    "string": lambda x: (x, str(x.device)),
    "dtype": lambda x: (x, x.dtype),
    "other": lambda x: (x, torch.empty(1, device=x.device)),
    "cpu": lambda x: (x.cpu(), "cpu"),
}


@check("copy/to_same", "COPY-031", cases=_SAME)
def to_without_a_change_returns_the_same_tensor(dev: Device, case: str) -> None:
    """to() that changes nothing returns self; with copy=True it returns a new tensor."""
    x, argument = _SAME[case](ramp((3, 4)).to(dev.device()))
    same = x.to(argument)  # type: ignore[call-overload]  # any of the overloads
    assert same is x
    other = x.to(argument, copy=True)
    assert other is not x
    other.zero_()
    dev.assert_equal(x, ramp((3, 4)))


#: Signatures of to() that ask for a device, and the data type they ask for.
_TO_FORMS: dict[str, tuple[CopyTo, torch.dtype]] = {
    "device": (lambda x, device: x.to(device), torch.float32),
    "string": (lambda x, device: x.to(device.type), torch.float32),
    "dtype": (lambda x, device: x.to(device).to(torch.int16), torch.int16),
    "both": (lambda x, device: x.to(device, torch.int16), torch.int16),
    "like": (lambda x, device: x.to(torch.empty(1, dtype=torch.int16, device=device)), torch.int16),
    "keyword": (
        lambda x, device: x.to(device=device, dtype=torch.int16, non_blocking=True),
        torch.int16,
    ),
}


@check("copy/to_forms", "COPY-023", cases=_TO_FORMS)
def every_form_of_to_reaches_the_device(dev: Device, case: str) -> None:
    """Each signature of to() gives the asked device and data type."""
    to, dtype = _TO_FORMS[case]
    source = ramp((3, 4))
    result = to(source, dev.device())
    assert result.device.type == dev.type
    dev.assert_equal(result, source.to(dtype))


@check("copy/to_memory_format", "COPY-006", cases=DIRECTIONS)
def to_honours_memory_format(dev: Device, case: str) -> None:
    """to(memory_format=channels_last) gives those strides while moving."""
    source_on, target_on = DIRECTIONS[case](dev)
    source = ramp((2, 3, 4, 5))
    moved = source.to(source_on).to(target_on, memory_format=torch.channels_last, copy=True)
    assert moved.is_contiguous(memory_format=torch.channels_last)
    dev.assert_equal(moved, source)


@check("copy/to_default_index", "COPY-023", needs=("multi_device",))
def to_without_an_index_means_the_current_device(dev: Device) -> None:
    """to("<type>") follows the current device."""
    assert ramp((2,)).to(dev.type).device == dev.device(torch.accelerator.current_device_index())
    before = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(1)
    try:
        assert ramp((2,)).to(dev.type).device == dev.device(1)
    finally:
        torch.accelerator.set_device_index(before)


#: What a copy needs, where it begins and ends, and the copy to that end.
_DIFFERENTIABLE: dict[str, tuple[tuple[str, ...], Ends, CopyTo]] = {
    "to_device": ((), DIRECTIONS["h2d"], lambda x, end: x.to(end)),
    "to_cpu": ((), DIRECTIONS["d2h"], lambda x, end: x.cpu()),
    "copy": ((), DIRECTIONS["h2d"], lambda x, end: torch.zeros(3, 4, device=end).copy_(x)),
    "dtype": (("bfloat16",), DIRECTIONS["d2d"], lambda x, end: x.to(torch.bfloat16).to(x.dtype)),
    "peer": (
        ("multi_device",),
        lambda dev: (dev.device(0), dev.device(1)),
        lambda x, end: x.to(end),
    ),
}


@check("copy/autograd", "COPY-024", cases=_DIFFERENTIABLE)
def gradients_flow_through_copies(dev: Device, case: str) -> None:
    """A copy is differentiable: the gradient comes back to where the input lives."""
    needs, ends, copy = _DIFFERENTIABLE[case]
    dev.require(*needs)
    start, end = ends(dev)
    leaf = ramp((3, 4)).to(start, copy=True).requires_grad_()
    weight = ramp((3, 4)) * 0.5
    out = copy(leaf, end) * weight.to(end)
    out.backward(torch.ones_like(out))
    assert leaf.grad is not None
    assert leaf.grad.device == leaf.device
    dev.assert_close(leaf.grad, weight)
