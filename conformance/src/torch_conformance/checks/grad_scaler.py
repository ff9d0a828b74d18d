# SPDX-License-Identifier: BSD-3-Clause
"""torch.amp.GradScaler on the device: scaling, unscaling, skipped steps, growth, several users."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, noise, raised
from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.refusal import NOT_FUSED, refuses

_INF = float("inf")
_NOT_FINITE = {"inf": _INF, "minus_inf": -_INF, "nan": float("nan")}


def _scaler(dev: Device, **options: Any) -> torch.amp.GradScaler:
    return torch.amp.GradScaler(dev.type, **{"init_scale": 8.0, "growth_interval": 2, **options})


def _weight(dev: Device, *values: float, index: int | None = None) -> Tensor:
    return torch.tensor(values, device=dev.device(index), requires_grad=True)


def _step(
    scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer, weight: Tensor, gradient: float
) -> None:
    """One iteration in which the gradient of every element of `weight` is `gradient`."""
    optimizer.zero_grad()
    scaler.scale((weight * gradient).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


# ---- scale and unscale -------------------------------------------------------------------------


def _losses(dev: Device) -> list[Tensor]:
    return [_weight(dev, 1.0, 2.0) * 1, _weight(dev, 3.0) * 1]


_SCALED = [torch.tensor([8.0, 16.0]), torch.tensor([24.0])]


@check("grad_scaler/scale:tensor", "SCALER-001")
def scale_multiplies_a_loss(dev: Device) -> None:
    """scale of a loss is the loss times the scale."""
    dev.assert_equal(_scaler(dev).scale(_losses(dev)[0]), _SCALED[0])


_CONTAINERS: dict[str, Callable[[list[Tensor]], Any]] = {"list": list, "tuple": tuple}


@check("grad_scaler/scale", "SCALER-001", cases=_CONTAINERS)
def scale_multiplies_whatever_holds_losses(dev: Device, case: str) -> None:
    """scale returns the container it was given, every tensor in it times the scale."""
    given = _CONTAINERS[case](_losses(dev))
    scaled = _scaler(dev).scale(given)
    assert type(scaled) is type(given)
    dev.assert_equal(list(scaled), _SCALED)


@check("grad_scaler/scale:generator", "SCALER-001")
def scale_multiplies_what_a_generator_yields(dev: Device) -> None:
    """scale of a generator yields every tensor times the scale."""
    scaled: Any = _scaler(dev).scale(iter(_losses(dev)))
    dev.assert_equal(list(scaled), _SCALED)


@check("grad_scaler/scale_device", "SCALER-001", needs=("accelerator",))
def the_scale_is_a_tensor_of_the_device(dev: Device) -> None:
    """A loss stays on its device and keeps its graph; the scale is not read back to the host."""
    scaler = _scaler(dev)
    weight = _weight(dev, 2.0)
    loss = scaler.scale(weight.sum())
    assert loss.device == weight.device
    assert loss.grad_fn is not None
    assert scaler._scale is not None
    assert scaler._scale.device == weight.device


@check("grad_scaler/unscale", "SCALER-002", dtypes=("float32", "float64", "bfloat16"))
def unscale_divides_the_gradients(dev: Device, dtype: torch.dtype) -> None:
    """unscale_ divides gradients of every shape and stride by the scale, in place."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float64", "bfloat16"})
    shapes = ((), (1,), (7, 5), (0,), (33, 17))
    weights = [torch.zeros(s, dtype=dtype, device=dev.device()).requires_grad_() for s in shapes]
    host = [noise(s, seed=i).to(dtype) / 3 for i, s in enumerate(shapes)]  # digits of the dtype
    for weight, gradient in zip(weights, host, strict=True):
        weight.grad = (gradient * 8).to(dev.device())
    strided = torch.zeros(4, 6, dtype=dtype, device=dev.device()).t().requires_grad_()
    strided.grad = torch.full((4, 6), 24.0, dtype=dtype, device=dev.device()).t()
    untouched = torch.zeros(2, dtype=dtype, device=dev.device(), requires_grad=True)
    kept = [weight.grad for weight in weights]
    optimizer = torch.optim.SGD([*weights, strided, untouched], lr=1.0)
    scaler = _scaler(dev)
    scaler.scale(torch.zeros((), device=dev.device()))
    scaler.unscale_(optimizer)
    for weight, same, wanted in zip(weights, kept, host, strict=True):
        assert weight.grad is same
        dev.assert_equal(same, wanted)
    dev.assert_equal(strided.grad, torch.full((6, 4), 3.0, dtype=dtype))
    assert untouched.grad is None


_Call = Callable[[torch.amp.GradScaler, torch.optim.Optimizer], Any]

#: Two calls, of which the second is out of order.
_ORDERS: dict[str, tuple[_Call, _Call]] = {
    "twice": (torch.amp.GradScaler.unscale_, torch.amp.GradScaler.unscale_),
    "after_step": (torch.amp.GradScaler.step, torch.amp.GradScaler.unscale_),
    "step_twice": (torch.amp.GradScaler.step, torch.amp.GradScaler.step),
}


def _scaled(dev: Device, dtype: torch.dtype) -> tuple[torch.amp.GradScaler, torch.optim.Optimizer]:
    """A scaler, and an optimizer of a weight that has a scaled gradient."""
    weight = torch.ones(2, dtype=dtype, device=dev.device(), requires_grad=True)
    scaler = _scaler(dev)
    scaler.scale(weight.sum()).backward()
    return scaler, torch.optim.SGD([weight], lr=0.1)


@check("grad_scaler/unscale_order", "SCALER-003", cases=_ORDERS)
def calls_out_of_order_are_refused(dev: Device, case: str) -> None:
    """unscale_ twice or after step, and step twice, raise."""
    first, second = _ORDERS[case]
    scaler, optimizer = _scaled(dev, torch.float32)
    first(scaler, optimizer)
    assert isinstance(raised(lambda: second(scaler, optimizer)), (RuntimeError, ValueError))


@check("grad_scaler/unscale_order:fp16", "SCALER-003")
def float16_gradients_are_refused(dev: Device) -> None:
    """unscale_ of float16 gradients raises."""
    dev.require("float16")
    scaler, optimizer = _scaled(dev, torch.float16)
    assert isinstance(raised(lambda: scaler.unscale_(optimizer)), (RuntimeError, ValueError))


_CLIPS: dict[str, Callable[[list[Tensor]], object]] = {
    "norm": lambda weights: torch.nn.utils.clip_grad_norm_(weights, 1.0),
    "value": lambda weights: torch.nn.utils.clip_grad_value_(weights, 0.5),
}


@check("grad_scaler/clip", "SCALER-002", cases=_CLIPS)
def clipping_after_unscale_sees_true_gradients(dev: Device, case: str) -> None:
    """unscale_, clip, step gives what clipping without a scaler gives."""

    def run(device: torch.device, scaler: torch.amp.GradScaler | None) -> Tensor:
        weight = noise((4, 3)).to(device, copy=True).requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=0.5)
        loss = (weight * noise((4, 3), seed=1).to(device) * 5).sum()
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.unscale_(optimizer)
        _CLIPS[case]([weight])
        scaler.step(optimizer) if scaler else optimizer.step()
        return weight.detach()

    dev.assert_close(
        run(dev.device(), _scaler(dev)), run(torch.device("cpu"), None), rtol=1e-5, atol=1e-5
    )


# ---- steps that are skipped --------------------------------------------------------------------


@check("grad_scaler/skip", "SCALER-004", cases=_NOT_FINITE)
def a_gradient_that_is_not_finite_skips_the_step(dev: Device, case: str) -> None:
    """One such value anywhere skips the whole step and halves the scale; the next step counts."""
    weights = [_weight(dev, 1.0, 2.0), _weight(dev, *[3.0] * 1000)]
    optimizer = torch.optim.SGD(weights, lr=1.0, momentum=0.9)
    scaler = _scaler(dev)
    scaler.scale(weights[0].sum() + weights[1].sum()).backward()
    assert weights[1].grad is not None
    weights[1].grad[997] = _NOT_FINITE[case]
    scaler.step(optimizer)
    scaler.update()
    dev.assert_equal(weights[0], [1.0, 2.0])
    dev.assert_equal(weights[1], [3.0] * 1000)
    assert scaler.get_scale() == 4.0
    optimizer.zero_grad()
    scaler.scale(weights[0].sum() + weights[1].sum()).backward()
    scaler.step(optimizer)
    dev.assert_equal(weights[0], [0.0, 1.0])


@check("grad_scaler/two_optimizers", "SCALER-004")
def optimizers_are_judged_one_by_one(dev: Device) -> None:
    """Of two optimizers only the one with a bad gradient skips; the scale backs off."""
    good, bad = _weight(dev, 1.0), _weight(dev, 1.0)
    optimizers = [torch.optim.SGD([weight], lr=1.0) for weight in (good, bad)]
    scaler = _scaler(dev)
    scaler.scale(good.sum()).backward(retain_graph=True)
    scaler.scale(bad.sum() * _INF).backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    dev.assert_equal(good, [0.0])
    dev.assert_equal(bad, [1.0])
    assert scaler.get_scale() == 4.0


@check("grad_scaler/two_devices", "SCALER-007", needs=("multi_device",))
def gradients_may_live_on_several_devices(dev: Device) -> None:
    """Gradients of one optimizer on two devices are unscaled; a bad one on either skips."""
    for bad in (None, 0, 1):
        weights = [_weight(dev, 1.0, 2.0, index=i) for i in (0, 1)]
        optimizer, scaler = torch.optim.SGD(weights, lr=1.0), _scaler(dev)
        for weight in weights:
            scaler.scale(weight.sum()).backward()
        if bad is not None:
            gradient = weights[bad].grad
            assert gradient is not None
            gradient[1] = _INF
        scaler.step(optimizer)
        scaler.update()
        for index, weight in enumerate(weights):
            dev.assert_equal(weight, [0.0, 1.0] if bad is None else [1.0, 2.0])
            assert weight.device == dev.device(index)
        assert scaler.get_scale() == (8.0 if bad is None else 4.0)


# ---- the scale over time -----------------------------------------------------------------------


@check("grad_scaler/growth", "SCALER-005")
def the_scale_follows_its_schedule(dev: Device) -> None:
    """It grows after growth_interval good steps in a row and backs off at each bad one."""
    weight = _weight(dev, 1.0)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = _scaler(dev, growth_factor=4.0, backoff_factor=0.25)
    good, bad = 1.0, _INF
    scales = []
    for gradient in (good, good, good, bad, good, good, bad, bad):
        _step(scaler, optimizer, weight, gradient)
        scales.append(scaler.get_scale())
    assert scales == [8.0, 32.0, 32.0, 8.0, 8.0, 32.0, 8.0, 2.0]


@check("grad_scaler/growth_limit", "SCALER-005")
def the_scale_never_grows_to_infinity(dev: Device) -> None:
    """A growth that would make the scale infinite is not done."""
    weight = _weight(dev, 1.0)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = _scaler(dev, init_scale=2.0**127, growth_interval=1)
    _step(scaler, optimizer, weight, 0.0)
    assert scaler.get_scale() == 2.0**127


_NEW_SCALES: dict[str, Callable[[torch.device], Any]] = {
    "number": lambda d: 64.0,
    "tensor": lambda d: torch.full((), 64.0, device=d),
}


@check("grad_scaler/new_scale", "SCALER-005", cases=_NEW_SCALES)
def the_scale_can_be_set(dev: Device, case: str) -> None:
    """update(new_scale) takes a number or a device tensor."""
    scaler = _scaler(dev)
    scaler.scale(_weight(dev, 1.0))
    scaler.update(_NEW_SCALES[case](dev.device()))
    assert scaler.get_scale() == 64.0
    dev.assert_equal(scaler.scale(_weight(dev, 1.0)), [64.0])


def _loaded(scaler: torch.amp.GradScaler, device_type: str) -> torch.amp.GradScaler:
    other = torch.amp.GradScaler(device_type)
    other.load_state_dict(scaler.state_dict())
    return other


def _pickled(scaler: torch.amp.GradScaler, device_type: str) -> torch.amp.GradScaler:
    other: torch.amp.GradScaler = pickle.loads(pickle.dumps(scaler))
    return other


#: name -> (good steps before, what makes the other scaler, the scale after a step of that one).
_MOVES: dict[str, tuple[int, Callable[[torch.amp.GradScaler, str], Any], float]] = {
    "used": (2, _loaded, 16.0),
    "fresh": (0, _loaded, 8.0),
    "pickle": (2, _pickled, 16.0),
}


@check("grad_scaler/state_dict", "SCALER-006", cases=_MOVES)
def the_state_moves_to_another_scaler(dev: Device, case: str) -> None:
    """state_dict holds scale, factors and growth tracker, from where another scaler goes on."""
    steps, move, expected = _MOVES[case]
    weight = _weight(dev, 1.0)
    optimizer, scaler = torch.optim.SGD([weight], lr=0.0), _scaler(dev, growth_interval=3)
    for _ in range(steps):
        _step(scaler, optimizer, weight, 1.0)
    other = move(scaler, dev.type)
    assert other.state_dict() == scaler.state_dict()
    assert scaler.state_dict()["_growth_tracker"] == steps
    _step(other, optimizer, weight, 1.0)
    assert other.get_scale() == expected


@check("grad_scaler/disabled", "SCALER-001")
def a_disabled_scaler_does_nothing(dev: Device) -> None:
    """With enabled=False losses pass through and steps are plain steps."""
    weight = _weight(dev, 1.0)
    optimizer, scaler = torch.optim.SGD([weight], lr=1.0), _scaler(dev, enabled=False)
    loss = weight.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    dev.assert_equal(weight, [0.0])
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}


# ---- optimizers --------------------------------------------------------------------------------

_Maker = Callable[[list[Tensor]], torch.optim.Optimizer]

_OPTIMIZERS: dict[str, _Maker] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd_foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1),
    "adam_foreach": lambda p: torch.optim.Adam(p, lr=0.1, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1),
}
_FUSED: dict[str, _Maker] = {
    "sgd_fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "adam_fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
}


#: What the CPU runs for comparison.
_PLAIN = {
    "sgd_foreach": "sgd",
    "sgd_fused": "sgd",
    "adam_foreach": "adam",
    "adam_fused": "adam",
    "adamw_fused": "adamw",
}


def _trained(
    device: torch.device, make: _Maker, scaler: torch.amp.GradScaler | None
) -> list[Tensor]:
    """Parameters after four steps, of which the third has infinite gradients where scaled."""
    weights = [noise((5, 3)).to(device, copy=True).requires_grad_(), torch.ones(3, device=device)]
    weights[1].requires_grad_()
    optimizer = make(weights)
    for step in range(4):
        optimizer.zero_grad()
        loss = (weights[0] * (step + 1) * weights[1]).square().sum()
        if scaler is None:
            if step != 2:
                loss.backward()
                optimizer.step()
            continue
        scaler.scale(loss * (_INF if step == 2 else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()
    return [weight.detach() for weight in weights]


def _trains_as_the_cpu(dev: Device, case: str, actual: list[Tensor]) -> None:
    expected = _trained(torch.device("cpu"), _OPTIMIZERS[_PLAIN.get(case, case)], None)
    for got, wanted in zip(actual, expected, strict=True):
        dev.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


@check("grad_scaler/optimizer", "SCALER-008", cases=_OPTIMIZERS)
def every_kind_of_optimizer_works_with_a_scaler(dev: Device, case: str) -> None:
    """Plain and foreach optimizers take the unscaled steps and skip the infinite one."""
    _trains_as_the_cpu(dev, case, _trained(dev.device(), _OPTIMIZERS[case], _scaler(dev)))


@check("grad_scaler/optimizer", "SCALER-008", cases=_FUSED)
def fused_optimizers_work_with_a_scaler(dev: Device, case: str) -> None:
    """Fused optimizers, where there are any, take the unscaled steps and skip the infinite one."""
    try:
        actual = _trained(dev.device(), _FUSED[case], _scaler(dev))
    except RuntimeError as error:
        if not refuses(error, words=NOT_FUSED):
            raise
        dev.unsupported(f"{case}: {first_line(error)}")
    _trains_as_the_cpu(dev, case, actual)


@check("grad_scaler/autocast", "SCALER-009", needs=("autocast", "float16"))
def mixed_precision_training_converges(dev: Device) -> None:
    """Autocast to float16 with a scaler brings a regression's loss down as float32 does."""
    if not dev.is_accelerator:
        dev.unsupported("float16 training is for accelerators")
    torch.manual_seed(4)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
    module.to(dev.device())
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    scaler = torch.amp.GradScaler(dev.type, init_scale=2.0**10)
    x = noise((64, 8)).to(dev.device())
    target = (x[:, :1] - x[:, 1:2] * 2).detach()
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast(dev.type, dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(module(x), target)
        assert loss.dtype == torch.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    first, last = float(losses[0]), float(losses[-1])
    assert last < 0.1 * first, (first, last)


# ---- the two operators under it ----------------------------------------------------------------


#: name -> (sizes of the tensors, whether non-finite elements were found before).
_FINITE: dict[str, tuple[tuple[int, ...], float]] = {
    "finite": ((1, 9, 70), 0.0),
    "empty": ((), 0.0),
    "sticky": ((1, 9, 70), 1.0),
}


def _halve(tensors: list[Tensor], found: Tensor) -> None:
    inverse = torch.full((1,), 0.5, device=found.device)
    torch._amp_foreach_non_finite_check_and_unscale_(tensors, found, inverse)


@check("grad_scaler/unscale_operator", "SCALER-010", cases=_FINITE)
def the_operator_that_unscales_never_clears_what_it_found(dev: Device, case: str) -> None:
    """It scales the tensors of a list in place, and does not change found_inf if all are finite."""
    sizes, before = _FINITE[case]
    tensors = [torch.full((n,), 6.0, device=dev.device()) for n in sizes]
    found = torch.full((1,), before, device=dev.device())
    _halve(tensors, found)
    dev.assert_equal(found, [before])
    dev.assert_equal(tensors, [torch.full((n,), 3.0) for n in sizes])


@check("grad_scaler/unscale_operator:inf", "SCALER-010")
def the_operator_that_unscales_reports_infinity(dev: Device) -> None:
    """It sets found_inf for one infinite element, and scales the other tensors."""
    tensors = [torch.full((n,), 6.0, device=dev.device()) for n in (1, 9, 70)]
    tensors[1][8] = _INF
    found = torch.zeros(1, device=dev.device())
    _halve(tensors, found)
    dev.assert_equal(found, [1.0])
    dev.assert_equal(tensors[::2], [torch.full((n,), 3.0) for n in (1, 70)])


@check("grad_scaler/update_operator", "SCALER-011")
def the_operator_that_updates_the_scale_follows_found_inf(dev: Device) -> None:
    """_amp_update_scale_ counts, grows and backs off on tensors of the device."""
    scale = torch.full((1,), 4.0, device=dev.device())
    tracker = torch.zeros(1, dtype=torch.int32, device=dev.device())
    seen = []
    for found in (0.0, 0.0, 1.0, 0.0):
        torch._amp_update_scale_(
            scale, tracker, torch.full((1,), found, device=dev.device()), 2.0, 0.5, 2
        )
        seen.append((scale.item(), tracker.item()))
    assert seen == [(4.0, 1), (8.0, 0), (4.0, 0), (4.0, 1)]
