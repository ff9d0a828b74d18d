# SPDX-License-Identifier: BSD-3-Clause
"""Operators on lists of tensors: foreach, fused optimizers, gradient scaling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import torch_puone as puone

# More than a launch holds, one empty.
SHAPES = [(3, 5), (1,), (0,), (17, 2, 3), (), *[(n,) for n in range(1, 90)]]


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """None of these tests may borrow an operator from the CPU."""
    yield
    assert not puone._fallback_counts()


def tensors(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [torch.rand(shape).add(0.5).to(dtype) for shape in SHAPES]


def on_device(value: Any) -> Any:
    """The argument's double on the device."""
    if isinstance(value, Tensor):
        return value.to("puone")
    if isinstance(value, list):
        return [on_device(item) for item in value]
    return value


SCALARS = [0.25 * i + 0.5 for i in range(len(SHAPES))]
CALLS: dict[str, tuple[str, Callable[[], tuple[object, ...]]]] = {
    "sqrt": ("sqrt", lambda: ()),
    "exp": ("exp", lambda: ()),
    "neg": ("neg", lambda: ()),
    "abs": ("abs", lambda: ()),
    "reciprocal": ("reciprocal", lambda: ()),
    "add_scalar": ("add", lambda: (2.5,)),
    "add_list": ("add", lambda: (tensors(),)),
    "add_scalars": ("add", lambda: (SCALARS,)),
    "add_tensor": ("add", lambda: (torch.tensor(1.5),)),
    "sub_scalars": ("sub", lambda: (SCALARS,)),
    "mul_tensor": ("mul", lambda: (torch.tensor(1.5),)),
    "mul_list": ("mul", lambda: (tensors(),)),
    "div_scalar": ("div", lambda: (3,)),
    "div_scalars": ("div", lambda: (SCALARS,)),
    "pow_scalar": ("pow", lambda: (1.5,)),
    "maximum_list": ("maximum", lambda: (tensors(),)),
    "minimum_scalar": ("minimum", lambda: (0.75,)),
    "addcmul": ("addcmul", lambda: (tensors(), tensors(), 0.3)),
    "addcdiv": ("addcdiv", lambda: (tensors(), tensors(), SCALARS)),
    "lerp_scalar": ("lerp", lambda: (tensors(), 0.9)),
    "lerp_list": ("lerp", lambda: (tensors(), tensors())),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_foreach_operators_follow_the_cpu(call: str, dtype: torch.dtype) -> None:
    name, make = CALLS[call]
    arguments = [
        [x.to(dtype) if isinstance(x, Tensor) else x for x in a] if isinstance(a, list) else a
        for a in make()
    ]
    x = tensors(dtype)
    device = on_device(x)
    expected = getattr(torch, f"_foreach_{name}")(x, *arguments)
    result = getattr(torch, f"_foreach_{name}")(device, *map(on_device, arguments))
    before = [t._version for t in device]
    getattr(torch, f"_foreach_{name}_")(device, *map(on_device, arguments))
    for ours, inplace, theirs, version in zip(result, device, expected, before, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
        torch.testing.assert_close(inplace.cpu(), theirs.to(dtype))
        assert inplace._version > version


@pytest.mark.parametrize("name", ["add", "sub"])
def test_alpha_multiplies_the_second_list(name: str) -> None:
    x, y = tensors(), tensors()
    device = on_device(x)
    expected = getattr(torch, f"_foreach_{name}")(x, y, alpha=2.5)
    result = getattr(torch, f"_foreach_{name}")(device, on_device(y), alpha=2.5)
    getattr(torch, f"_foreach_{name}_")(device, on_device(y), alpha=2.5)
    for ours, inplace, theirs in zip(result, device, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
        torch.testing.assert_close(inplace.cpu(), theirs)


def test_foreach_operators_serve_lists_that_are_not_alike() -> None:
    x = [torch.ones(3, 4), torch.ones(2, dtype=torch.int64), torch.ones(4, 3).t()]
    y = [torch.full((3, 4), 2.0), torch.ones(2), torch.ones(3, 4)]
    expected = torch._foreach_add(x, y, alpha=3)
    result = torch._foreach_add(on_device(x), on_device(y), alpha=3)
    for ours, theirs in zip(result, expected, strict=True):
        assert torch.equal(ours.cpu(), theirs) and ours.dtype == theirs.dtype
    with pytest.raises(RuntimeError, match=r"same number|at least one"):
        torch._foreach_add(on_device(x), on_device(y[:2]))
    integers = torch._foreach_div([torch.tensor([3]).to("puone")], 2)
    assert integers[0].dtype == torch.float32 and integers[0].item() == 1.5


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.1, **k),
    "sgd_momentum": lambda p, **k: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.1, **k
    ),
    "sgd_nesterov": lambda p, **k: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, maximize=True, **k
    ),
    "adam": lambda p, **k: torch.optim.Adam(p, lr=0.1, weight_decay=0.1, **k),
    "adam_amsgrad": lambda p, **k: torch.optim.Adam(p, lr=0.1, amsgrad=True, maximize=True, **k),
    "adam_tensor_lr": lambda p, **k: torch.optim.Adam(p, lr=torch.tensor(0.1), **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=0.1, weight_decay=0.2, **k),
    "adagrad": lambda p, **k: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, **k),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fused_optimizers_step_as_the_plain_ones_do(name: str, dtype: torch.dtype) -> None:
    start = [torch.randn(shape, dtype=dtype) for shape in SHAPES]
    ours = [t.to("puone").requires_grad_() for t in start]
    theirs = [t.clone().requires_grad_() for t in start]
    fused = OPTIMIZERS[name](ours, fused=True)
    plain = OPTIMIZERS[name](theirs, foreach=False)
    for _ in range(3):
        for a, b in zip(ours, theirs, strict=True):
            gradient = torch.randn_like(b)
            a.grad, b.grad = gradient.to("puone"), gradient
        fused.step()
        plain.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-6)


def test_the_gradient_scaler_skips_steps_with_infinite_gradients_without_waiting() -> None:
    parameter = torch.ones(5, device="puone", requires_grad=True)
    optimizer = torch.optim.AdamW([parameter], lr=0.1, fused=True)
    scaler = torch.amp.GradScaler("puone", init_scale=8.0, growth_interval=2)
    for factor, scale in ((1.0, 8.0), (float("inf"), 4.0), (1.0, 4.0), (1.0, 8.0)):
        before = parameter.detach().cpu()
        optimizer.zero_grad()
        scaler.scale(parameter.mul(factor)).backward(torch.ones(5, device="puone"))
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(before, parameter.detach().cpu()) == (factor != 1.0)
        assert scaler.get_scale() == scale


def test_unscaling_finds_what_is_not_finite_in_any_tensor_of_any_type() -> None:
    for bad in (float("inf"), float("-inf"), float("nan"), 1.0):
        gradients = [t.to("puone") for t in (*tensors(), *tensors(torch.float16))]
        gradients.append(torch.ones(4, 6, device="puone")[:, ::2])
        expected = [t.cpu().float() / 4 for t in gradients]
        gradients[-1][2, 1] = bad
        found = torch.zeros(1, device="puone")
        torch._amp_foreach_non_finite_check_and_unscale_(
            gradients, found, torch.tensor([0.25], device="puone")
        )
        assert found.item() == (bad != 1.0)
        for ours, theirs in zip(gradients[:-1], expected, strict=False):
            torch.testing.assert_close(ours.cpu().float(), theirs, rtol=1e-3, atol=1e-4)
