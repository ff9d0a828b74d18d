# SPDX-License-Identifier: BSD-3-Clause
"""Gradients accumulate in .grad: in place, in the layout of their leaf, sharing no memory."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, leaf, noise, raised


@check("autograd/accumulate:in_place", "GRAD-011")
def gradients_are_added_in_place(dev: Device) -> None:
    """A second backward adds to the tensor that .grad is already."""
    x = leaf(dev.device(), 3, 4)
    (x * 2).sum().backward()
    held = x.grad
    (x * 3).sum().backward()
    assert x.grad is held
    dev.assert_equal(held, torch.full((3, 4), 5.0))


@check("autograd/accumulate:graph", "GRAD-011")
def gradients_can_have_a_graph(dev: Device) -> None:
    """With create_graph=True .grad requires grad and can be differentiated."""
    x = leaf(dev.device(), 3, 4)
    (x**2).sum().backward(create_graph=True)
    held = x.grad
    assert held is not None and held.requires_grad
    x.grad = None
    held.sum().backward()
    dev.assert_equal(x.grad, torch.full((3, 4), 2.0))


@check("autograd/accumulate:layout", "GRAD-011")
def gradients_have_the_layout_of_their_leaf(dev: Device) -> None:
    """.grad has the strides of its leaf, whatever those of the gradient are."""
    x = noise((3, 4)).to(dev.device()).t().requires_grad_()
    (x.contiguous() * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.stride() == x.stride()


@check("autograd/accumulate:given", "GRAD-011")
def gradients_are_added_to_what_is_assigned(dev: Device) -> None:
    """Backward adds to a .grad that was assigned; one of another shape is refused."""
    x = leaf(dev.device(), 3, 4)
    x.grad = torch.ones(3, 4, device=dev.device())
    (x * 2).sum().backward()
    dev.assert_equal(x.grad, torch.full((3, 4), 3.0))
    other = torch.ones(2, device=dev.device())
    assert isinstance(raised(lambda: setattr(x, "grad", other)), RuntimeError)


@check("autograd/accumulate:no_alias", "GRAD-011")
def gradients_do_not_share_memory(dev: Device) -> None:
    """Writing to the gradient of one term of a sum leaves that of the other alone."""
    x, y = leaf(dev.device(), 3, 4), leaf(dev.device(), 3, 4, seed=1)
    (x + y).sum().backward()
    assert x.grad is not None
    x.grad.mul_(5)
    dev.assert_equal(y.grad, torch.ones(3, 4))


@check("autograd/accumulate:set_to_none", "GRAD-011")
def zero_grad_writes_zeros_or_none(dev: Device) -> None:
    """zero_grad() drops gradients; with set_to_none=False it sets them to zero."""
    module = torch.nn.ParameterList([leaf(dev.device(), 3, 4)])
    (module[0] * 2).sum().backward()
    module.zero_grad(set_to_none=False)
    dev.assert_equal(module[0].grad, torch.zeros(3, 4))
    module.zero_grad()
    assert module[0].grad is None


@check("autograd/accumulate:inputs", "GRAD-011")
def backward_can_be_limited_to_inputs(dev: Device) -> None:
    """backward(inputs=...) gives a gradient to these leaves only."""
    x, y = leaf(dev.device(), 3, 4), leaf(dev.device(), 3, 4, seed=1)
    (x * y).sum().backward(inputs=[y])
    assert x.grad is None
    dev.assert_close(y.grad, x.detach().cpu())
