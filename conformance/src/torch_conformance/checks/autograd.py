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

from torch_conformance.authoring.api import (
    LATE_MS,
    Device,
    Program,
    agree,
    check,
    gradients,
    in_thread,
    in_threads,
    leaf,
    noise,
    raised,
)
from torch_conformance.authoring.api import index as _index

#: A differentiable function of one tensor of shape (2, 4), for derivatives of every kind.
Function = Callable[[Tensor], Tensor]


def _like(x: Tensor, *shape: int) -> Tensor:
    """Constant values of the dtype and device of `x`; not random, for torch.func's sake."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    return (steps * 1.7 + 0.5).sin().to(x.device, x.dtype)


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


@check("autograd/second", "GRAD-001", cases=FUNCTIONS)
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


@check("autograd/gradcheck", "GRAD-002", needs=("float64",), cases=FUNCTIONS)
def gradients_agree_with_finite_differences(dev: Device, case: str) -> None:
    """gradcheck and, along a random direction, gradgradcheck pass in float64."""
    x = noise((2, 4), torch.float64).to(dev.device()).requires_grad_()
    assert torch.autograd.gradcheck(FUNCTIONS[case], (x,), fast_mode=True)
    assert torch.autograd.gradgradcheck(FUNCTIONS[case], (x,), fast_mode=True)


@check("autograd/forward_mode", "GRAD-003", cases=FUNCTIONS)
def forward_mode_agrees(dev: Device, case: str) -> None:
    """The directional derivative by dual numbers agrees with the CPU's."""

    def program(device: torch.device) -> list[Tensor]:
        with forward_ad.dual_level():
            x = forward_ad.make_dual(noise((2, 4)).to(device), noise((2, 4), seed=5).to(device))
            out = forward_ad.unpack_dual(FUNCTIONS[case](x))
            assert out.tangent is not None
            return [out.primal, out.tangent]

    agree(dev, program, rtol=1e-3, atol=1e-4)


def _dual(dev: Device, requires_grad: bool = False) -> Tensor:
    """noise((3,)) with the tangent noise((3,), seed=1), in the level that is open."""
    x, tangent = noise((3,)).to(dev.device()), noise((3,), seed=1).to(dev.device())
    return forward_ad.make_dual(x.requires_grad_(requires_grad), tangent)


@check("autograd/forward_mode_rules:in_place", "GRAD-003")
def in_place_work_carries_tangents(dev: Device) -> None:
    """In-place operators change the tangent together with the value."""
    with forward_ad.dual_level():
        dual = _dual(dev)
        out = forward_ad.unpack_dual((dual * 1).mul_(dual).add_(1))
        dev.assert_close(out.tangent, 2 * noise((3,)) * noise((3,), seed=1))


@check("autograd/forward_mode_rules:levels", "GRAD-003")
def leaving_the_level_drops_tangents(dev: Device) -> None:
    """A dual number has its tangent in its level, and none in the next."""
    with forward_ad.dual_level():
        dual = _dual(dev)
        assert forward_ad.unpack_dual(dual).tangent is not None
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(dual).tangent is None


@check("autograd/forward_mode_rules:over_reverse", "GRAD-003")
def forward_mode_runs_over_reverse_mode(dev: Device) -> None:
    """The gradient of a dual number carries the tangent of the gradient."""
    with forward_ad.dual_level():
        dual = _dual(dev, requires_grad=True)
        (gradient,) = torch.autograd.grad((dual**3).sum(), dual, create_graph=True)
        out = forward_ad.unpack_dual(gradient)
        dev.assert_close(out.tangent, 6 * noise((3,)) * noise((3,), seed=1))


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


# ---- saved tensors -----------------------------------------------------------------------------


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


# ---- checkpointing -----------------------------------------------------------------------------

#: The values of use_reentrant.
_REENTRANT = {"reentrant": True, "non_reentrant": False}


def _block(x: Tensor, w: Tensor) -> Tensor:
    return functional.dropout((x @ w).tanh(), 0.5)


# torch.utils.checkpoint asks for the state of autocast, and fails where there is none.
@check("autograd/checkpoint", "GRAD-006", needs=("autocast",), cases=_REENTRANT)
def checkpointing_changes_nothing_but_memory(dev: Device, case: str) -> None:
    """Values and gradients are those without checkpointing, dropout and nesting included."""
    results = []
    for wrapped in (False, True):

        def inner(x: Tensor, w: Tensor, wrapped: bool = wrapped) -> Tensor:
            return checkpointed(_block, _block(x, w), w) if wrapped else _block(_block(x, w), w)

        def checkpointed(function: Any, *arguments: Tensor) -> Any:
            return checkpoint(function, *arguments, use_reentrant=_REENTRANT[case])

        x, w = leaf(dev.device(), 6, 5), leaf(dev.device(), 5, 5, seed=1)
        torch.manual_seed(3)
        out = checkpointed(inner, x, w) if wrapped else inner(x, w)
        after = torch.rand(3, device=dev.device())
        out.square().sum().backward()
        results.append([out.detach(), x.grad, w.grad, after])
    for plain, recomputed in zip(*results, strict=True):
        assert plain is not None and recomputed is not None
        dev.assert_equal(recomputed, plain.cpu())


@check("autograd/checkpoint_rng", "GRAD-014", needs=("generator",), cases=_REENTRANT)
def preserving_the_random_state_is_a_choice(dev: Device, case: str) -> None:
    """preserve_rng_state=True leaves the sequence after backward alone; False draws again."""
    for preserve in (True, False):
        x = torch.ones(200, device=dev.device(), requires_grad=True)
        torch.manual_seed(3)
        out: Any = checkpoint(
            lambda t: functional.dropout(t * 2, 0.5),
            x,
            use_reentrant=_REENTRANT[case],
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


def _sequential(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 4)
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.ReLU()).to(device)
    return gradients(checkpoint_sequential(module, 2, x, use_reentrant=False), x)


def _early_stop(device: torch.device) -> list[Tensor]:
    x, ends = leaf(device, 4, 4), []

    def block(t: Tensor) -> Tensor:
        out = t.exp().sin()
        ends.append(out)
        return out

    with torch.utils.checkpoint.set_checkpoint_early_stop(True):
        results = gradients(checkpoint(block, x, use_reentrant=False), x)
    assert len(ends) == 1, "recomputation went on after the last tensor that was saved"
    return results


def _keywords(device: torch.device) -> list[Tensor]:
    x = leaf(device, 4, 4)
    out: Any = checkpoint(
        lambda t, *, scale: (t * scale).sin(), x, scale=x.detach(), use_reentrant=False
    )
    return gradients(out, x)


_CHECKPOINT_FORMS: dict[str, Program] = {
    "sequential": _sequential,
    "early_stop": _early_stop,
    "keywords": _keywords,
}


@check("autograd/checkpoint_forms", "GRAD-006", needs=("autocast",), cases=_CHECKPOINT_FORMS)
def checkpointing_has_its_forms(dev: Device, case: str) -> None:
    """checkpoint_sequential, early stopping and keyword arguments give the CPU's gradients."""
    agree(dev, _CHECKPOINT_FORMS[case], rtol=1e-4, atol=1e-5)


@check("autograd/checkpoint_differs", "GRAD-006", needs=("autocast",))
def a_recomputation_that_differs_is_noticed(dev: Device) -> None:
    """A function that saves tensors of other sizes when it runs again raises CheckpointError."""
    runs = []

    def unsteady(x: Tensor) -> Tensor:
        runs.append(0)
        return x.exp() if len(runs) == 1 else x[1:].exp()

    out: Any = checkpoint(unsteady, leaf(dev.device(), 3), use_reentrant=False)
    assert isinstance(raised(out.sum().backward), CheckpointError)


@check("autograd/checkpoint_autocast", "GRAD-006", needs=("autocast",), cases=_REENTRANT)
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
        out: Any = checkpoint(block, x, use_reentrant=_REENTRANT[case])
    out.float().sum().backward()
    assert seen == [low, low]


# ---- anomalies ---------------------------------------------------------------------------------


def _anomalous(x: Tensor) -> Tensor:
    """Its gradient at 0 is 0 * infinity."""
    return (x.sqrt() * 0).sum()


def _zeros(dev: Device, count: int) -> Tensor:
    return torch.zeros(count, device=dev.device(), requires_grad=True)


def _anomaly(dev: Device) -> tuple[RuntimeError, str]:
    """The error of a backward that makes NaN in anomaly mode, and the text of all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            error = raised(_anomalous(_zeros(dev, 2)).backward)
    assert isinstance(error, RuntimeError)
    return error, "\n".join(str(warning.message) for warning in caught)


@check("autograd/anomaly:names", "GRAD-007")
def anomaly_mode_names_the_node(dev: Device) -> None:
    """The error of anomaly mode names the node whose gradient is NaN."""
    error, _ = _anomaly(dev)
    assert "SqrtBackward" in str(error), str(error)


@check("autograd/anomaly:trace", "GRAD-007")
def anomaly_mode_shows_the_forward_call(dev: Device) -> None:
    """A warning of anomaly mode shows the call of forward that made the node."""
    _, text = _anomaly(dev)
    assert "_anomalous" in text and "sqrt()" in text, text


@check("autograd/anomaly:unchecked", "GRAD-007")
def anomaly_mode_can_leave_nan_alone(dev: Device) -> None:
    """With check_nan=False a gradient may be NaN."""
    x = _zeros(dev, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False):
            _anomalous(x).backward()
    dev.assert_equal(x.grad, [math.nan, math.nan])


@check("autograd/anomaly:hook_value", "GRAD-007")
def anomaly_mode_can_be_switched_off(dev: Device) -> None:
    """After an anomaly, backward with the mode switched off leaves NaN alone."""
    error, _ = _anomaly(dev)
    assert "SqrtBackward" in str(error), str(error)
    x = _zeros(dev, 2)
    with torch.autograd.set_detect_anomaly(False):
        _anomalous(x).backward()
    dev.assert_equal(x.grad, [math.nan, math.nan])


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


_ON_STREAMS = ("streams", "delay")


@contextmanager
def _forward_on_streams(
    dev: Device, gradient: float
) -> Iterator[tuple[Tensor, torch.Stream, torch.Stream]]:
    """A leaf and two streams; after the block its gradient is read on the caller's stream."""
    x, first, second = _ones(dev), dev.stream(), dev.stream()
    dev.synchronize()
    yield x, first, second
    assert x.grad is not None
    dev.assert_equal(x.grad + 1, torch.full((_N,), gradient + 1))
    first.synchronize()
    second.synchronize()


def _times(x: Tensor, factor: float) -> Tensor:
    """A product whose backward reads a tensor that forward made on its stream."""
    return x * torch.full_like(x, factor).detach()


def _late_sums(dev: Device, x: Tensor, *sides: torch.Stream) -> list[Tensor]:
    """The sums of 2x, 3x and so on, each made late on a stream of its own."""
    sums = []
    for factor, side in enumerate(sides, 2):
        with _late(dev, side):
            sums.append(_times(x, factor).sum())
    return sums


@check("autograd/stream:branches", "GRAD-008", needs=_ON_STREAMS)
def branches_on_several_streams_meet(dev: Device) -> None:
    """The gradient of a sum whose branches were made on two streams is complete."""
    with _forward_on_streams(dev, 2.0 + 3.0) as (x, *sides):
        first, second = _late_sums(dev, x, *sides)
        for side in sides:
            dev.current_stream().wait_stream(side)
        (first + second).backward()


@check("autograd/stream:accumulated", "GRAD-008", needs=_ON_STREAMS)
def backwards_on_several_streams_accumulate(dev: Device) -> None:
    """The gradients of graphs that were made on two streams add up in the leaf."""
    with _forward_on_streams(dev, 2.0 + 3.0) as (x, *sides):
        for part in _late_sums(dev, x, *sides):
            part.backward()


@check("autograd/stream:caller", "GRAD-008", needs=_ON_STREAMS)
def backward_on_a_side_stream_is_in_its_order(dev: Device) -> None:
    """A gradient can be read on the side stream that called backward."""
    with _forward_on_streams(dev, 3.0) as (x, first, second):
        with _late(dev, first):
            y = _times(x, 3)
        with second:
            second.wait_stream(first)
            y.sum().backward()
            read = x.grad + 1  # type: ignore[operator]  # set by a backward
        dev.current_stream().wait_stream(second)
        dev.assert_equal(read, torch.full((_N,), 4.0))


@check("autograd/stream:late_gradient", "GRAD-008", needs=_ON_STREAMS)
def a_late_weight_of_the_gradient_is_waited_for(dev: Device) -> None:
    """Backward on the stream of forward waits for the gradient that the caller still makes."""
    with _forward_on_streams(dev, 2.0 * 3.0) as (x, side, _):
        with side:
            y = x * 3
        weight = torch.zeros(_N, device=dev.device())
        with _late(dev, dev.current_stream()):
            weight.fill_(2)
        dev.current_stream().wait_stream(side)
        y.backward(weight)


@check("autograd/stream:thread", "GRAD-008", needs=_ON_STREAMS)
def backward_in_a_thread_is_in_the_order_of_its_stream(dev: Device) -> None:
    """A thread, whose current stream is the default one, differentiates a side stream's work."""
    dev.require("threads")
    with _forward_on_streams(dev, 3.0) as (x, side, _):
        with _late(dev, side):
            y = _times(x, 3)

        def backward() -> None:
            dev.current_stream().wait_stream(side)
            y.sum().backward()

        in_thread(backward)
        dev.synchronize()


@check("autograd/stream:no_wait", "GRAD-008", needs=_ON_STREAMS)
def backward_waits_for_the_streams_of_forward(dev: Device) -> None:
    """A caller that does not wait for the stream of forward gets the whole gradient."""
    with _forward_on_streams(dev, 3.0) as (x, side, _):
        with _late(dev, side):
            y = _times(x, 3)
        with side:
            total = y.sum()
        total.backward()


@check("autograd/hook_stream", "GRAD-015", needs=("streams",))
def hooks_run_on_the_stream_of_forward(dev: Device) -> None:
    """The current stream in a hook is the one on which the tensor was made."""
    x, side, seen = _ones(dev), dev.stream(), []
    side.wait_stream(dev.current_stream())
    with side:
        y = x * 2
        y.register_hook(lambda g: seen.append(dev.current_stream()))
    dev.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side]


@contextmanager
def _two_devices(dev: Device) -> Iterator[tuple[Tensor, torch.device]]:
    """A leaf on device 0, and device 1; the block must leave the current device as it is."""
    current = torch.accelerator.current_device_index()
    x = _ones(dev, 0)
    dev.synchronize()
    yield x, dev.device(1)
    assert torch.accelerator.current_device_index() == current


#: A tensor of device 0 sent through device 1, and the gradient of its sum.
_ROUTES: dict[str, tuple[Callable[[Tensor, torch.device], Tensor], float]] = {
    "chain": (lambda x, there: (x.to(there) * 2).to(x.device).mul(3).to(there), 6.0),
    "branches": (lambda x, there: (x.to(there) * 2).sum().to(x.device) + (x * 3).sum(), 5.0),
    "current": (lambda x, there: x.to(there) * 2, 2.0),
}


@check("autograd/device", "GRAD-009", needs=("multi_device",), cases=_ROUTES)
def graphs_may_span_devices(dev: Device, case: str) -> None:
    """Gradients flow back over copies between devices, and the current device stays."""
    route, expected = _ROUTES[case]
    with _two_devices(dev) as (x, there):
        route(x, there).sum().backward()
        dev.assert_equal(x.grad, torch.full((_N,), expected))


@check("autograd/device:leaves", "GRAD-009", needs=("multi_device",))
def gradients_arrive_where_their_leaves_are(dev: Device) -> None:
    """Leaves on two devices get their gradients on their own devices."""
    with _two_devices(dev) as (x, there):
        y = _ones(dev, 1)
        (x.to(there) * y * 4).sum().backward()
        assert x.grad is not None and y.grad is not None
        assert (x.grad.device.index, y.grad.device.index) == (0, 1)
        dev.assert_equal([x.grad, y.grad], [torch.full((_N,), 4.0)] * 2)


@check("autograd/device:late", "GRAD-009", needs=("multi_device",))
def gradients_wait_for_work_of_the_other_device(dev: Device) -> None:
    """A gradient is in order with work of the other device that is not done yet."""
    dev.require("delay", "streams")
    with _two_devices(dev) as (x, there):
        with torch.accelerator.device_index(1):
            dev.delay(LATE_MS)
            y = x.to(there) * 7
        y.sum().backward()
        assert x.grad is not None
        dev.assert_equal(x.grad + 1, torch.full((_N,), 8.0))


@check("autograd/device:hook", "GRAD-009", needs=("multi_device",))
def hooks_run_on_the_device_of_their_tensor(dev: Device) -> None:
    """The current device in a hook is that of the tensor it is for."""
    seen: list[int] = []
    with _two_devices(dev) as (x, there):
        y = x.to(there)
        y.register_hook(lambda g: seen.append(torch.accelerator.current_device_index()))
        y.sum().backward()
        assert seen == [1]


@check("autograd/device:thread", "GRAD-009", needs=("multi_device",))
def threads_differentiate_on_two_devices(dev: Device) -> None:
    """Backward on two devices at the same time, one in each thread, adds up in a leaf."""
    dev.require("threads")
    with _two_devices(dev) as (x, _):

        def backward_on(index: int) -> None:
            (x.to(dev.device(index)) * (index + 1)).sum().backward()

        in_threads([partial(backward_on, index) for index in (0, 1)])
        dev.assert_equal(x.grad, torch.full((_N,), 3.0))


def _accumulated(x: Tensor, factor: int) -> Tensor:
    """The gradient of `x` after five backwards."""
    for _ in range(5):
        (x * factor).sum().backward()
    assert x.grad is not None
    return x.grad


@check("autograd/thread:own", "GRAD-010", needs=("threads",))
def threads_differentiate_graphs_of_their_own(dev: Device) -> None:
    """Threads differentiate, each a graph with a leaf of its own, at the same time."""

    def work(factor: int) -> Tensor:
        return _accumulated(_zeros(dev, 64), factor)

    results = in_threads([partial(work, i) for i in range(1, 5)])
    dev.assert_equal(results, [torch.full((64,), 5.0 * i) for i in range(1, 5)])


@check("autograd/thread:shared", "GRAD-016", needs=("threads",))
def threads_add_to_one_gradient(dev: Device) -> None:
    """Threads that differentiate with respect to one leaf, at the same time, lose no gradient."""
    x = _zeros(dev, 64)
    in_threads([partial(_accumulated, x, i) for i in range(1, 5)])
    dev.assert_equal(x.grad, torch.full((64,), 50.0))


@check("autograd/thread:grad_mode", "GRAD-010", needs=("threads",))
def grad_mode_belongs_to_its_thread(dev: Device) -> None:
    """A thread that is started under no_grad records."""
    x = _zeros(dev, 64)
    with torch.no_grad():
        assert in_thread(lambda: (x * 2).requires_grad)


# ---- accumulation ------------------------------------------------------------------------------


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


def _several(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3)
    y, sign = _Several.apply(x, 0.5)
    assert not sign.requires_grad
    return [sign, *gradients(y, x)]


def _dirty(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3)
    y = x * 1
    _Dirty.apply(y)
    return gradients(y, x)


def _double(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3)
    (first,) = torch.autograd.grad(_Transformable.apply(x).sum(), x, create_graph=True)
    return [first, *torch.autograd.grad(first.sum(), x)]


def _forward_mode(device: torch.device) -> list[Tensor]:
    x = leaf(device, 2, 3).detach()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        tangent = forward_ad.unpack_dual(_Transformable.apply(dual)).tangent
        assert tangent is not None
        return [tangent]


_OWN: dict[str, Program] = {
    "several": _several,
    "dirty": _dirty,
    "double": _double,
    "forward_mode": _forward_mode,
}


@check("autograd/function", "GRAD-013", cases=_OWN)
def functions_of_ones_own_agree(dev: Device, case: str) -> None:
    """autograd.Function with several results, in-place work, setup_context and jvp agrees."""
    agree(dev, _OWN[case], rtol=1e-4, atol=1e-5)


@check("autograd/function_once", "GRAD-013")
def a_backward_that_is_not_differentiable_says_so(dev: Device) -> None:
    """once_differentiable raises when its gradient is differentiated."""
    x = leaf(dev.device(), 3)
    (first,) = torch.autograd.grad(_Once.apply(x).sum(), x, create_graph=True)
    error = raised(lambda: torch.autograd.grad(first.sum(), x))
    assert isinstance(error, RuntimeError)
