# SPDX-License-Identifier: BSD-3-Clause
"""Autograd on the device: derivatives, hooks, streams, modes, and the transforms of torch.func."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import (
    Device,
    Program,
    agree,
    check,
    gradients,
    leaf,
    noise,
    raised,
)
from torch_conformance.checks.operator._programs import ints


def _double_backward(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 3)
    (g,) = torch.autograd.grad((x.tanh() * x.sin()).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.square().sum(), x)
    return [g, gg]


def _double_backward_linear(device: torch.device) -> list[Tensor]:
    x, w = leaf(device, 4, 3), leaf(device, 5, 3, seed=1)
    (g,) = torch.autograd.grad(functional.linear(x, w).tanh().sum(), x, create_graph=True)
    return list(torch.autograd.grad(g.square().sum(), (x, w)))


def _double_backward_conv(device: torch.device) -> list[Tensor]:
    x, w = leaf(device, 1, 2, 5, 5), leaf(device, 3, 2, 3, 3, seed=1)
    (g,) = torch.autograd.grad(functional.conv2d(x, w).square().sum(), x, create_graph=True)
    return list(torch.autograd.grad(g.square().sum(), (x, w)))


def _hooks(device: torch.device) -> list[Tensor]:
    x, seen = leaf(device, 3), []
    y = x * 2

    def tenfold(gradient: Tensor) -> Tensor:
        seen.append(gradient)
        return gradient * 10

    y.register_hook(tenfold)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    y.sum().backward()
    assert x.grad is not None
    return [x.grad, *seen]


def _accumulated(device: torch.device) -> Tensor:
    x = leaf(device, 3)
    for i in range(3):
        (x * i).sum().backward()
    assert x.grad is not None
    return x.grad


def _retained(device: torch.device) -> list[Tensor]:
    x = leaf(device, 3)
    y = x.exp()
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    return [x.grad, y.grad]


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * 3 * x**2


def _custom(device: torch.device) -> list[Tensor]:
    x = leaf(device, 3)
    return gradients(_Cube.apply(x), x)


def _checkpointed(device: torch.device) -> list[Tensor]:
    from torch.utils.checkpoint import checkpoint

    x, w = leaf(device, 4, 3), leaf(device, 3, 3, seed=1)
    out: Any = checkpoint(lambda a, b: (a @ b).tanh(), x, w, use_reentrant=False)
    return gradients(out, x, w)


def _saved_on_cpu(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 3)
    with torch.autograd.graph.save_on_cpu():
        out = (x.exp() * x).tanh()
    return gradients(out, x)


def _in_place_graph(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 3)
    y = x * 2
    y[1:].mul_(3)
    y.relu_()
    return gradients(y, x)


def _broadcast_graph(device: torch.device) -> list[Tensor]:
    x, y = leaf(device, 4, 1), leaf(device, 3, seed=1)
    return gradients(x * y + y, x, y)


def _index_graph(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 6)
    out = x[ints(device, 1, 1, 3)][:, ints(device, 0, 5)]
    return gradients(out, x)


def _jacobian(device: torch.device) -> Any:
    x = noise((3,)).to(device)
    return [
        torch.autograd.functional.jacobian(lambda t: t.sin() * t.sum(), x),
        torch.autograd.functional.hessian(lambda t: (t**3).sum(), x),
    ]


def _forward_mode(device: torch.device) -> list[Tensor]:
    import torch.autograd.forward_ad as forward_ad

    with forward_ad.dual_level():
        x = forward_ad.make_dual(noise((3,)).to(device), torch.ones(3, device=device))
        out = forward_ad.unpack_dual(x.sin() * x)
        return [out.primal, out.tangent]


def _by_frequency(device: torch.device) -> list[Tensor]:
    """Gradients of a table are divided by how often each row is used."""
    weight = leaf(device, 5, 3)
    rows = ints(device, 1, 3, 1, 0, 1, 0, 4, 1).view(2, 4)
    results = []
    for padding in (None, 1):
        out = functional.embedding(rows, weight, padding, scale_grad_by_freq=True)
        results += gradients(out, weight)
    return results


_AUTOGRAD: dict[str, Program] = {
    "double_backward": _double_backward,
    "double_backward_linear": _double_backward_linear,
    "double_backward_conv": _double_backward_conv,
    "hooks": _hooks,
    "accumulate": _accumulated,
    "retain": _retained,
    "custom_function": _custom,
    "checkpoint": _checkpointed,
    "save_on_cpu": _saved_on_cpu,
    "in_place": _in_place_graph,
    "broadcast": _broadcast_graph,
    "index": _index_graph,
    "embedding_by_frequency": _by_frequency,
    "jacobian": _jacobian,
    "forward_mode": _forward_mode,
}


@check("operator/autograd", "OP-017", cases=tuple(_AUTOGRAD))
def autograd_agrees(dev: Device, case: str) -> None:
    """Higher derivatives, hooks, accumulation, checkpointing and in-place graphs agree."""
    agree(dev, _AUTOGRAD[case], rtol=1e-4, atol=1e-5)


def _late_product(dev: Device, x: Tensor) -> Tensor:
    """Three times `x`, computed late on the current stream."""
    factor = torch.zeros(4096, device=dev.device())
    dev.delay(40)
    factor.fill_(3)
    return x * factor


@check("operator/backward_stream:leaf", "OP-032", needs=("streams", "delay"))
def gradients_of_a_side_stream_are_waited_for(dev: Device) -> None:
    """After backward() of work on a side stream, its gradients are right on the caller's stream."""
    x = torch.ones(4096, device=dev.device(), requires_grad=True)
    side = dev.stream()
    dev.synchronize()
    with side:
        loss = _late_product(dev, x).sum()
    loss.backward()
    assert x.grad is not None
    dev.assert_equal(x.grad + 1, torch.full((4096,), 4.0))
    side.synchronize()


@check("operator/backward_stream:inner", "OP-032", needs=("streams", "delay"))
def backward_follows_the_streams_of_forward(dev: Device) -> None:
    """Gradients are right on the caller's stream if part of forward ran on a side stream."""
    x = torch.ones(4096, device=dev.device(), requires_grad=True)
    side = dev.stream()
    dev.synchronize()
    with side:
        y = _late_product(dev, x)
    dev.current_stream().wait_stream(side)
    (y * 2).sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad + 1, torch.full((4096,), 7.0))
    side.synchronize()


@check("operator/gradcheck", "OP-017", needs=("float64",), cases=("matmul", "softmax", "norm"))
def numerical_gradients_agree(dev: Device, case: str) -> None:
    """torch.autograd.gradcheck passes for float64 functions on the device."""
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "matmul": lambda x: x @ x.t(),
        "softmax": lambda x: x.softmax(1),
        "norm": lambda x: functional.layer_norm(x, (3,)),
    }
    x = noise((2, 3), torch.float64).to(dev.device()).requires_grad_()
    assert torch.autograd.gradcheck(functions[case], (x,))


@check("operator/anomaly", "OP-038")
def anomaly_mode_finds_the_nan(dev: Device) -> None:
    """detect_anomaly raises for a NaN gradient made on the device."""
    x = torch.zeros(2, device=dev.device(), requires_grad=True)

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly():
                (x.sqrt() * 0).sum().backward()

    error = raised(run)
    assert isinstance(error, RuntimeError)
    assert "nan" in str(error).lower()


@check("operator/grad_mode:no_grad", "OP-017")
def no_grad_records_nothing(dev: Device) -> None:
    """Under no_grad a result does not require grad."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad


@check("operator/grad_mode:inference", "OP-017")
def inference_mode_makes_inference_tensors(dev: Device) -> None:
    """Under inference_mode a result is an inference tensor and does not require grad."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference()
    assert not y.requires_grad


@check("operator/grad_mode:detach", "OP-017")
def detach_cuts_the_graph(dev: Device) -> None:
    """A detached result does not require grad; the result itself does."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    assert not (x * 2).detach().requires_grad
    assert (x * 2).requires_grad


def _transforms(name: str) -> Program:
    def program(device: torch.device) -> Any:
        x, w = noise((4, 3)).to(device), noise((3, 3), seed=1).to(device)

        def function(t: Tensor) -> Tensor:
            return (t @ w).tanh().sum()

        transformed: dict[str, Callable[[], Any]] = {
            "vmap": lambda: torch.func.vmap(lambda t: (t @ w).sin())(x),
            "vmap_grad": lambda: torch.func.vmap(torch.func.grad(function))(x),
            "vmap_index": lambda: torch.func.vmap(lambda t: t[1:] * t.sum())(x),
            "grad": lambda: torch.func.grad(function)(x),
            "jvp": lambda: list(torch.func.jvp(function, (x,), (torch.ones_like(x),))),
            "vjp": lambda: torch.func.vjp(function, x)[1](torch.ones((), device=device)),
            "jacrev": lambda: torch.func.jacrev(lambda t: t.sin() @ w)(x),
            "jacfwd": lambda: torch.func.jacfwd(lambda t: t.sin() @ w)(x[0]),
            "hessian": lambda: torch.func.hessian(lambda t: (t**3).sum())(x[0]),
            "functional_call": lambda: _called(device),
        }
        return transformed[name]()

    return program


def _called(device: torch.device) -> Tensor:
    module = torch.nn.Linear(3, 2).to(device)
    parameters = {"weight": noise((2, 3)).to(device), "bias": torch.zeros(2, device=device)}
    out: Tensor = torch.func.functional_call(module, parameters, (noise((4, 3)).to(device),))
    return out


@check(
    "operator/transform",
    "OP-022",
    cases=(
        "vmap",
        "vmap_grad",
        "vmap_index",
        "grad",
        "jvp",
        "vjp",
        "jacrev",
        "jacfwd",
        "hessian",
        "functional_call",
    ),
)
def function_transforms_agree(dev: Device, case: str) -> None:
    """torch.func transforms of functions on the device agree with the CPU."""
    agree(dev, _transforms(case), rtol=1e-4, atol=1e-5)
