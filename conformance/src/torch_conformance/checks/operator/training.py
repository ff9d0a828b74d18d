# SPDX-License-Identifier: BSD-3-Clause
"""Training steps: optimizers and the gradient scaler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, agree, check, noise
from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.refusal import NOT_FUSED, refuses


def train(device: torch.device, make: Callable[[list[Any]], torch.optim.Optimizer]) -> list[Tensor]:
    torch.manual_seed(5)
    module = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)
    ).to(device)
    optimizer = make(list(module.parameters()))
    x, target = noise((10, 6)).to(device), torch.arange(10, device=device) % 3
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(p.detach() for p in module.parameters())]


OPTIMIZERS: dict[str, Callable[[list[Any]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "sgd_foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
}


@check("operator/train", "OP-018", cases=tuple(OPTIMIZERS))
def a_training_loop_equals_the_cpus(dev: Device, case: str) -> None:
    """Losses and parameters of three steps with this optimizer agree with the CPU."""
    agree(dev, lambda device: train(device, OPTIMIZERS[case]), rtol=1e-3, atol=1e-4)


@check("operator/train_fused", "OP-019", cases=("adam", "adamw", "sgd", "adagrad"))
def fused_optimizers_equal_the_plain_ones(dev: Device, case: str) -> None:
    """fused=True gives the plain optimizer's steps, or says that the device does not support it."""
    names = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "adagrad": "Adagrad"}
    optimizer = getattr(torch.optim, names[case])
    expected = train(torch.device("cpu"), lambda p: optimizer(p, lr=0.01))
    try:
        actual = train(dev.device(), lambda p: optimizer(p, lr=0.01, fused=True))
    except RuntimeError as error:
        if not refuses(error, words=NOT_FUSED):
            raise
        dev.unsupported(f"fused {case}: {first_line(error)}")
    for got, wanted in zip(actual, expected, strict=True):
        dev.assert_close(got, wanted, rtol=1e-3, atol=1e-4)


@check("operator/train_capturable", "OP-018", needs=("accelerator",))
def a_learning_rate_may_be_a_device_tensor(dev: Device) -> None:
    """A 0-dim device tensor as learning rate gives the steps of the same number."""
    expected = train(torch.device("cpu"), lambda p: torch.optim.SGD(p, lr=0.1))
    rate = torch.tensor(0.1, device=dev.device())
    actual = train(dev.device(), lambda p: torch.optim.SGD(p, lr=rate))
    for got, wanted in zip(actual, expected, strict=True):
        dev.assert_close(got, wanted, rtol=1e-3, atol=1e-4)


def _scaled(dev: Device) -> tuple[torch.amp.GradScaler, torch.optim.Optimizer, Tensor]:
    """A scaler, an optimizer, and the parameter whose gradient 1, 2, 3 is there times 16."""
    scaler = torch.amp.GradScaler(dev.type, init_scale=16.0, growth_interval=1)
    w = torch.ones(3, device=dev.device(), requires_grad=True)
    loss = (w * torch.tensor([1.0, 2.0, 3.0], device=dev.device())).sum()
    scaler.scale(loss).backward()
    return scaler, torch.optim.SGD([w], lr=1.0), w


@check("operator/grad_scaler:step", "OP-021")
def the_gradient_scaler_steps(dev: Device) -> None:
    """GradScaler steps by the unscaled gradient, and then doubles its scale."""
    scaler, optimizer, w = _scaled(dev)
    scaler.step(optimizer)
    scaler.update()
    dev.assert_close(w, torch.tensor([0.0, -1.0, -2.0]))
    assert scaler.get_scale() == 32.0


@check("operator/grad_scaler:overflow", "OP-021")
def the_gradient_scaler_skips_infinities(dev: Device) -> None:
    """GradScaler skips a step whose gradient has an infinity, and then halves its scale."""
    scaler, optimizer, w = _scaled(dev)
    assert w.grad is not None
    w.grad[1] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    dev.assert_close(w, torch.ones(3))
    assert scaler.get_scale() == 8.0


@check("operator/grad_scaler:unscale", "OP-021")
def the_gradient_scaler_unscales(dev: Device) -> None:
    """GradScaler.unscale_ divides gradients by the scale."""
    scaler, optimizer, w = _scaled(dev)
    scaler.unscale_(optimizer)
    dev.assert_close(w.grad, torch.tensor([1.0, 2.0, 3.0]))


@check("operator/grad_scaler:state", "OP-021")
def the_gradient_scaler_keeps_its_state(dev: Device) -> None:
    """A GradScaler that loads the state of another one has its scale."""
    scaler, optimizer, w = _scaled(dev)
    scaler.step(optimizer)
    scaler.update()
    dev.assert_close(w, torch.tensor([0.0, -1.0, -2.0]))
    other = torch.amp.GradScaler(dev.type)
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == scaler.get_scale() == 32.0
