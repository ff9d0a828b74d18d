# SPDX-License-Identifier: BSD-3-Clause
"""What is refused, which writes are counted, and when and for which inputs there are gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, agree, check, leaf, raised


def _modified(x: Tensor) -> None:
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def _modified_view(x: Tensor) -> None:
    y = x * 1
    out = y.square()
    y[0].zero_()
    out.sum().backward()


def _twice(x: Tensor) -> None:
    y = x.exp().sum()
    y.backward()
    y.backward()


def _inference(x: Tensor) -> None:
    with torch.inference_mode():
        constant = torch.ones_like(x)
    (x * constant).sum().backward()


_FORBIDDEN: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "modified": (_modified, "modified by an inplace operation"),
    "modified_view": (_modified_view, "modified by an inplace operation"),
    "leaf": (lambda x: x.add_(1), "leaf Variable"),
    "leaf_view": (lambda x: x[0].add_(1), "view of a leaf Variable"),
    "twice": (_twice, "second time"),
    "not_scalar": (lambda x: (x * 2).backward(), "scalar outputs"),
    "no_graph": (lambda x: x.detach().sum().backward(), "does not require grad"),
    "unused": (lambda x: torch.autograd.grad(x.sum(), x.clone()), "not have been used"),
    "inference": (_inference, "Inference tensors cannot be saved"),
    "integers": (lambda x: x.long().requires_grad_(), "floating point"),
    "wrong_shape": (lambda x: (x * 2).backward(torch.ones(5, device=x.device)), "shape"),
    "resize": (lambda x: x.resize_(1), "resize"),
}


@check("autograd/forbidden", "GRAD-012", cases=_FORBIDDEN)
def what_would_give_wrong_gradients_is_refused(dev: Device, case: str) -> None:
    """Changing what backward needs, and the other known mistakes, raise with torch's text."""
    work, text = _FORBIDDEN[case]
    error = raised(lambda: work(leaf(dev.device(), 3)))
    assert isinstance(error, RuntimeError)
    assert text in str(error), str(error)


@check("autograd/forbidden:numpy", "GRAD-012")
def an_array_of_what_requires_grad_is_refused(dev: Device) -> None:
    """numpy() of a tensor that requires grad raises, for that or because it is on a device."""
    error = raised(leaf(dev.device(), 3).numpy)
    assert isinstance(error, (RuntimeError, TypeError))
    assert isinstance(error, TypeError) or "requires grad" in str(error), str(error)


_WRITES: dict[str, Callable[[Tensor], Any]] = {
    "in_place": lambda x: x.add_(1),
    "out": lambda x: torch.add(torch.ones_like(x), 1, out=x),
    "copy": lambda x: x.copy_(torch.ones(2)),
    "foreach": lambda x: torch._foreach_add_([x], 1.0),
    "fill": lambda x: x.fill_(3),
}


@check("autograd/version", "GRAD-012", cases=_WRITES)
def writes_are_counted(dev: Device, case: str) -> None:
    """Every operator that writes a view increases the version of its base."""
    base = torch.zeros(4, device=dev.device())
    view, before = base[:2], base._version
    _WRITES[case](view)
    assert base._version > before


@check("autograd/version:data", "GRAD-012")
def writes_through_data_are_not_counted(dev: Device) -> None:
    """A write to .data of a view reaches its base, and no version."""
    base = torch.zeros(4, device=dev.device())
    view, before = base[:2], base._version
    view.data.fill_(3)
    dev.assert_equal(base, [3.0, 3.0, 0.0, 0.0])
    assert base._version == before


@check("autograd/mode:set_grad", "GRAD-012")
def recording_can_be_switched_off(dev: Device) -> None:
    """Nothing is recorded in set_grad_enabled(False), and everything after it."""
    x = leaf(dev.device(), 3)
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


@check("autograd/mode:nested", "GRAD-012")
def recording_can_be_switched_on_again(dev: Device) -> None:
    """enable_grad inside no_grad records."""
    with torch.no_grad(), torch.enable_grad():
        assert (leaf(dev.device(), 3) * 2).requires_grad


@check("autograd/mode:decorator", "GRAD-012")
def no_grad_can_decorate_a_function(dev: Device) -> None:
    """A function that no_grad decorates does not record."""
    x = leaf(dev.device(), 3)
    assert not torch.no_grad()(lambda: x * 2)().requires_grad


@check("autograd/mode:detach", "GRAD-012")
def detached_tensors_share_memory(dev: Device) -> None:
    """detach() gives a tensor of the same memory that is not recorded."""
    x = leaf(dev.device(), 3)
    y = x.detach()
    assert y.data_ptr() == x.data_ptr()
    assert not y.requires_grad
    with torch.no_grad():
        y.mul_(0)
    dev.assert_equal(x, [0.0, 0.0, 0.0])


@check("autograd/mode:unused", "GRAD-012")
def inputs_may_be_unused(dev: Device) -> None:
    """The gradient of an unused input is None with allow_unused, zero with materialize_grads."""
    x, other = leaf(dev.device(), 3), leaf(dev.device(), 3)
    grads: Any = torch.autograd.grad(x.sum(), (x, other), allow_unused=True)
    assert grads[1] is None
    zero = torch.autograd.grad(x.sum(), (x, other), materialize_grads=True)[1]
    dev.assert_equal(zero, [0.0, 0.0, 0.0])


@check("autograd/batched", "GRAD-012")
def gradients_of_a_batch_of_weights_agree(dev: Device) -> None:
    """torch.autograd.grad(is_grads_batched=True) gives the rows of the Jacobian."""

    def program(device: torch.device) -> Tensor:
        x = leaf(device, 3)
        y = x.sin() * x.sum()
        eye = torch.eye(3, device=device)
        return torch.autograd.grad(y, x, eye, is_grads_batched=True)[0]

    agree(dev, program, rtol=1e-4, atol=1e-5)
