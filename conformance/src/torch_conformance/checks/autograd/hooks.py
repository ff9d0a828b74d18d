# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of tensors, leaves, nodes and modules: their order, what they change, their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, Program, agree, check, leaf, noise, raised


def _hook_order(device: torch.device) -> list[Tensor]:
    x = leaf(device, 3)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    removed = y.register_hook(lambda g: g * 1000)
    y.register_hook(lambda g: g * 10)
    removed.remove()
    y.retain_grad()
    y.sum().backward()
    return [x.grad, y.grad]  # type: ignore[list-item]  # set by a backward


def _leaf_hooks(device: torch.device) -> list[Tensor]:
    x, seen = leaf(device, 3), []
    x.register_hook(lambda g: g * 3)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    (x * 2).sum().backward()
    (x * 5).sum().backward()
    return [x.grad, *seen]


def _optimizer_in_backward(device: torch.device) -> list[Tensor]:
    layers = [leaf(device, 4, 4, seed=i) for i in range(3)]

    def step(parameter: Tensor) -> None:
        with torch.no_grad():
            parameter.sub_(parameter.grad, alpha=0.1)  # type: ignore[arg-type]  # set by a backward
        parameter.grad = None

    for layer in layers:
        layer.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        x = noise((2, 4)).to(device)
        for layer in layers:
            x = (x @ layer).tanh()
        x.sum().backward()
    return [layer.detach() for layer in layers]


def _trebled(_: torch.nn.Module, gradients: Any) -> Any:
    return (gradients[0] * 3,)


def _module_hooks(device: torch.device) -> list[Tensor]:
    module, seen = torch.nn.Linear(3, 2).to(device), []
    module.register_forward_pre_hook(lambda _, args: (args[0] * 2,))
    module.register_forward_hook(lambda _, args, out: out + 1)
    module.register_full_backward_pre_hook(_trebled)
    module.register_full_backward_hook(lambda _, gi, go: seen.extend([*gi, *go]))
    x = leaf(device, 4, 3)
    out = module(x)
    out.square().sum().backward()
    return [out, x.grad, module.weight.grad, *seen]


def _node_hooks(device: torch.device) -> list[Tensor]:
    x, seen = leaf(device, 3), []
    y = x.exp()
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda gi, go: seen.extend([*gi, *go]))
    y.sum().backward()
    return [x.grad, *seen]


def _multi_hooks(device: torch.device) -> list[Tensor]:
    x, y, seen = leaf(device, 3), leaf(device, 3, seed=1), []
    a, b = x * 2, y * 3
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.extend(grads))
    torch.autograd.graph.register_multi_grad_hook((a, b), seen.append, mode="any")
    (a * b).sum().backward()
    return seen


_HOOKS: dict[str, Program] = {
    "order": _hook_order,
    "leaf": _leaf_hooks,
    "optimizer": _optimizer_in_backward,
    "module": _module_hooks,
    "node": _node_hooks,
    "several": _multi_hooks,
}


@check("autograd/hook", "GRAD-004", cases=_HOOKS)
def hooks_see_and_change_gradients(dev: Device, case: str) -> None:
    """Hooks of tensors, leaves, nodes and modules run in order and see what the CPU's see."""
    agree(dev, _HOOKS[case], rtol=1e-4, atol=1e-5)


_ATTACH: dict[str, Callable[[Tensor, Callable[[Tensor], None]], Any]] = {
    "tensor": lambda x, hook: x.register_hook(hook),
    "accumulate": lambda x, hook: x.register_post_accumulate_grad_hook(hook),
}


@check("autograd/hook_error", "GRAD-004", cases=_ATTACH)
def an_error_in_a_hook_reaches_the_caller(dev: Device, case: str) -> None:
    """An exception in a hook ends backward with that exception; the device stays usable."""
    x = leaf(dev.device(), 3)

    def fail(_: Tensor) -> None:
        raise KeyError("from the hook")

    _ATTACH[case](x, fail)
    assert isinstance(raised((x * 2).sum().backward), KeyError)
    other = torch.ones(3, device=dev.device(), requires_grad=True)
    (other * 2).sum().backward()
    dev.assert_equal(other.grad, [2.0, 2.0, 2.0])
