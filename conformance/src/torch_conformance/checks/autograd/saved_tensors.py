# SPDX-License-Identifier: BSD-3-Clause
"""Tensors that are saved for backward can be packed, or kept on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, leaf, noise, raised
from torch_conformance.checks._functions import Function


def _exp_sin(x: Tensor) -> Tensor:
    return x.exp().sin()


def _exp_sin_nested(x: Tensor) -> Tensor:
    """What exp saves goes through hooks of its own."""
    seen = []

    def double(tensor: Tensor) -> Tensor:
        seen.append(tensor)
        return tensor * 2

    with torch.autograd.graph.saved_tensors_hooks(double, lambda held: held / 2):
        y = x.exp()
    assert seen, "the inner hooks are not used"
    return y.sin()


#: pack, unpack for a device, and what runs under these hooks.
_PACKINGS: dict[
    str, tuple[Callable[[Tensor], Any], Callable[[Any, torch.device], Tensor], Function]
] = {
    "offload": (lambda x: x.cpu(), lambda held, device: held.to(device), _exp_sin),
    "quantise": (lambda x: (x.half(), x.dtype), lambda held, _: held[0].to(held[1]), _exp_sin),
    "nested": (lambda x: x.cpu(), lambda held, device: held.to(device), _exp_sin_nested),
}


@check("autograd/saved_hooks", "GRAD-005", cases=_PACKINGS)
def saved_tensors_can_be_packed(dev: Device, case: str) -> None:
    """pack sees what is saved, on its device; backward uses what unpack returns."""
    pack, unpack, forward = _PACKINGS[case]
    packed: list[torch.device] = []
    unpacked: list[Any] = []

    def noting_pack(tensor: Tensor) -> Any:
        packed.append(tensor.device)
        return pack(tensor)

    def noting_unpack(held: Any) -> Tensor:
        unpacked.append(held)
        return unpack(held, dev.device())

    x = leaf(dev.device(), 4, 3)
    with torch.autograd.graph.saved_tensors_hooks(noting_pack, noting_unpack):
        out = forward(x)
    assert {device.type for device in packed} == {dev.type}
    assert not unpacked
    out.sum().backward()
    assert len(unpacked) == len(packed)
    host = noise((4, 3))
    dev.assert_close(x.grad, host.exp().cos() * host.exp(), rtol=0.05, atol=0.02)


@check("autograd/saved_hooks_off", "GRAD-005")
def packing_can_be_forbidden(dev: Device) -> None:
    """Inside disable_saved_tensors_hooks nobody can pack, and the message says why."""
    x = leaf(dev.device(), 3)
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        error = raised(torch.autograd.graph.save_on_cpu().__enter__)
        assert "not here" in str(error)
        x.exp().sum().backward()
    dev.assert_close(x.grad, noise((3,)).exp())


_PINNED = {"pageable": False, "pinned": True}


@check("autograd/save_on_cpu", "GRAD-005", cases=_PINNED)
def saving_on_the_cpu_holds_no_device_memory(dev: Device, case: str) -> None:
    """save_on_cpu keeps activations on the host, pinned if asked, and backward is unchanged."""
    pinned = _PINNED[case]
    if pinned:
        dev.require("pinned_memory")
    x = leaf(dev.device(), 256, 256)
    x.exp().tanh().sum().backward()  # what the backend keeps for itself is there from now on
    before = torch.accelerator.memory_allocated(x.device.index) if dev.has("memory_stats") else 0
    with torch.autograd.graph.save_on_cpu(pin_memory=pinned, device_type=dev.type):
        out = x.exp().tanh()
    dev.synchronize()
    if dev.has("memory_stats"):
        grown = torch.accelerator.memory_allocated(x.device.index) - before
        assert grown < 2 * out.nbytes, f"{grown} bytes for a result of {out.nbytes}"
    x.grad = None
    out.sum().backward()
    host = noise((256, 256)).requires_grad_()
    host.exp().tanh().sum().backward()
    dev.assert_close(x.grad, host.grad, rtol=1e-4, atol=1e-5)
