# SPDX-License-Identifier: BSD-3-Clause
"""torch.func on the device: vmap, its random numbers, derivatives as functions, and their nesting.

The expected values of vmap are those of a loop on the CPU; those of derivatives are what torch.func
gives on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from torch.nn import functional

from torch_conformance.authoring.api import Device, Program, agree, check, noise, raised, ramp
from torch_conformance.checks._functions import FUNCTIONS

_BATCH = 3


def _x(device: torch.device, *shape: int, seed: int = 0) -> Tensor:
    return noise(shape, seed=seed).to(device, copy=True)


# ---- vmap --------------------------------------------------------------------------------------


@check("func/vmap", "FUNC-001", cases=FUNCTIONS)
def vmap_equals_a_loop(dev: Device, case: str) -> None:
    """vmap over a batch gives what a loop over the samples gives on the CPU."""
    batch = noise((_BATCH, 2, 4))
    expected = torch.stack([FUNCTIONS[case](sample) for sample in batch])
    actual = vmap(FUNCTIONS[case])(batch.to(dev.device()))
    assert actual.device.type == dev.type
    dev.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def _written(x: Tensor) -> Tensor:
    y = x * 1
    y[0].add_(1)
    y.view(-1)[-1] = 7
    return y.mul_(y)


_STRUCTURES: dict[str, Program] = {
    "in_dims": lambda d: vmap(torch.mv, in_dims=(0, 1))(_x(d, 3, 2, 4), _x(d, 4, 3)),
    "in_dims_none": lambda d: vmap(torch.mv, in_dims=(None, 0))(_x(d, 2, 4), _x(d, 3, 4)),
    "out_dims": lambda d: vmap(lambda x: (x, x.sum()), out_dims=(2, 0))(_x(d, 3, 2, 4)),
    "nested": lambda d: vmap(vmap(torch.dot, in_dims=(0, None)), in_dims=(None, 0))(
        _x(d, 3, 4), _x(d, 2, 4)
    ),
    "tree": lambda d: vmap(lambda t: {"sum": t["a"] + t["b"][0]})(
        {"a": _x(d, 3, 2), "b": [_x(d, 3, 2, seed=1)]}
    ),
    "chunks": lambda d: vmap(lambda x: x.softmax(0), chunk_size=2)(_x(d, 5, 4)),
    "in_place": lambda d: vmap(_written)(_x(d, 3, 2, 4)),
    "negative_dims": lambda d: vmap(lambda x: x.sum(-1).unsqueeze(-2))(_x(d, 3, 2, 4)),
    "empty": lambda d: vmap(lambda x: x @ x.t())(_x(d, 3, 0, 4)),
    "integers": lambda d: vmap(lambda x: x.cumsum(0) // 2)(ramp((3, 4), torch.int64).to(d)),
    "comparison": lambda d: vmap(lambda x: (x > 0).any(0))(_x(d, 3, 2, 4)),
    "factory": lambda d: vmap(lambda x: x + torch.arange(4, device=d))(_x(d, 3, 2, 4)),
    "embedding": lambda d: vmap(functional.embedding, in_dims=(0, None))(
        torch.tensor([[0, 2], [1, 1], [2, 0]], device=d), _x(d, 3, 4)
    ),
    "index_put": lambda d: vmap(lambda x, i: x.index_put((i,), x[0]))(
        _x(d, 3, 4), torch.tensor([[1], [3], [2]], device=d)
    ),
}


@check("func/vmap_form", "FUNC-001", cases=_STRUCTURES)
def vmap_has_its_forms(dev: Device, case: str) -> None:
    """in_dims, out_dims, nesting, trees, chunks and in-place work agree with the CPU."""
    agree(dev, _STRUCTURES[case], rtol=1e-4, atol=1e-5)


_MISTAKES: dict[str, tuple[Callable[[torch.device], Any], str]] = {
    "item": (lambda d: vmap(lambda x: x.sum().item())(_x(d, 3)), "item"),
    "branch": (lambda d: vmap(lambda x: x if x > 0 else -x)(_x(d, 3)), "data-dependent"),
    "sizes": (lambda d: vmap(torch.add)(_x(d, 3), _x(d, 4)), "same size"),
    "unbatched_write": (lambda d: _write_into(_x(d, 2), _x(d, 3, 2)), ""),
    "nonzero": (lambda d: vmap(torch.nonzero)(_x(d, 3, 2)), "vmap"),
}


def _write_into(outer: Tensor, batch: Tensor) -> Any:
    return vmap(lambda x: outer.add_(x))(batch)


@check("func/vmap_refused", "FUNC-001", cases=_MISTAKES)
def vmap_refuses_what_it_cannot_do(dev: Device, case: str) -> None:
    """Control flow on data, sizes that differ and writes to unbatched tensors raise."""
    work, text = _MISTAKES[case]
    error = raised(lambda: work(dev.device()))
    assert isinstance(error, (RuntimeError, ValueError))
    assert text in str(error), str(error)


# ---- random numbers under vmap -----------------------------------------------------------------

_RANDOM: dict[str, Callable[[Tensor], Tensor]] = {
    "rand_like": torch.rand_like,
    "randn": lambda x: torch.randn(16, device=x.device),
    "rand": lambda x: torch.rand(16, device=x.device) + x,
    "randint": lambda x: torch.randint(0, 10**6, (16,), device=x.device),
    "randperm": lambda x: torch.randperm(16, device=x.device),
    "dropout": lambda x: functional.dropout(x + 1, 0.5),
    "bernoulli": lambda x: torch.bernoulli(torch.full((16,), 0.5, device=x.device)),
    "normal_inplace": lambda x: (x * 1).normal_(),
    "multinomial": lambda x: torch.multinomial(torch.ones(90, device=x.device), 16),
}


@check("func/random", "FUNC-002", needs=("generator",), cases=_RANDOM)
def the_randomness_of_vmap_is_chosen(dev: Device, case: str) -> None:
    """It draws for every sample, or once for all, or refuses to; seeds repeat the numbers."""
    batch = torch.zeros(_BATCH, 16, device=dev.device())
    drawn: dict[str, Tensor] = {}
    for mode in ("different", "same"):
        for attempt in (0, 1):
            torch.manual_seed(12)
            values = vmap(_RANDOM[case], randomness=mode)(batch).cpu()
            assert values.shape == (_BATCH, 16)
            assert attempt == 0 or torch.equal(values, drawn[mode]), f"{mode} does not repeat"
            drawn[mode] = values
    assert not torch.equal(drawn["different"][0], drawn["different"][1])
    assert not torch.equal(drawn["different"][1], drawn["different"][2])
    for sample in drawn["same"]:
        assert torch.equal(sample, drawn["same"][0])
    error = raised(lambda: vmap(_RANDOM[case], randomness="error")(batch))
    assert isinstance(error, RuntimeError)
    assert "randomness" in str(error)


# ---- derivatives -------------------------------------------------------------------------------

_DIFFERENTIATED = (
    "matmul",
    "linear",
    "conv2d",
    "layer_norm",
    "softmax",
    "gelu",
    "prod",
    "cumsum",
    "index",
    "scatter_add",
    "where",
    "std",
    "cross_entropy",
    "solve",
)

Function = Callable[[Tensor], Tensor]


def _pulled_back(function: Function, x: Tensor) -> list[Tensor]:
    pulled: Any = vjp(function, x)
    return [pulled[0], *pulled[1](torch.ones_like(pulled[0]))]


def _linearized(function: Function, x: Tensor, t: Tensor) -> list[Tensor]:
    value, push = linearize(function, x)
    return [value, push(t)]


#: Transforms of a function, at a point and along a tangent.
_TRANSFORMS: dict[str, Callable[[Function, Tensor, Tensor], Any]] = {
    "jvp": lambda f, x, t: list(jvp(f, (x,), (t,))),
    "vjp": lambda f, x, t: _pulled_back(f, x),
    "jacrev": lambda f, x, t: jacrev(f)(x),
    "jacfwd": lambda f, x, t: jacfwd(f)(x),
    "hessian": lambda f, x, t: hessian(lambda v: f(v).square().sum())(x),
}


def _derivative_check(transform: str) -> Callable[[Device, str], None]:
    """A check of one transform for every function of the list."""

    def body(dev: Device, case: str) -> None:
        agree(
            dev,
            lambda d: _TRANSFORMS[transform](FUNCTIONS[case], _x(d, 2, 4), _x(d, 2, 4, seed=3)),
            rtol=1e-3,
            atol=1e-4,
        )

    body.__doc__ = f"torch.func.{transform} of a function on the device agrees with the CPU."
    return body


for _transform in _TRANSFORMS:
    check(f"func/{_transform}", "FUNC-003", cases=_DIFFERENTIATED)(_derivative_check(_transform))


@check("func/jacobians", "FUNC-003", needs=("float64",), cases=_DIFFERENTIATED)
def forward_and_reverse_mode_agree_with_each_other(dev: Device, case: str) -> None:
    """jacfwd and jacrev, plain and in chunks, give the same Jacobian in float64."""
    x = noise((2, 4), torch.float64).to(dev.device())
    forward = jacfwd(FUNCTIONS[case])(x)
    expected = forward.cpu()
    dev.assert_close(jacrev(FUNCTIONS[case])(x), expected, rtol=1e-8, atol=1e-9)
    dev.assert_close(jacrev(FUNCTIONS[case], chunk_size=3)(x), expected, rtol=1e-8, atol=1e-9)


def _loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    hidden = torch.tanh(functional.linear(x, parameters["w"], parameters["b"]))
    return (hidden.sum(-1) - y).square().mean()


def _parameters(d: torch.device) -> dict[str, Tensor]:
    return {"w": _x(d, 5, 4), "b": _x(d, 5, seed=1)}


def _no_grad_inside(x: Tensor) -> Tensor:
    with torch.no_grad():
        scale = x.square()
    return (x * scale).sum()


def _in_place_inside(x: Tensor) -> Tensor:
    y = x.sin()
    y[0].mul_(3)
    y.add_(x)
    return y.prod()


def _sine_of_gradient(x: Tensor) -> Tensor:
    slope: Tensor = grad(lambda b: (b**3).sum())(x)
    return slope.sin().sum()


def _gradient_of_powers(x: Tensor) -> Tensor:
    slope: Tensor = grad(lambda a: (a**4).sum())(x)
    return slope


_GRADS: dict[str, Program] = {
    "tree": lambda d: grad(_loss)(_parameters(d), _x(d, 3, 4), _x(d, 3)),
    "argnums": lambda d: list(
        grad(lambda a, b: (a * b.sin()).sum(), argnums=(0, 1))(_x(d, 4), _x(d, 4, seed=1))
    ),
    "value": lambda d: list(grad_and_value(lambda a: a.exp().sum())(_x(d, 4))),
    "aux": lambda d: list(grad(lambda a: (a.square().sum(), a.cos()), has_aux=True)(_x(d, 4))),
    "nested": lambda d: grad(_sine_of_gradient)(_x(d, 4)),
    "per_sample": lambda d: vmap(grad(_loss), in_dims=(None, 0, 0))(
        _parameters(d), _x(d, 6, 4), _x(d, 6)
    ),
    "over_vmap": lambda d: grad(lambda a: vmap(torch.dot)(a, a.sin()).sum())(_x(d, 3, 4)),
    "no_grad": lambda d: grad(_no_grad_inside)(_x(d, 4)),
    "in_place": lambda d: grad(_in_place_inside)(_x(d, 4)),
    "jvp_of_grad": lambda d: list(jvp(_gradient_of_powers, (_x(d, 4),), (_x(d, 4, seed=1),))),
    "vmap_of_jvp": lambda d: vmap(lambda x, t: jvp(torch.sin, (x,), (t,))[1], in_dims=(None, 0))(
        _x(d, 4), _x(d, 3, 4)
    ),
    "vmap_of_hessian": lambda d: vmap(hessian(lambda a: (a**3).prod()))(_x(d, 3, 2)),
    "linearize": lambda d: _linearized(torch.sin, _x(d, 4), _x(d, 4, seed=1)),
    "functionalize": lambda d: [functionalize(_in_place_inside)(_x(d, 4))],
}


@check("func/grad", "FUNC-004", cases=_GRADS)
def gradients_as_functions_compose(dev: Device, case: str) -> None:
    """grad with trees, argnums, auxiliary results and mutation, in and around other transforms."""
    agree(dev, _GRADS[case], rtol=1e-4, atol=1e-5)


def _linear() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(6, 5), torch.nn.LayerNorm(5), torch.nn.GELU(), torch.nn.Linear(5, 2)
    )


def _convolution() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(12, 2)
    )


def _network(
    device: torch.device, make: Callable[[], torch.nn.Module], seed: int = 7
) -> torch.nn.Module:
    torch.manual_seed(seed)
    return make().to(device)


#: name -> (what makes a network, the shape of four of its inputs).
_NETWORKS: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "linear": (_linear, (4, 6)),
    "convolution": (_convolution, (4, 1, 4, 4)),
}


@check("func/per_sample", "FUNC-004", cases=_NETWORKS)
def gradients_per_sample_equal_a_loop(dev: Device, case: str) -> None:
    """vmap(grad) over a network's samples gives what backward gives for each of them on the CPU."""
    make, shape = _NETWORKS[case]
    inputs = noise(shape)
    targets = torch.tensor([0, 1, 1, 0])
    reference = _network(torch.device("cpu"), make)
    expected: list[list[Tensor]] = []
    for x, y in zip(inputs, targets, strict=True):
        reference.zero_grad()
        functional.cross_entropy(reference(x[None]), y[None]).backward()
        expected.append([p.grad.clone() for p in reference.parameters() if p.grad is not None])
    module = _network(dev.device(), make)
    parameters = {name: p.detach() for name, p in module.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        out = functional_call(module, parameters, (x[None],))
        return functional.cross_entropy(out, y[None])

    actual = vmap(grad(loss), in_dims=(None, 0, 0))(
        parameters, inputs.to(dev.device()), targets.to(dev.device())
    )
    for gradients, *wanted in zip(actual.values(), *expected, strict=True):
        dev.assert_close(gradients, torch.stack(wanted), rtol=1e-3, atol=1e-4)


# ---- modules as functions ----------------------------------------------------------------------


def _with_buffers(d: torch.device) -> Any:
    module = torch.nn.BatchNorm1d(3).to(d)
    buffers = {name: b.clone() for name, b in module.named_buffers()}
    out = functional_call(module, (dict(module.named_parameters()), buffers), (_x(d, 4, 3),))
    return [out.detach(), buffers["running_mean"], module.running_mean]


def _tied(d: torch.device) -> Any:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)).to(d)
    module[1].weight = module[0].weight
    replaced = {"0.weight": _x(d, 3, 3), "0.bias": _x(d, 3), "1.bias": _x(d, 3, seed=1)}
    return functional_call(module, replaced, (_x(d, 2, 3),)).detach()


def _ensemble(d: torch.device) -> Any:
    modules = [_network(d, _linear, seed) for seed in range(3)]
    parameters, buffers = stack_module_state(modules)

    def one(parameters: Any, buffers: Any, x: Tensor) -> Tensor:
        out: Tensor = functional_call(modules[0], (parameters, buffers), (x,))
        return out

    out = vmap(one, in_dims=(0, 0, None))(parameters, buffers, _x(d, 4, 6))
    loops = torch.stack([module(_x(d, 4, 6)) for module in modules])
    torch.testing.assert_close(out.cpu(), loops.cpu())
    return out.detach()


_MODULES: dict[str, Program] = {
    "buffers": _with_buffers,
    "tied": _tied,
    "ensemble": _ensemble,
}


@check("func/module", "FUNC-005", cases=_MODULES)
def modules_are_functions_of_their_parameters(dev: Device, case: str) -> None:
    """functional_call replaces parameters and buffers, tied ones too; ensembles are vmapped."""
    agree(dev, _MODULES[case], rtol=1e-4, atol=1e-5)


# ---- functions of one's own --------------------------------------------------------------------


class _Generated(torch.autograd.Function):
    """A cube whose batching rule is generated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * 3 * x**2


class _Batched(torch.autograd.Function):
    """A doubling whose batching rule adds one, so that its use is visible."""

    @staticmethod
    def forward(x: Tensor) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        return x * 2 + 1, in_dims[0]


_OWN: dict[str, Program] = {
    "generated": lambda d: vmap(_Generated.apply)(_x(d, 3, 2)),
    "generated_grad": lambda d: vmap(grad(lambda x: _Generated.apply(x).sum()))(_x(d, 3, 2)),
    "nested_grad": lambda d: grad(lambda y: grad(lambda x: _Generated.apply(x).sum())(y).sum())(
        _x(d, 3)
    ),
    "own_rule": lambda d: vmap(_Batched.apply)(_x(d, 3, 2)),
}


@check("func/function", "FUNC-006", cases=_OWN)
def functions_of_ones_own_can_be_transformed(dev: Device, case: str) -> None:
    """autograd.Function works under grad and vmap, by a rule of its own or a generated one."""
    agree(dev, _OWN[case], rtol=1e-4, atol=1e-5)
