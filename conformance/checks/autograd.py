# SPDX-License-Identifier: BSD-3-Clause
"""Autograd in depth: higher derivatives, hooks, checkpointing, anomalies, streams, devices, rules.

What the chapter `operator` asks of autograd in passing is not repeated here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

from conformance.check import check
from conformance.device import Device
from conformance.observe import LATE_MS, in_thread, in_threads, raised
from conformance.programs import Program, agree, gradients, leaf
from conformance.tensors import noise

#: A differentiable function of one tensor of shape (2, 4), for derivatives of every kind.
Function = Callable[[Tensor], Tensor]


def _like(x: Tensor, *shape: int) -> Tensor:
    """Constant values of the dtype and device of `x`; not random, for torch.func's sake."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    return (steps * 1.7 + 0.5).sin().to(x.device, x.dtype)


def _index(x: Tensor, *values: int) -> Tensor:
    return torch.tensor(values, device=x.device)


FUNCTIONS: dict[str, Function] = {
    "matmul": lambda x: x @ x.t(),
    "linear": lambda x: functional.linear(x, _like(x, 3, 4), _like(x, 3)).tanh(),
    "bmm": lambda x: torch.bmm(x.view(2, 2, 2), x.view(2, 2, 2).mT),
    "conv1d": lambda x: functional.conv1d(x.view(1, 2, 4), _like(x, 3, 2, 2)).square(),
    "conv2d": lambda x: functional.conv2d(x.view(1, 1, 2, 4), _like(x, 2, 1, 2, 2)).square(),
    "conv_transpose": lambda x: functional.conv_transpose1d(
        x.view(1, 2, 4), _like(x, 2, 3, 2)
    ).square(),
    "layer_norm": lambda x: functional.layer_norm(x, (4,), _like(x, 4), _like(x, 4)),
    "group_norm": lambda x: functional.group_norm(x, 2),
    "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "gelu": functional.gelu,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "sigmoid": torch.sigmoid,
    "pow": lambda x: x.abs().pow(2.5),
    "divide": lambda x: x / (x.square() + 1),
    "prod": lambda x: x.prod(1),
    "cumsum": lambda x: x.cumsum(1).square(),
    "cumprod": lambda x: x.cumprod(1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "std": lambda x: x.std(1),
    "index": lambda x: x[:, _index(x, 0, 2, 2)].square(),
    "gather": lambda x: x.gather(1, _index(x, 3, 1).view(2, 1)).square(),
    "scatter_add": lambda x: (
        torch.zeros_like(x).scatter_add(1, _index(x, 0, 1, 1, 3).expand(2, 4), x).square()
    ),
    "cat": lambda x: torch.cat([x, x.square()], 1).sin(),
    "where": lambda x: torch.where(x > 0, x.square(), x.sin()),
    "max": lambda x: x.max(1).values.square(),
    "sort": lambda x: x.sort(1).values.square(),
    "pool": lambda x: functional.avg_pool1d(x.view(1, 2, 4), 2).square(),
    "interpolate": lambda x: functional.interpolate(
        x.view(1, 2, 4), size=7, mode="linear"
    ).square(),
    "pad": lambda x: functional.pad(x, (1, 1), mode="reflect").square(),
    "as_strided": lambda x: x.as_strided((3, 2), (2, 1)).square(),
    "mse_loss": lambda x: functional.mse_loss(x, _like(x, 2, 4)),
    "cross_entropy": lambda x: functional.cross_entropy(x, _index(x, 1, 3)),
    "attention": lambda x: _attention(x.view(1, 1, 4, 2)),
    "solve": lambda x: torch.linalg.solve(x.view(2, 2, 2).mT @ x.view(2, 2, 2) + _eye(x), _eye(x)),
    "det": lambda x: torch.linalg.det(x.view(2, 2, 2)),
}


def _attention(x: Tensor) -> Tensor:
    """By composition: fused kernels have no second derivative upstream either."""
    with sdpa_kernel(SDPBackend.MATH):
        return functional.scaled_dot_product_attention(x, x.sin(), x)


def _eye(x: Tensor) -> Tensor:
    return torch.eye(2, dtype=x.dtype, device=x.device).expand(2, 2, 2)


# ---- higher derivatives ------------------------------------------------------------------------


@check("autograd/second", "GRAD-001", cases=tuple(FUNCTIONS))
def second_derivatives_agree(dev: Device, case: str) -> None:
    """The gradient of a function's squared gradient agrees with the CPU's."""

    def program(device: torch.device) -> list[Tensor]:
        x = leaf(device, 2, 4)
        out = FUNCTIONS[case](x)
        (first,) = torch.autograd.grad((out * out.detach().cos()).sum(), x, create_graph=True)
        return [first, *torch.autograd.grad(first.square().sum(), x)]

    agree(dev, program, rtol=1e-3, atol=1e-4)


@check("autograd/third", "GRAD-001", cases=("matmul", "softmax", "sigmoid", "linear", "layer_norm"))
def third_derivatives_agree(dev: Device, case: str) -> None:
    """Differentiating three times agrees with the CPU."""

    def program(device: torch.device) -> list[Tensor]:
        x = leaf(device, 2, 4)
        result = FUNCTIONS[case](x).sin().sum()
        for _ in range(3):
            (gradient,) = torch.autograd.grad(result, x, create_graph=True)
            result = gradient.square().sum()
        return [gradient]

    agree(dev, program, rtol=1e-3, atol=1e-3)


@check("autograd/gradcheck", "GRAD-002", needs=("float64",), cases=tuple(FUNCTIONS))
def gradients_agree_with_finite_differences(dev: Device, case: str) -> None:
    """gradcheck and, along a random direction, gradgradcheck pass in float64."""
    x = noise((2, 4), torch.float64).to(dev.device()).requires_grad_()
    assert torch.autograd.gradcheck(FUNCTIONS[case], (x,), fast_mode=True)
    assert torch.autograd.gradgradcheck(FUNCTIONS[case], (x,), fast_mode=True)


@check("autograd/forward_mode", "GRAD-003", cases=tuple(FUNCTIONS))
def forward_mode_agrees(dev: Device, case: str) -> None:
    """The directional derivative by dual numbers agrees with the CPU's."""

    def program(device: torch.device) -> list[Tensor]:
        with forward_ad.dual_level():
            x = forward_ad.make_dual(noise((2, 4)).to(device), noise((2, 4), seed=5).to(device))
            out = forward_ad.unpack_dual(FUNCTIONS[case](x))
            assert out.tangent is not None
            return [out.primal, out.tangent]

    agree(dev, program, rtol=1e-3, atol=1e-4)


@check("autograd/forward_mode_rules", "GRAD-003", cases=("in_place", "levels", "over_reverse"))
def forward_mode_follows_its_rules(dev: Device, case: str) -> None:
    """In-place work carries tangents, leaving the level drops them, and reverse mode nests."""
    x, t = noise((3,)).to(dev.device()), noise((3,), seed=1).to(dev.device())
    host, direction = noise((3,)), noise((3,), seed=1)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone().requires_grad_(case == "over_reverse"), t)
        if case == "in_place":
            out = forward_ad.unpack_dual((dual * 1).mul_(dual).add_(1))
            dev.assert_close(out.tangent, 2 * host * direction)
        elif case == "over_reverse":
            (gradient,) = torch.autograd.grad((dual**3).sum(), dual, create_graph=True)
            out = forward_ad.unpack_dual(gradient)
            dev.assert_close(out.tangent, 6 * host * direction)
        else:
            assert forward_ad.unpack_dual(dual).tangent is not None
    if case == "levels":
        with forward_ad.dual_level():
            assert forward_ad.unpack_dual(dual).tangent is None


# ---- hooks -------------------------------------------------------------------------------------


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


@check("autograd/hook", "GRAD-004", cases=tuple(_HOOKS))
def hooks_see_and_change_gradients(dev: Device, case: str) -> None:
    """Hooks of tensors, leaves, nodes and modules run in order and see what the CPU's see."""
    agree(dev, _HOOKS[case], rtol=1e-4, atol=1e-5)


@check("autograd/hook_error", "GRAD-004", cases=("tensor", "accumulate"))
def an_error_in_a_hook_reaches_the_caller(dev: Device, case: str) -> None:
    """An exception in a hook ends backward with that exception; the device stays usable."""
    x = leaf(dev.device(), 3)

    def fail(_: Tensor) -> None:
        raise KeyError("from the hook")

    if case == "tensor":
        x.register_hook(fail)
    else:
        x.register_post_accumulate_grad_hook(fail)
    assert isinstance(raised((x * 2).sum().backward), KeyError)
    other = torch.ones(3, device=dev.device(), requires_grad=True)
    (other * 2).sum().backward()
    dev.assert_equal(other.grad, [2.0, 2.0, 2.0])


# ---- saved tensors -----------------------------------------------------------------------------


@check("autograd/saved_hooks", "GRAD-005", cases=("offload", "quantise", "nested"))
def saved_tensors_can_be_packed(dev: Device, case: str) -> None:
    """pack sees what is saved, on its device; backward uses what unpack returns."""
    packed: list[torch.device] = []
    unpacked: list[Any] = []

    def pack(tensor: Tensor) -> Any:
        packed.append(tensor.device)
        return tensor.cpu() if case != "quantise" else (tensor.half(), tensor.dtype)

    def unpack(held: Any) -> Tensor:
        unpacked.append(held)
        if case == "quantise":
            return held[0].to(held[1])
        return held.to(dev.device())

    x = leaf(dev.device(), 4, 3)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        if case == "nested":
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
                out = x.exp()
            out = out.sin()
        else:
            out = x.exp().sin()
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


@check("autograd/save_on_cpu", "GRAD-005", cases=("pageable", "pinned"))
def saving_on_the_cpu_holds_no_device_memory(dev: Device, case: str) -> None:
    """save_on_cpu keeps activations on the host, pinned if asked, and backward is unchanged."""
    if case == "pinned":
        dev.require("pinned_memory")
    x = leaf(dev.device(), 256, 256)
    x.exp().tanh().sum().backward()  # what the backend keeps for itself is there from now on
    before = torch.accelerator.memory_allocated(x.device.index) if dev.has("memory_stats") else 0
    with torch.autograd.graph.save_on_cpu(pin_memory=case == "pinned", device_type=dev.type):
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


# ---- checkpointing -----------------------------------------------------------------------------

_CHECKPOINTED = ("reentrant", "non_reentrant")


def _block(x: Tensor, w: Tensor) -> Tensor:
    return functional.dropout((x @ w).tanh(), 0.5)


# torch.utils.checkpoint asks for the state of autocast, and fails where there is none.
@check("autograd/checkpoint", "GRAD-006", needs=("autocast",), cases=_CHECKPOINTED)
def checkpointing_changes_nothing_but_memory(dev: Device, case: str) -> None:
    """Values and gradients are those without checkpointing, dropout and nesting included."""
    results = []
    for wrapped in (False, True):

        def inner(x: Tensor, w: Tensor, wrapped: bool = wrapped) -> Tensor:
            return checkpointed(_block, _block(x, w), w) if wrapped else _block(_block(x, w), w)

        def checkpointed(function: Any, *arguments: Tensor) -> Any:
            return checkpoint(function, *arguments, use_reentrant=case == "reentrant")

        x, w = leaf(dev.device(), 6, 5), leaf(dev.device(), 5, 5, seed=1)
        torch.manual_seed(3)
        out = checkpointed(inner, x, w) if wrapped else inner(x, w)
        after = torch.rand(3, device=dev.device())
        out.square().sum().backward()
        results.append([out.detach(), x.grad, w.grad, after])
    for plain, recomputed in zip(*results, strict=True):
        assert plain is not None and recomputed is not None
        dev.assert_equal(recomputed, plain.cpu())


@check("autograd/checkpoint_rng", "GRAD-006", needs=("generator",), cases=_CHECKPOINTED)
def preserving_the_random_state_is_a_choice(dev: Device, case: str) -> None:
    """preserve_rng_state=True leaves the sequence after backward alone; False draws anew."""
    for preserve in (True, False):
        x = torch.ones(200, device=dev.device(), requires_grad=True)
        torch.manual_seed(3)
        out: Any = checkpoint(
            lambda t: functional.dropout(t * 2, 0.5),
            x,
            use_reentrant=case == "reentrant",
            preserve_rng_state=preserve,
        )
        expected = torch.rand(4, device=dev.device()).cpu()
        torch.manual_seed(3)
        functional.dropout(x.detach(), 0.5)
        out.sum().backward()
        drawn = torch.rand(4, device=dev.device()).cpu()
        assert x.grad is not None
        same_mask = torch.equal(x.grad.cpu(), out.detach().cpu())
        assert same_mask == preserve
        assert torch.equal(drawn, expected) == preserve


@check(
    "autograd/checkpoint_forms",
    "GRAD-006",
    needs=("autocast",),
    cases=("sequential", "early_stop", "keywords"),
)
def checkpointing_has_its_forms(dev: Device, case: str) -> None:
    """checkpoint_sequential, early stopping and keyword arguments give the plain gradients."""

    def program(device: torch.device) -> list[Tensor]:
        x = leaf(device, 4, 4)
        if case == "sequential":
            torch.manual_seed(1)
            layers = [torch.nn.Linear(4, 4).to(device), torch.nn.Tanh(), torch.nn.ReLU()]
            module = torch.nn.Sequential(*layers)
            return gradients(checkpoint_sequential(module, 2, x, use_reentrant=False), x)
        if case == "keywords":
            out: Any = checkpoint(
                lambda t, *, scale: (t * scale).sin(), x, scale=x.detach(), use_reentrant=False
            )
            return gradients(out, x)
        with torch.utils.checkpoint.set_checkpoint_early_stop(True):
            out = checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
        return gradients(out, x)

    agree(dev, program, rtol=1e-4, atol=1e-5)


@check("autograd/checkpoint_differs", "GRAD-006", needs=("autocast",))
def a_recomputation_that_differs_is_noticed(dev: Device) -> None:
    """A function that saves tensors of other sizes when it runs again raises CheckpointError."""
    runs = []

    def unsteady(x: Tensor) -> Tensor:
        runs.append(0)
        return x.exp() if len(runs) == 1 else x[1:].exp()

    out: Any = checkpoint(unsteady, leaf(dev.device(), 3), use_reentrant=False)
    assert isinstance(raised(out.sum().backward), CheckpointError)


@check("autograd/checkpoint_autocast", "GRAD-006", needs=("autocast",), cases=_CHECKPOINTED)
def recomputation_runs_under_the_autocast_of_forward(dev: Device, case: str) -> None:
    """A block checkpointed under autocast recomputes in low precision, outside of the region."""
    seen = []

    def block(x: Tensor) -> Tensor:
        out = x @ x
        seen.append(out.dtype)
        return out.sin()

    x = leaf(dev.device(), 4, 4)
    low = torch.get_autocast_dtype(dev.type)
    with torch.autocast(dev.type):
        out: Any = checkpoint(block, x, use_reentrant=case == "reentrant")
    out.float().sum().backward()
    assert seen == [low, low]


# ---- anomalies ---------------------------------------------------------------------------------


def _anomalous(device: torch.device) -> Tensor:
    """Its gradient is 0 * infinity."""
    return (torch.zeros(2, device=device, requires_grad=True).sqrt() * 0).sum()


@check("autograd/anomaly", "GRAD-007", cases=("names", "trace", "unchecked", "hook_value"))
def anomaly_mode_tells_where(dev: Device, case: str) -> None:
    """The error names the node, the warning shows the forward call, and checks can be off."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(check_nan=case != "unchecked"):
            loss = _anomalous(dev.device())
            if case == "unchecked":
                loss.backward()
                return
            error = raised(loss.backward)
    assert isinstance(error, RuntimeError)
    assert "SqrtBackward" in str(error) or case == "trace", str(error)
    if case == "trace":
        text = "\n".join(str(warning.message) for warning in caught)
        assert "_anomalous" in text and "sqrt()" in text, text
    if case == "hook_value":
        x = torch.ones(2, device=dev.device(), requires_grad=True)
        with torch.autograd.set_detect_anomaly(False):
            (x.sqrt() * 0).sum().backward()
        dev.assert_equal(x.grad, [0.0, 0.0])


# ---- streams and devices -----------------------------------------------------------------------

_N = 4096


@contextmanager
def _late(dev: Device, stream: torch.Stream) -> Iterator[None]:
    """Run on `stream` after a delay."""
    with stream:
        dev.delay(LATE_MS)
        yield


def _ones(dev: Device, index: int | None = None) -> Tensor:
    return torch.ones(_N, device=dev.device(index), requires_grad=True)


@check(
    "autograd/stream",
    "GRAD-008",
    needs=("streams", "delay"),
    cases=("branches", "accumulated", "caller", "late_gradient", "thread", "no_wait"),
)
def gradients_are_safe_on_the_callers_stream(dev: Device, case: str) -> None:
    """Whatever streams forward used, gradients can be read on the stream that called backward."""
    if case == "thread":
        dev.require("threads")
    x, expected = _ones(dev), 0.0
    sides = [dev.stream(), dev.stream()]
    dev.synchronize()
    if case in ("branches", "accumulated"):
        parts = []
        for factor, side in enumerate(sides, 2):
            with _late(dev, side):
                parts.append((x * torch.full_like(x, factor).detach()).sum())
        if case == "branches":
            for side in sides:
                dev.current_stream().wait_stream(side)
            (parts[0] + parts[1]).backward()
        else:
            for part in parts:
                part.backward()
        expected = 5.0
    elif case in ("caller", "thread", "no_wait"):
        with _late(dev, sides[0]):
            y = x * torch.full_like(x, 3).detach()
        if case == "thread":
            in_thread(lambda: y.sum().backward() if _joins(dev, sides[0]) else None)
            dev.synchronize()
        elif case == "caller":
            with sides[1]:
                sides[1].wait_stream(sides[0])
                y.sum().backward()
                read = x.grad + 1  # type: ignore[operator]  # set by a backward
            dev.current_stream().wait_stream(sides[1])
            dev.assert_equal(read, torch.full((_N,), 4.0))
        else:
            with sides[0]:
                total = y.sum()
            total.backward()
        expected = 3.0
    else:
        with sides[0]:
            y = x * 3
        weight = torch.zeros(_N, device=dev.device())
        with _late(dev, dev.current_stream()):
            weight.fill_(2)
        dev.current_stream().wait_stream(sides[0])
        y.backward(weight)
        expected = 6.0
    assert x.grad is not None
    dev.assert_equal(x.grad + 1, torch.full((_N,), expected + 1))
    for side in sides:
        side.synchronize()


def _joins(dev: Device, side: torch.Stream) -> bool:
    dev.current_stream().wait_stream(side)
    return True


@check("autograd/hook_stream", "GRAD-008", needs=("streams",))
def hooks_run_on_the_stream_of_forward(dev: Device) -> None:
    """The current stream in a hook is the one on which the tensor was made."""
    x, side, seen = _ones(dev), dev.stream(), []
    with side:
        y = x * 2
        y.register_hook(lambda g: seen.append(dev.current_stream()))
    dev.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side]


@check(
    "autograd/device",
    "GRAD-009",
    needs=("multi_device",),
    cases=("chain", "branches", "leaves", "late", "hook", "thread", "current"),
)
def graphs_may_span_devices(dev: Device, case: str) -> None:
    """Gradients flow back over copies between devices, arrive where their leaves live, in order."""
    if case in ("late", "thread"):
        dev.require(*{"late": ("delay", "streams"), "thread": ("threads",)}[case])
    x, there = _ones(dev, 0), dev.device(1)
    current = torch.accelerator.current_device_index()
    dev.synchronize()
    if case == "chain":
        (x.to(there) * 2).to(dev.device(0)).mul(3).to(there).sum().backward()
        dev.assert_equal(x.grad, torch.full((_N,), 6.0))
    elif case == "branches":
        (x.to(there) * 2).sum().to(dev.device(0)).add((x * 3).sum()).backward()
        dev.assert_equal(x.grad, torch.full((_N,), 5.0))
    elif case == "leaves":
        y = _ones(dev, 1)
        (x.to(there) * y * 4).sum().backward()
        assert x.grad is not None and y.grad is not None
        assert (x.grad.device.index, y.grad.device.index) == (0, 1)
        dev.assert_equal([x.grad, y.grad], [torch.full((_N,), 4.0)] * 2)
    elif case == "late":
        with torch.accelerator.device_index(1):
            dev.delay(LATE_MS)
            y = x.to(there) * 7
        y.sum().backward()
        assert x.grad is not None
        dev.assert_equal(x.grad + 1, torch.full((_N,), 8.0))
    elif case == "hook":
        seen: list[int] = []
        y = x.to(there)
        y.register_hook(lambda g: seen.append(torch.accelerator.current_device_index()))
        y.sum().backward()
        assert seen == [1]
    elif case == "thread":

        def backward_on(index: int) -> None:
            (x.to(dev.device(index)) * (index + 1)).sum().backward()

        in_threads([partial(backward_on, index) for index in (0, 1)])
        dev.assert_equal(x.grad, torch.full((_N,), 3.0))
    else:
        (x.to(there) * 2).sum().backward()
    assert torch.accelerator.current_device_index() == current


@check("autograd/thread", "GRAD-010", needs=("threads",), cases=("own", "shared", "grad_mode"))
def backward_runs_from_any_thread(dev: Device, case: str) -> None:
    """Threads differentiate graphs of their own, and of a shared leaf, at the same time."""
    x = torch.zeros(64, device=dev.device(), requires_grad=True)
    if case == "grad_mode":
        with torch.no_grad():
            assert in_thread(lambda: (x * 2).requires_grad)
        return

    def work(factor: int) -> Tensor:
        own = x if case == "shared" else torch.zeros(64, device=dev.device(), requires_grad=True)
        for _ in range(5):
            (own * factor).sum().backward()
        assert own.grad is not None
        return own.grad

    results = in_threads([partial(work, i) for i in range(1, 5)])
    if case == "shared":
        dev.assert_equal(x.grad, torch.full((64,), 50.0))
    else:
        dev.assert_equal(results, [torch.full((64,), 5.0 * i) for i in range(1, 5)])


# ---- accumulation ------------------------------------------------------------------------------


@check(
    "autograd/accumulate",
    "GRAD-011",
    cases=("in_place", "graph", "layout", "given", "no_alias", "set_to_none", "inputs"),
)
def gradients_accumulate_by_the_rules(dev: Device, case: str) -> None:
    """.grad is added to in place, follows the layout of its leaf, and aliases nothing."""
    x = leaf(dev.device(), 3, 4)
    if case == "in_place":
        (x * 2).sum().backward()
        held = x.grad
        (x * 3).sum().backward()
        assert x.grad is held
        dev.assert_equal(held, torch.full((3, 4), 5.0))
    elif case == "graph":
        (x**2).sum().backward(create_graph=True)
        held = x.grad
        assert held is not None and held.requires_grad
        x.grad = None
        held.sum().backward()
        dev.assert_equal(x.grad, torch.full((3, 4), 2.0))
    elif case == "layout":
        y = noise((3, 4)).to(dev.device()).t().requires_grad_()
        (y.contiguous() * 2).sum().backward()
        assert y.grad is not None
        assert y.grad.stride() == y.stride()
    elif case == "given":
        x.grad = torch.ones(3, 4, device=dev.device())
        (x * 2).sum().backward()
        dev.assert_equal(x.grad, torch.full((3, 4), 3.0))
        error = raised(lambda: setattr(x, "grad", torch.ones(2, device=dev.device())))
        assert isinstance(error, RuntimeError)
    elif case == "no_alias":
        y = leaf(dev.device(), 3, 4, seed=1)
        (x + y).sum().backward()
        assert x.grad is not None and y.grad is not None
        x.grad.mul_(5)
        dev.assert_equal(y.grad, torch.ones(3, 4))
    elif case == "set_to_none":
        module = torch.nn.ParameterList([x])
        (module[0] * 2).sum().backward()
        module.zero_grad(set_to_none=False)
        dev.assert_equal(module[0].grad, torch.zeros(3, 4))
        module.zero_grad()
        assert module[0].grad is None
    else:
        y = leaf(dev.device(), 3, 4, seed=1)
        (x * y).sum().backward(inputs=[y])
        assert x.grad is None
        dev.assert_close(y.grad, x.detach().cpu())


# ---- rules -------------------------------------------------------------------------------------


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
    "numpy": (lambda x: x.numpy(), "requires grad"),
}


@check("autograd/forbidden", "GRAD-012", cases=tuple(_FORBIDDEN))
def what_would_give_wrong_gradients_is_refused(dev: Device, case: str) -> None:
    """Changing what backward needs, and the other known mistakes, raise with torch's text."""
    work, text = _FORBIDDEN[case]
    error = raised(lambda: work(leaf(dev.device(), 3)))
    if case == "numpy" and isinstance(error, TypeError):
        return
    assert isinstance(error, RuntimeError)
    assert text in str(error), str(error)


@check("autograd/version", "GRAD-012", cases=("in_place", "out", "copy", "foreach", "fill", "data"))
def writes_are_counted(dev: Device, case: str) -> None:
    """Every operator that writes a tensor increases its version, and that of its base."""
    base = torch.zeros(4, device=dev.device())
    view, before = base[:2], base._version
    writes: dict[str, Callable[[], Any]] = {
        "in_place": lambda: view.add_(1),
        "out": lambda: torch.add(torch.ones_like(view), 1, out=view),
        "copy": lambda: view.copy_(torch.ones(2)),
        "foreach": lambda: torch._foreach_add_([view], 1.0),
        "fill": lambda: view.fill_(3),
        "data": lambda: view.data.fill_(3),
    }
    writes[case]()
    assert (base._version > before) == (case != "data")


@check("autograd/mode", "GRAD-012", cases=("set_grad", "nested", "decorator", "detach", "unused"))
def recording_follows_the_modes(dev: Device, case: str) -> None:
    """set_grad_enabled, nesting, decorators, detach and allow_unused behave as on the CPU."""
    x = leaf(dev.device(), 3)
    if case == "set_grad":
        with torch.set_grad_enabled(False):
            assert not (x * 2).requires_grad
        assert (x * 2).requires_grad
    elif case == "nested":
        with torch.no_grad(), torch.enable_grad():
            assert (x * 2).requires_grad
    elif case == "decorator":
        assert not torch.no_grad()(lambda: x * 2)().requires_grad
    elif case == "detach":
        y = x.detach()
        assert y.data_ptr() == x.data_ptr()
        with torch.no_grad():
            y.mul_(0)
        dev.assert_equal(x, [0.0, 0.0, 0.0])
    else:
        other = leaf(dev.device(), 3)
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


# ---- functions of one's own --------------------------------------------------------------------


class _Several(torch.autograd.Function):
    """Two results, one of them without a gradient; a constant argument; a saved result."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Any:
        y, sign = (x * factor).exp(), x.sign()
        ctx.mark_non_differentiable(sign)
        ctx.save_for_backward(y)
        ctx.factor = factor
        return y, sign

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (y,) = ctx.saved_tensors
        return gradients[0] * y * ctx.factor, None


class _Dirty(torch.autograd.Function):
    """Doubles its argument in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 2


class _Transformable(torch.autograd.Function):
    """A cube with a derivative in forward mode."""

    @staticmethod
    def forward(x: Tensor) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * 3 * x**2

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        (x,) = ctx.saved_tensors
        return tangents[0] * 3 * x**2


class _Once(torch.autograd.Function):
    """Its backward cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 2


def _own(case: str, device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3)
    if case == "several":
        y, sign = _Several.apply(x, 0.5)
        assert not sign.requires_grad
        return [sign, *gradients(y, x)]
    if case == "dirty":
        y = x * 1
        _Dirty.apply(y)
        return gradients(y, x)
    if case == "double":
        out = _Transformable.apply(x)
        (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return [first, *torch.autograd.grad(first.sum(), x)]
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones_like(x))
        tangent = forward_ad.unpack_dual(_Transformable.apply(dual)).tangent
        assert tangent is not None
        return [tangent]


@check("autograd/function", "GRAD-013", cases=("several", "dirty", "double", "forward_mode"))
def functions_of_ones_own_agree(dev: Device, case: str) -> None:
    """autograd.Function with several results, in-place work, setup_context and jvp agrees."""
    agree(dev, lambda device: _own(case, device), rtol=1e-4, atol=1e-5)


@check("autograd/function_once", "GRAD-013")
def a_backward_that_is_not_differentiable_says_so(dev: Device) -> None:
    """once_differentiable raises when its gradient is differentiated."""
    x = leaf(dev.device(), 3)
    (first,) = torch.autograd.grad(_Once.apply(x).sum(), x, create_graph=True)
    error = raised(lambda: torch.autograd.grad(first.sum(), x))
    assert isinstance(error, RuntimeError)
