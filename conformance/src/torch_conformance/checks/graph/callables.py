# SPDX-License-Identifier: BSD-3-Clause
"""Callables whose passes are graphs: make_graphed_callables, where the device module has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from torch_conformance.authoring.api import Device, check, noise, raised

ROWS, COLUMNS = 6, 16
ROUNDS = 3


def _maker(dev: Device) -> Callable[..., Any]:
    """make_graphed_callables of the device module."""
    if not hasattr(dev.bare_module, "make_graphed_callables"):
        dev.unsupported(f"torch.{dev.type} has no make_graphed_callables")
    make: Callable[..., Any] = dev.bare_module.make_graphed_callables
    return make


def _input(dev: Device, seed: int, needs_gradient: bool = True) -> Tensor:
    return noise((ROWS, COLUMNS), seed=seed).to(dev.device()).requires_grad_(needs_gradient)


def _layers(dev: Device, seed: int = 0) -> nn.Module:
    layers = nn.Sequential(nn.Linear(COLUMNS, COLUMNS), nn.Tanh(), nn.Linear(COLUMNS, COLUMNS))
    for index, parameter in enumerate(layers.parameters()):
        parameter.data = noise(tuple(parameter.shape), seed=seed + index)
    return layers.to(dev.device())


def _leaves(results: Any) -> list[Tensor]:
    found: list[Tensor] = pytree.tree_leaves(results)
    return found


def _differentiated(
    results: Sequence[Tensor], inputs: Sequence[Tensor], allow_unused: bool
) -> list[Tensor | None]:
    """Gradients of the inputs, each result weighted by its place."""
    total = sum(
        (
            (place + 2) * result.square().sum()
            for place, result in enumerate(results)
            if result.requires_grad
        ),
        start=torch.zeros((), device=inputs[0].device),
    )
    wanted = [value for value in inputs if value.requires_grad]
    return list(torch.autograd.grad(total, wanted, allow_unused=allow_unused))


def _assert_alike(dev: Device, found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(found) == len(expected), f"{len(found)} tensors, not {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None), f"a gradient is {one}, not {other}"
        if one is not None:
            dev.assert_close(one, dev.cpu(other))


class _Case(NamedTuple):
    """A callable, and which of its two inputs need gradients."""

    made: Callable[[Device], Any]
    needs_gradient: tuple[bool, bool] = (True, True)
    allow_unused: bool = False


def _with_two_inputs(dev: Device) -> nn.Module:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = _layers(dev)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return torch.tanh(self.inner(a)) * b

    return Two()


_FUNCTIONS: dict[str, _Case] = {
    "function": _Case(lambda dev: lambda a, b: (a * b).tanh()),
    "module": _Case(_with_two_inputs),
    "one_input": _Case(_with_two_inputs, (False, True)),
    "no_input": _Case(_with_two_inputs, (False, False)),
    "results": _Case(lambda dev: lambda a, b: (a * b, {"sum": a + 2 * b, "best": a.argmax(1)})),
    "unused": _Case(lambda dev: lambda a, b: a.sin(), allow_unused=True),
    "views": _Case(lambda dev: lambda a, b: (a.t() @ b, b[1:3])),
}


@check("graph/callables", "GRAPH-024", needs=("graphs",), cases=_FUNCTIONS)
def graphed_callables_do_what_the_originals_do(dev: Device, case: str) -> None:
    """For new values at each call, results and gradients are those of the original callable."""
    made, needs, allow_unused = _FUNCTIONS[case]
    make, original = _maker(dev), made(dev)

    def inputs(seed: int) -> list[Tensor]:
        return [_input(dev, 2 * seed + place, need) for place, need in enumerate(needs)]

    graphed = make(made(dev), tuple(inputs(50)), allow_unused_input=allow_unused)
    for seed in range(ROUNDS):
        answers = []
        for call in (original, graphed):
            given = inputs(seed)
            results = _leaves(call(*given))
            weights = list(call.parameters()) if isinstance(call, nn.Module) else []
            values = [dev.cpu(result) for result in results]
            if any(value.requires_grad for value in (*given, *weights)):
                values += _differentiated(results, [*given, *weights], allow_unused)  # type: ignore[arg-type]
            answers.append(values)
        _assert_alike(dev, answers[1], answers[0])


@check("graph/callables_in_order", "GRAPH-024", needs=("graphs",))
def several_graphed_callables_follow_one_another(dev: Device) -> None:
    """Modules that are graphed together, each given the other's result, train as the originals."""
    make, answers = _maker(dev), []
    for graphed in (False, True):
        modules: tuple[nn.Module, ...] = (_layers(dev), _layers(dev, seed=20))
        if graphed:
            samples = ((_input(dev, 50, False),), (_input(dev, 51),))
            modules = make(modules, samples)
        weights = [weight for module in modules for weight in module.parameters()]
        for step in range(ROUNDS):
            modules[1](modules[0](_input(dev, step, False))).square().mean().backward()
            with torch.no_grad():
                for weight in weights:
                    assert weight.grad is not None
                    weight.sub_(weight.grad, alpha=0.05)
                    weight.grad = None
        answers.append([dev.cpu(weight) for weight in weights])
    _assert_alike(dev, answers[1], answers[0])


@check("graph/callables_accumulate", "GRAPH-025", needs=("graphs",))
def gradients_of_graphed_callables_add_up(dev: Device) -> None:
    """`.grad` is the sum over several calls, and what was taken from it before stays as it was.

    Where the first gradient is the memory that each replay writes to, it is lost, as in
    https://github.com/pytorch/pytorch/issues/181723.
    """
    make, answers = _maker(dev), []
    for graphed in (False, True):
        module: nn.Module = _layers(dev)
        if graphed:
            module = make(module, (_input(dev, 50, False),))
        kept = []
        for step in range(ROUNDS):
            module(_input(dev, step, False)).square().sum().backward()
            if step == 0:
                kept = [weight.grad for weight in module.parameters()]
                module.zero_grad(set_to_none=True)
        kept += [weight.grad for weight in module.parameters()]
        answers.append([None if one is None else dev.cpu(one) for one in kept])
    _assert_alike(dev, answers[1], answers[0])


@check("graph/callables_mode", "GRAPH-024", needs=("graphs",))
def a_graphed_module_runs_as_before_in_the_other_mode(dev: Device) -> None:
    """In evaluation a module that was graphed in training takes other sizes, without dropout."""
    module = nn.Sequential(_layers(dev), nn.Dropout(0.5))
    graphed = _maker(dev)(module, (_input(dev, 50),))
    assert bool((graphed(_input(dev, 1)) == 0).any()), "no element was dropped in training"
    graphed.eval()
    x = noise((2 * ROWS, COLUMNS), seed=2).to(dev.device())
    dev.assert_close(graphed(x), dev.cpu(_layers(dev)(x)))


def _hooked(dev: Device) -> nn.Module:
    module = _layers(dev)
    module.register_forward_hook(lambda *_: None)
    return module


def _with_a_trained_buffer(dev: Device) -> nn.Module:
    module = _layers(dev)
    module.register_buffer("scale", torch.ones(1, device=dev.device(), requires_grad=True))
    return module


#: Callables that make_graphed_callables does not take with these samples.
_WRONG: dict[str, tuple[Callable[[Device], Any], Callable[[Device], tuple[Any, ...]]]] = {
    "number": (lambda dev: lambda a, b: a * b, lambda dev: (_input(dev, 1), 2.0)),
    "hook": (_hooked, lambda dev: (_input(dev, 1),)),
    "buffer": (_with_a_trained_buffer, lambda dev: (_input(dev, 1),)),
}


def _verify_refusal(dev: Device, make: Callable[[], Any]) -> None:
    error = raised(make)
    assert isinstance(error, (TypeError, RuntimeError, AssertionError)), f"it gives {error!r}"
    dev.assert_equal(torch.ones(4, device=dev.device()) + 1, torch.full((4,), 2.0))


@check("graph/callables_refused", "GRAPH-024", needs=("graphs",), cases=_WRONG)
def what_cannot_be_graphed_is_refused(dev: Device, case: str) -> None:
    """Numbers, hooks and buffers with gradients raise, and leave the device usable."""
    make, (made, sample) = _maker(dev), _WRONG[case]
    _verify_refusal(dev, lambda: make(made(dev), sample(dev)))


@check("graph/callables_refused:cached_casts", "GRAPH-024", needs=("graphs", "autocast"))
def casts_that_autocast_keeps_cannot_be_graphed(dev: Device) -> None:
    """Autocast that keeps its casts raises, as another capture would use them."""
    make, module, sample = _maker(dev), _layers(dev), (_input(dev, 1),)
    with torch.autocast(dev.type, cache_enabled=True):
        _verify_refusal(dev, lambda: make(module, sample))
