# SPDX-License-Identifier: BSD-3-Clause
"""Every optimizer of torch.optim: several steps, in every implementation, against the CPU."""

from __future__ import annotations

import copy
import functools
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

# The first step of an optimizer imports it: better once here than in every worker.
import torch._dynamo
from torch import Tensor, nn
from torch.optim.optimizer import _get_capturable_supported_devices
from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

from torch_conformance.authoring import compare
from torch_conformance.authoring.api import Device, check
from torch_conformance.models import hyperparameters
from torch_conformance.models.tolerance import Grant
from torch_conformance.opinfo import database

STEPS = 4
CPU = torch.device("cpu")

#: Check case -> entry of the database.
OPTIMIZERS: dict[str, Any] = {
    info.optim_cls.__name__.lower(): info for info in database.optimizers()
}
DENSE = tuple(name for name, info in OPTIMIZERS.items() if not info.only_supports_sparse_grads)
SPARSE = tuple(
    name
    for name, info in OPTIMIZERS.items()
    if info.supports_sparse or info.only_supports_sparse_grads
)


def _with(implementation: str) -> tuple[str, ...]:
    return tuple(n for n, info in OPTIMIZERS.items() if implementation in info.supported_impls)


FOREACH, FUSED, DIFFERENTIABLE = _with("foreach"), _with("fused"), _with("differentiable")
CAPTURABLE = tuple(name for name, info in OPTIMIZERS.items() if info.has_capturable_arg)

#: Where they take the learning rate as a tensor, by the database or by their documentation.
TENSOR_RATE = ("adam", "adamw", "adagrad", "sgd", "lbfgs", "muon")

#: Optimizers that are tried in 16 bits, and their settings there: the default of eps is zero in
#: float16, and a vanishing denominator follows.
LOW_PRECISION: dict[str, dict[str, float]] = {
    "adam": {"eps": 0.1},
    "adamw": {"eps": 0.1},
    "sgd": {},
}

SHAPES: tuple[tuple[int, ...], ...] = ((4, 3), (3,), ())
#: Optimizers of matrices only.
MATRICES = {"muon": ((4, 3), (3, 5))}


#: Of the rtol, and of a tenth of the atol: the usual atol is as large as some steps are.
ANY = Grant(10, "several steps, each of them a dozen operators that may be fused")
MORE = {
    "lbfgs": Grant(100, "its line search divides differences of nearly equal numbers"),
    "muon": Grant(1000, "it makes updates orthogonal in bfloat16, which keeps 8 bits"),
}


#: What the steps of an optimizer need beside operators of float32.
NEEDS = {"muon": "bfloat16"}


# ---- the implementations -----------------------------------------------------------------------


@check("optimizer/default", "OPTIM-001", cases=DENSE, case_needs=NEEDS)
def the_default_steps_as_the_cpus(dev: Device, case: str) -> None:
    """Whatever implementation torch chooses for the device, parameters and state are the CPU's."""
    _steps_alike(dev, case, _settings(case))


@check("optimizer/loop", "OPTIM-002", cases=FOREACH)
def the_loop_steps_as_the_cpus(dev: Device, case: str) -> None:
    """With foreach=False every parameter is updated by operators of its own, as on the CPU."""
    _steps_alike(dev, case, _settings(case), foreach=False)


@check("optimizer/foreach", "OPTIM-003", cases=FOREACH)
def lists_step_as_the_cpus(dev: Device, case: str) -> None:
    """With foreach=True operators on lists of tensors make the CPU's steps."""
    settings = (kwargs for kwargs in _settings(case) if not isinstance(kwargs.get("lr"), Tensor))
    _steps_alike(dev, case, settings, foreach=True)


@check("optimizer/fused", "OPTIM-004", cases=FUSED)
def the_fused_kernel_steps_as_the_cpus(dev: Device, case: str) -> None:
    """With fused=True one operator makes the steps of the CPU's loop."""
    _require_fused(dev, case)
    _steps_alike(dev, case, _settings(case), fused=True)


@check("optimizer/capturable", "OPTIM-005", cases=CAPTURABLE)
def capturable_steps_keep_their_state_on_the_device(dev: Device, case: str) -> None:
    """With capturable=True steps are counted on the device, and are those of the CPU."""
    _require_capturable(dev)
    for foreach in (False, True):
        run = _Run(case, dev.device(), {"capturable": True, "foreach": foreach}).steps(STEPS)
        _near(dev, case, run, _Run(case, CPU, {"foreach": False}).steps(STEPS))
        counters = [state["step"] for state in run.optimizer.state.values()]
        assert {counter.device.type for counter in counters} == {dev.type}


@check("optimizer/differentiable", "OPTIM-006", needs=("float64",), cases=DIFFERENTIABLE)
def a_step_has_derivatives(dev: Device, case: str) -> None:
    """With differentiable=True gradients pass through a step, as on the CPU."""
    results = [_through_a_step(case, device) for device in (dev.device(), CPU)]
    for actual, expected in zip(*results, strict=True):
        dev.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@check("optimizer/sparse", "OPTIM-007", needs=("sparse",), cases=SPARSE)
def sparse_gradients_update_their_rows(dev: Device, case: str) -> None:
    """With the sparse gradients of an embedding, the rows looked up move as on the CPU."""
    embedding = nn.Embedding(7, 3, sparse=True)
    weights = []
    for device in (dev.device(), CPU):
        module = copy.deepcopy(embedding).to(device)
        optimizer = OPTIMIZERS[case].optim_cls(module.parameters(), lr=0.1)
        for row in range(STEPS):
            optimizer.zero_grad()
            module(torch.tensor([row, row + 1, row], device=device)).square().sum().backward()
            optimizer.step()
        weights.append(module.weight)
    dev.assert_close(weights[0], weights[1].detach(), rtol=1e-5, atol=1e-6)


#: Hyperparameters of steps by sparse gradients; not all optimizers that take such take each.
_OF_SPARSE: dict[str, dict[str, Any]] = {
    "sgd": {"lr": 0.125, "maximize": True},
    "adagrad": {
        "lr": 0.125,
        "lr_decay": 0.3,
        "initial_accumulator_value": 0.5,
        "eps": 0.1,
        "maximize": True,
    },
    "sparseadam": {"lr": 0.125, "betas": (0.5, 0.6), "eps": 0.1, "maximize": True},
}


@check("optimizer/sparse_hyperparameters", "OPTIM-007", needs=("sparse",), cases=_OF_SPARSE)
def hyperparameters_act_on_rows(dev: Device, case: str) -> None:
    """In ten steps by sparse gradients with repeated rows, hyperparameters do what they do."""
    starts, gradients = _course("sgd")
    weights = []
    for device, dtype in ((dev.device(), torch.float32), (CPU, torch.float64)):
        weight = nn.Parameter(starts[0].to(device, dtype, copy=True))
        optimizer = OPTIMIZERS[case].optim_cls([weight], **_OF_SPARSE[case])
        for number in range(WALK):
            rows = torch.tensor([[number % 4, 1, number % 4]], device=device)
            values = gradients[number][0][:3].to(weight)
            weight.grad = torch.sparse_coo_tensor(rows, values, weight.shape)
            optimizer.step()
        weights.append(weight.detach())
    rtol, atol = _WALK_TOLERANCES[torch.float32]
    dev.assert_close(weights[0].double(), weights[1], rtol=rtol, atol=atol)


# ---- hyperparameters ---------------------------------------------------------------------------


@check(
    "optimizer/hyperparameters_loop",
    "OPTIM-020",
    cases=hyperparameters.OPTIMIZERS,
    case_needs=NEEDS,
)
def hyperparameters_act_in_the_loop(dev: Device, case: str) -> None:
    """In ten steps of the loop, each hyperparameter, alone and with others, does what it does."""
    _every_walk_alike(dev, case, _of_the_loop(case))


@check(
    "optimizer/hyperparameters_foreach",
    "OPTIM-020",
    cases=[name for name in hyperparameters.OPTIMIZERS if name in FOREACH],
)
def hyperparameters_act_on_lists(dev: Device, case: str) -> None:
    """In ten steps on lists, each hyperparameter, alone and with others, does what it does."""
    _every_walk_alike(dev, case, {"foreach": True})


@check("optimizer/hyperparameters_fused", "OPTIM-021", cases=FUSED)
def hyperparameters_act_in_the_fused_kernel(dev: Device, case: str) -> None:
    """In ten fused steps, each hyperparameter, alone and with others, does what it does."""
    _require_fused(dev, case)
    _every_walk_alike(dev, case, {"fused": True})


@check("optimizer/hyperparameters_capturable", "OPTIM-020", cases=CAPTURABLE)
def hyperparameters_act_in_capturable_steps(dev: Device, case: str) -> None:
    """In ten steps that are counted on the device, all hyperparameters do what they do."""
    _require_capturable(dev)
    for foreach in (False, True):
        _walks_alike(dev, case, {"capturable": True, "foreach": foreach})


@check("optimizer/tensor_rate_fused", "OPTIM-021", cases=FUSED)
def the_rate_of_the_fused_kernel_may_be_a_tensor(dev: Device, case: str) -> None:
    """A learning rate in a tensor, on the CPU or the device, acts in the fused kernel."""
    _require_fused(dev, case)
    for device in (CPU, dev.device()):
        rate = torch.tensor(hyperparameters.RATE, device=device)
        _walks_alike(dev, case, {"fused": True, "lr": rate})


@check("optimizer/tensor_rate_capturable", "OPTIM-010", cases=CAPTURABLE)
def the_rate_of_capturable_steps_may_be_a_tensor(dev: Device, case: str) -> None:
    """A learning rate on the device acts in the loop and on lists."""
    _require_capturable(dev)
    rate = torch.tensor(hyperparameters.RATE, device=dev.device())
    for foreach in (False, True):
        _walks_alike(dev, case, {"capturable": True, "foreach": foreach, "lr": rate})


@check("optimizer/tensor_betas", "OPTIM-022", cases=("adam", "adamw"))
def the_betas_may_be_tensors(dev: Device, case: str) -> None:
    """Betas in tensors, on the CPU or the device, act as the numbers do."""
    numbers = hyperparameters.together(case)["betas"]
    for device in (CPU, dev.device()):
        betas = tuple(torch.tensor(beta, device=device) for beta in numbers)
        _walks_alike(dev, case, {"foreach": False, "betas": betas})


@check("optimizer/grad_scale", "OPTIM-023", cases=FUSED)
def the_fused_kernel_divides_by_the_scale(dev: Device, case: str) -> None:
    """With grad_scale set, the fused kernel steps by the gradients divided by it."""
    _require_fused(dev, case)
    walk = _narrow_walk(dev, case, {"fused": True})
    _tell_scaler(dev, walk, scale=8.0)
    _near_the_truth(dev, case, walk.steps(range(WALK), scale=8.0), hyperparameters.together(case))


@check("optimizer/found_inf", "OPTIM-017", cases=FUSED)
def the_fused_kernel_skips_a_step_as_a_whole(dev: Device, case: str) -> None:
    """A step for which found_inf is set leaves parameters, moments and the count of steps."""
    _require_fused(dev, case)
    walk = _narrow_walk(dev, case, {"fused": True}).steps(range(3))
    before = {name: dev.cpu(value).clone() for name, value in walk.tensors().items()}
    _tell_scaler(dev, walk, found=1.0)
    walk.steps(range(3, 6))
    for name, value in walk.tensors().items():
        dev.assert_equal(value, before[name])
    _tell_scaler(dev, walk)
    _near_the_truth(dev, case, walk.steps(range(3, WALK)), hyperparameters.together(case))


def _tell_scaler(dev: Device, walk: _Walk, scale: float = 1.0, found: float = 0.0) -> None:
    """Set what GradScaler leaves to a fused optimizer."""
    walk.optimizer.grad_scale = torch.tensor(scale, device=dev.device())
    walk.optimizer.found_inf = torch.tensor(found, device=dev.device())


# ---- state and settings ------------------------------------------------------------------------


@check("optimizer/state", "OPTIM-008", cases=DENSE, case_needs=NEEDS)
def state_is_on_the_device(dev: Device, case: str) -> None:
    """State of the shape of a parameter is on its device; counters may be on the CPU."""
    run = _Run(case, dev.device(), {}).steps(1)
    for parameter, state in run.optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.dim() and value.shape == parameter.shape:
                assert value.device == parameter.device, f"{name} is on {value.device}"
                assert value.dtype == parameter.dtype, f"{name} is {value.dtype}"


@check("optimizer/state_dict", "OPTIM-009", needs=("serialization",), cases=DENSE, case_needs=NEEDS)
def a_loaded_state_continues(dev: Device, case: str) -> None:
    """State saved on the device continues there bit by bit, and on the CPU nearly."""
    run = _Run(case, dev.device(), {}).steps(2)
    file = io.BytesIO()
    torch.save([run.optimizer.state_dict(), run.values()], file)
    run.steps(2)
    for device in (dev.device(), CPU):
        file.seek(0)
        state, values = torch.load(file, map_location=device)
        other = _Run(case, device, {}, values)
        other.optimizer.load_state_dict(state)
        other.steps(2)
        for actual, expected in zip(other.values(), run.values(), strict=True):
            if device == CPU:
                rtol, atol = _tolerance(dev, case, torch.float32)
                torch.testing.assert_close(actual, dev.cpu(expected), rtol=rtol, atol=atol)
            else:
                dev.assert_equal(actual, dev.cpu(expected))


@check("optimizer/tensor_rate", "OPTIM-010", cases=TENSOR_RATE, case_needs=NEEDS)
def the_rate_may_be_a_tensor(dev: Device, case: str) -> None:
    """A learning rate in a tensor, on the CPU or the device, acts as the number does."""
    options = _of_the_loop(case)
    expected = _Run(case, CPU, {"lr": 0.05, **options}).steps(STEPS)
    for device in (CPU, dev.device()):
        rate = torch.tensor(0.05, device=device)
        actual = _Run(case, dev.device(), {"lr": rate, **options}).steps(STEPS)
        _near(dev, case, actual, expected, with_state=False)


@check("optimizer/groups", "OPTIM-011", cases=("sgd", "adamw", "rmsprop"))
def groups_have_settings_of_their_own(dev: Device, case: str) -> None:
    """Each group of parameters, also one that is added later, moves by its own settings."""
    results = []
    for device in (dev.device(), CPU):
        run = _Run(case, device, {})
        first, second, third = run.parameters
        groups = [{"params": [first]}, {"params": [second], "lr": 0.2, "weight_decay": 0.3}]
        run.optimizer = OPTIMIZERS[case].optim_cls(groups, lr=0.01)
        run.steps(2)
        run.optimizer.add_param_group({"params": [third], "lr": 0.5})
        results.append(run.steps(2))
    _near(dev, case, *results)


_SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, gamma=0.5),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS),
    "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=STEPS + 1),
    "plateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
}


@check("optimizer/scheduler", "OPTIM-012", cases=_SCHEDULERS)
def schedules_set_the_rate(dev: Device, case: str) -> None:
    """Under a schedule rates and parameters follow the CPU's; a loss on the device decides, too."""
    results, rates = [], []
    for device in (dev.device(), CPU):
        run = _Run("sgd", device, {"lr": 0.1, "momentum": 0.9})
        schedule = _SCHEDULERS[case](run.optimizer)
        for _ in range(STEPS):
            loss = run.step()
            takes_loss = isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau)
            schedule.step(*([loss] if takes_loss else []))
        results.append(run)
        rates.append(run.optimizer.param_groups[0]["lr"])
    dev.assert_close(torch.tensor(rates[0]), torch.tensor(rates[1]), rtol=1e-5)
    _near(dev, "sgd", *results)


@check("optimizer/zero_grad:to_none", "OPTIM-013")
def gradients_are_dropped(dev: Device) -> None:
    """zero_grad(set_to_none=True) drops every gradient."""
    for foreach in (False, True):
        run = _Run("sgd", dev.device(), {"foreach": foreach}).steps(1)
        assert all(parameter.grad is not None for parameter in run.parameters)
        run.optimizer.zero_grad(set_to_none=True)
        assert all(parameter.grad is None for parameter in run.parameters)


@check("optimizer/zero_grad:to_zero", "OPTIM-013")
def gradients_are_zeroed(dev: Device) -> None:
    """zero_grad(set_to_none=False) sets every gradient to zero in place."""
    for foreach in (False, True):
        run = _Run("sgd", dev.device(), {"foreach": foreach}).steps(1)
        before = [parameter.grad for parameter in run.parameters]
        run.optimizer.zero_grad(set_to_none=False)
        for parameter, gradient in zip(run.parameters, before, strict=True):
            assert gradient is not None
            assert parameter.grad is gradient
            dev.assert_equal(gradient, torch.zeros(gradient.shape))


# ---- parameters of all kinds -------------------------------------------------------------------


@check("optimizer/dtype", "OPTIM-014", cases=LOW_PRECISION, dtypes=("float16", "bfloat16"))
def parameters_may_have_16_bits(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Parameters of 16 bits move, in every implementation, as the CPU's loop moves them."""
    kwargs = {"lr": 0.05} | LOW_PRECISION[case]
    expected = _Run(case, CPU, {"foreach": False, **kwargs}, dtype=dtype).steps(STEPS)
    for options in _implementations(dev, case):
        actual = _Run(case, dev.device(), kwargs | options, dtype=dtype).steps(STEPS)
        for found, wanted in zip(actual.values(), expected.values(), strict=True):
            rtol, _ = dev.tolerance(dtype)
            dev.assert_close(found, wanted, rtol=4 * rtol, atol=4 * rtol)


@check(
    "optimizer/wide",
    "OPTIM-015",
    cases=("adamw", "sgd", "rmsprop"),
    dtypes=("float64", "complex64"),
)
def parameters_may_be_wide_or_complex(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Parameters of float64 and complex64 move as on the CPU, in their full precision."""
    granted = 1e-12 if dtype == torch.float64 else 1e-5
    expected = _Run(case, CPU, {"foreach": False}, dtype=dtype).steps(STEPS)
    actual = _Run(case, dev.device(), {}, dtype=dtype).steps(STEPS)
    for found, wanted in zip(actual.values(), expected.values(), strict=True):
        dev.assert_close(found, wanted, rtol=granted, atol=granted)


@check("optimizer/mixed", "OPTIM-016", needs=("bfloat16",), cases=LOW_PRECISION)
def parameters_of_all_kinds_go_together(dev: Device, case: str) -> None:
    """One optimizer moves strided, empty and 16-bit parameters and those without a gradient."""
    results = []
    for device in (dev.device(), CPU):
        run = _Run(case, device, {"lr": 0.05})
        strided = torch.linspace(-1, 1, 12).reshape(3, 4).to(device).t()
        half = torch.linspace(-1, 1, 5).to(torch.bfloat16).to(device)
        extra = [torch.empty(0, 3, device=device), strided, half]
        run.add([nn.Parameter(tensor) for tensor in extra])
        run.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2, device=device))]})
        results.append(run.steps(STEPS))
    actual, expected = results
    for found, wanted in zip(actual.values(), expected.values(), strict=True):
        loose = 4 * dev.tolerance(torch.bfloat16)[0] if wanted.dtype == torch.bfloat16 else 1e-5
        dev.assert_close(found, wanted, rtol=loose, atol=loose)
    untouched = actual.optimizer.param_groups[1]["params"][0]
    dev.assert_equal(untouched, torch.ones(2))


@check("optimizer/scaled", "OPTIM-017", needs=("autocast",), cases=FUSED)
def the_fused_kernel_unscales_and_skips(dev: Device, case: str) -> None:
    """GradScaler leaves unscaling, and skipping after an overflow, to the fused kernel."""
    _require_fused(dev, case)
    expected = _Run(case, CPU, {"foreach": False})
    actual = _Run(case, dev.device(), {"fused": True})
    scaler = torch.amp.GradScaler(dev.type, init_scale=64.0)
    for step in range(3):
        actual.optimizer.zero_grad()
        loss = actual.loss() * (float("inf") if step == 1 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(actual.optimizer)
        scaler.update()
        if step != 1:
            expected.step()
    assert scaler.get_scale() == 32.0
    rtol, atol = _tolerance(dev, case, torch.float32)
    for found, wanted in zip(actual.values(), expected.values(), strict=True):
        dev.assert_close(found, wanted, rtol=rtol, atol=atol)


_AVERAGES: dict[str, Any] = {
    "equal": None,
    "exponential": torch.optim.swa_utils.get_ema_multi_avg_fn(0.9),
}


@check("optimizer/averaged", "OPTIM-018", cases=_AVERAGES)
def weights_are_averaged(dev: Device, case: str) -> None:
    """Averages of the weights of several steps, equal or exponential, are the CPU's."""
    module = nn.Linear(4, 3)
    results = []
    for device in (dev.device(), CPU):
        model = copy.deepcopy(module).to(device)
        averaged = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=_AVERAGES[case])
        for step in range(STEPS):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(0.5).add_(step)
            averaged.update_parameters(model)
        results.append([parameter.detach() for parameter in averaged.parameters()])
    for actual, expected in zip(*results, strict=True):
        dev.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


@check("optimizer/devices", "OPTIM-019", needs=("multi_device",), cases=LOW_PRECISION)
def parameters_may_be_on_several_devices(dev: Device, case: str) -> None:
    """One optimizer moves parameters of two devices, each where it is."""
    expected = _Run(case, CPU, {"foreach": False})
    actual = _Run(case, dev.device(0), {})
    second = _Run(case, dev.device(1), {})
    actual.add(second.parameters)
    expected.add(_Run(case, CPU, {}).parameters)
    _near(dev, case, actual.steps(STEPS), expected.steps(STEPS))
    assert {p.device.index for p in actual.parameters} == {0, 1}


# ---- what the checks share -----------------------------------------------------------------------


class _Run:
    """An optimizer and the parameters it moves towards targets, on one device."""

    def __init__(
        self,
        case: str,
        device: torch.device,
        kwargs: dict[str, Any],
        values: Sequence[Tensor] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        shapes = MATRICES.get(case, SHAPES)
        if values is None:
            values = [_numbers(shape, dtype).to(device) for shape in shapes]
        self.parameters = [nn.Parameter(value.detach().clone()) for value in values]
        self.optimizer = OPTIMIZERS[case].optim_cls(self.parameters, **kwargs)
        self._sign = -1 if kwargs.get("maximize") else 1

    def add(self, parameters: Iterable[nn.Parameter]) -> None:
        """Let the optimizer move these, too, with the settings of the others."""
        added = list(parameters)
        self.parameters += added
        self.optimizer.param_groups[0]["params"] += added

    def loss(self) -> Tensor:
        """The distance of all parameters from where they shall go; its negative has a maximum."""
        device = self.parameters[0].device
        parts = [(p - 0.3).abs().square().sum().to(device).float() for p in self.parameters]
        return self._sign * torch.stack(parts).sum()

    def step(self) -> Tensor:
        """One step; the loss before it."""

        def closure() -> Tensor:
            self.optimizer.zero_grad()
            loss = self.loss()
            loss.backward()
            return loss

        result: Tensor = self.optimizer.step(closure)
        return result.detach()

    def steps(self, count: int) -> _Run:
        """Make several steps."""
        for _ in range(count):
            self.step()
        return self

    def values(self) -> list[Tensor]:
        """The parameters' values now."""
        return [parameter.detach().clone() for parameter in self.parameters]

    def state(self) -> Iterator[tuple[str, Any]]:
        """The optimizer's numbers and tensors for each parameter, in order."""
        for index, parameter in enumerate(self.parameters):
            for name, value in self.optimizer.state[parameter].items():
                if isinstance(value, (Tensor, int, float)):
                    yield f"{name} {index}", value


#: The factor of the gradients of each step: second moments shrink and grow, and so show a maximum.
_MAGNITUDES = (1.0, 4.0, 0.25, 2.0, 0.125, 1.0, 0.5, 3.0, 0.0625, 1.0)
WALK = len(_MAGNITUDES)
#: A parameter that has no gradient in one step, and that step: its steps are counted apart.
_SKIPPED = (1, 4)
#: Shapes of the parameters of a walk; 131 is longer than a vector, and not a multiple of one.
_WALK_SHAPES: tuple[tuple[int, ...], ...] = ((4, 3), (131,), (), (0,))
_SHAPES_OF = MATRICES | {"adafactor": _WALK_SHAPES[:3]}  # which divides by the number of elements
#: (rtol, atol) beside double precision; the numbers are about one.
_WALK_TOLERANCES = {torch.float32: (2e-5, 4e-6), torch.float64: (1e-10, 1e-10)}
#: Optimizers that keep factors of float64 parameters in float32, on every device.
_COARSE = frozenset({"asgd"})


class _Walk:
    """An optimizer that is given gradients: the same numbers on each device, in each dtype."""

    def __init__(
        self, case: str, device: torch.device, dtypes: Sequence[torch.dtype], kwargs: dict[str, Any]
    ) -> None:
        starts, self._gradients = _course(case)
        self.parameters = [
            nn.Parameter(start.to(device, dtype, copy=True))
            for start, dtype in zip(starts, dtypes, strict=False)
        ]
        self.optimizer = OPTIMIZERS[case].optim_cls(self.parameters, **kwargs)

    def steps(self, numbers: Iterable[int], scale: float = 1.0) -> _Walk:
        """Make the steps of these numbers, with gradients that are multiplied by the scale."""
        for number in numbers:
            for index, parameter in enumerate(self.parameters):
                gradient = (scale * self._gradients[number][index]).to(parameter)
                parameter.grad = None if (index, number) == _SKIPPED else gradient
            self.optimizer.step()
        return self

    def tensors(self) -> dict[str, Tensor]:
        """The parameters and their state, by name."""
        found: dict[str, Tensor] = {}
        for index, parameter in enumerate(self.parameters):
            found[f"parameter {index}"] = parameter.detach()
            for name, value in self.optimizer.state[parameter].items():
                if isinstance(value, (Tensor, int, float)):
                    found[f"{name} of parameter {index}"] = torch.as_tensor(value)
        return found


@functools.cache
def _course(case: str) -> tuple[list[Tensor], list[list[Tensor]]]:
    """Where parameters start, and their gradients in each step; the last one is of the first's
    shape, and of another dtype where the device has one."""
    generator = torch.Generator().manual_seed(7)
    shapes = _SHAPES_OF.get(case, _WALK_SHAPES)
    shapes = (*shapes, shapes[0])
    starts = [torch.randn(shape, generator=generator) for shape in shapes]
    gradients = [
        [magnitude * torch.randn(shape, generator=generator) for shape in shapes]
        for magnitude in _MAGNITUDES
    ]
    return starts, gradients


@functools.cache
def _truth(case: str, settings: tuple[tuple[str, Any], ...]) -> dict[str, Tensor]:
    """The parameters and the state after a walk on the CPU in double precision."""
    dtypes = [torch.float64] * len(_course(case)[0])
    kwargs = dict(settings) | _of_the_loop(case)
    return _Walk(case, CPU, dtypes, kwargs).steps(range(WALK)).tensors()


def _near_the_truth(dev: Device, case: str, walk: _Walk, settings: dict[str, Any]) -> None:
    __tracebackhide__ = True
    truth = _truth(case, tuple(settings.items()))
    factor = MORE.get(case, ANY).factor / ANY.factor
    found = walk.tensors()
    count = len(walk.parameters)
    assert set(found) == {name for name in truth if int(name.split()[-1]) < count}
    for name, actual in found.items():
        rtol, atol = _WALK_TOLERANCES[walk.parameters[int(name.split()[-1])].dtype]
        wanted = truth[name].reshape(actual.shape)
        apart = compare.difference(
            dev.cpu(actual).double(),
            wanted.double(),
            rtol=factor * rtol,
            atol=factor * atol,
            where=f" {name} with {settings}",
        )
        compare.require_none(apart)


def _every_walk_alike(dev: Device, case: str, options: dict[str, Any]) -> None:
    """With each setting alone and with all together, a walk is that of double precision."""
    __tracebackhide__ = True
    dtypes = _dtypes(dev, case)
    for settings in hyperparameters.alone(case):
        walk = _Walk(case, dev.device(), dtypes, settings | options).steps(range(WALK))
        _near_the_truth(dev, case, walk, settings)
    settings = hyperparameters.together(case)
    first = _Walk(case, dev.device(), dtypes, settings | options).steps(range(5))
    second = _Walk(case, dev.device(), dtypes, settings | options)
    with torch.no_grad():
        for new, old in zip(second.parameters, first.parameters, strict=True):
            new.copy_(old)
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    _near_the_truth(dev, case, second.steps(range(5, WALK)), settings)


def _walks_alike(dev: Device, case: str, options: dict[str, Any]) -> None:
    """A walk of float32 with all hyperparameters is that of double precision."""
    __tracebackhide__ = True
    walk = _narrow_walk(dev, case, options).steps(range(WALK))
    _near_the_truth(dev, case, walk, hyperparameters.together(case))


def _narrow_walk(dev: Device, case: str, options: dict[str, Any]) -> _Walk:
    """A walk of float32 with all hyperparameters, before its first step."""
    settings = hyperparameters.together(case) | options
    return _Walk(case, dev.device(), _dtypes(dev, case)[:-1], settings)


def _dtypes(dev: Device, case: str) -> list[torch.dtype]:
    """The dtypes of the parameters: float32, and float64 for the last one."""
    narrow = [torch.float32] * (len(_course(case)[0]) - 1)
    wide = torch.float64 in dev.dtypes() and case not in _COARSE
    return [*narrow, torch.float64 if wide else torch.float32]


def _numbers(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    drawn = torch.complex64 if dtype.is_complex else torch.float64
    return torch.randn(shape, dtype=drawn, generator=generator).to(dtype)


def _settings(case: str) -> Iterator[dict[str, Any]]:
    """The database's settings, without those that are for some devices only."""
    for entry in OPTIMIZERS[case].optim_inputs_func("cpu"):
        yield dict(entry.kwargs)


def _steps_alike(
    dev: Device, case: str, settings: Iterable[dict[str, Any]], **options: Any
) -> None:
    plain = _of_the_loop(case)
    for kwargs in settings:
        actual = _Run(case, dev.device(), _copied(kwargs) | options).steps(STEPS)
        expected = _Run(case, CPU, _copied(kwargs) | plain).steps(STEPS)
        _near(dev, case, actual, expected)


def _of_the_loop(case: str) -> dict[str, Any]:
    """The option that selects the loop over parameters, where the optimizer has another way."""
    return {"foreach": False} if case in FOREACH else {}


def _copied(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {n: v.clone() if isinstance(v, Tensor) else v for n, v in kwargs.items()}


def _near(dev: Device, case: str, actual: _Run, expected: _Run, *, with_state: bool = True) -> None:
    __tracebackhide__ = True
    for found, wanted in zip(actual.values(), expected.values(), strict=True):
        rtol, atol = _tolerance(dev, case, wanted.dtype)
        dev.assert_close(found, wanted, rtol=rtol, atol=atol)
    if not with_state:
        return
    for (name, found), (other, wanted) in zip(actual.state(), expected.state(), strict=True):
        assert name == other
        wanted = torch.as_tensor(wanted).detach()
        rtol, atol = _tolerance(dev, case, wanted.dtype)
        found = dev.cpu(torch.as_tensor(found)).reshape(wanted.shape).to(wanted.dtype)
        dev.assert_close(found, wanted, rtol=rtol, atol=atol)


def _tolerance(dev: Device, case: str, dtype: torch.dtype) -> tuple[float, float]:
    factor = MORE.get(case, ANY).factor
    rtol, atol = dev.tolerance(dtype)
    return factor * rtol, factor * atol / 10


def _through_a_step(case: str, device: torch.device) -> list[Tensor]:
    """Derivatives of a parameter after a step by where it was and by its gradient."""
    start = _numbers((3,), torch.float64).to(device).requires_grad_()
    gradient = (_numbers((3,), torch.float64) + 2).to(device).requires_grad_()
    parameter = start.clone()
    parameter.grad = gradient
    OPTIMIZERS[case].optim_cls([parameter], differentiable=True).step()
    parameter.square().sum().backward()
    return [leaf.grad.cpu() for leaf in (start, gradient) if leaf.grad is not None]


def _implementations(dev: Device, case: str) -> Iterator[dict[str, Any]]:
    yield {"foreach": False}
    yield {"foreach": True}
    if case in FUSED and dev.type in _get_fused_kernels_supported_devices():
        yield {"fused": True}


def _require_capturable(dev: Device) -> None:
    supported = _get_capturable_supported_devices()
    if dev.type not in supported:
        dev.unsupported(f"torch has capturable optimizers on {', '.join(supported)} only")


def _require_fused(dev: Device, case: str) -> None:
    supported = _get_fused_kernels_supported_devices()
    if dev.type not in supported:
        dev.unsupported(f"torch has fused optimizers on {', '.join(supported)} only")
    in_tree = dev.type in ("cpu", "cuda", "xpu", "mps")
    if in_tree and dev.type not in OPTIMIZERS[case].supports_fused_on:
        dev.unsupported(f"torch has no fused {case} for {dev.type}")
