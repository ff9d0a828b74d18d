# SPDX-License-Identifier: BSD-3-Clause
"""Every module of torch.nn: results, gradients, and what users do with a module on a device."""

from __future__ import annotations

import copy
import inspect
import io
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from torch_conformance.authoring import compare
from torch_conformance.authoring.api import Device, check
from torch_conformance.authoring.origin import is_verdict
from torch_conformance.models.tolerance import Grant
from torch_conformance.opinfo import database, randomness
from torch_conformance.opinfo.topic import SOME

#: Tensors by what they are; a gradient may be None.
Tensors = dict[str, Any]

#: Check case -> entry of the database.
MODULES: dict[str, Any] = {
    info.name.removeprefix("nn.").lower(): info for info in database.modules()
}

#: Modules that take device=: those that own parameters or buffers.
STATEFUL = tuple(
    name
    for name, info in MODULES.items()
    if "device" in inspect.signature(info.module_cls).parameters and not info.is_lazy
)

#: What served models are made of, in the types they are served in.
SERVED = (
    "linear",
    "conv1d",
    "conv2d",
    "convtranspose2d",
    "batchnorm2d",
    "layernorm",
    "groupnorm",
    "rmsnorm",
    "embedding",
    "relu",
    "gelu",
    "silu",
    "softmax",
    "logsoftmax",
    "maxpool2d",
    "avgpool2d",
    "adaptiveavgpool2d",
    "multiheadattention",
    "transformerencoderlayer",
)


#: A module is several operators; each may round in its own order.
ANY = Grant(10, "several operators in a row, whose sums may be made in any order")

#: Modules that need more, in forward or in backward.
MORE: dict[str, Grant] = {
    "ctcloss": Grant(100, "gradients are differences of exponentials of sums over all alignments"),
}

#: In 16 bits, against the same module in float32 with the same rounded weights and inputs.
LOW = Grant(4, "results of operators in between are rounded, too; measured against the norm")
_ATTENTION = Grant(12, "weights are exponentials of rounded scores")
MORE_LOW = {"multiheadattention": _ATTENTION, "transformerencoderlayer": _ATTENTION}


# ---- results and gradients ---------------------------------------------------------------------


@check("module/forward", "MODULE-001", cases=MODULES, dtypes=("float32",))
def a_module_computes_what_the_cpus_does(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Outputs and updated buffers are the CPU's, in training and in evaluation."""
    for sample in _samples(dev, case, dtype):
        on_device = sample.moved(dev)
        expected, actual = sample.outputs(), on_device.outputs()
        _compare(dev, sample, actual | on_device.buffers(), expected | sample.buffers())


@check("module/inference", "MODULE-002", cases=MODULES, dtypes=("float32",))
def a_module_infers_what_the_cpus_does(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Without gradients, where modules take other ways, outputs are the CPU's."""
    for sample in _samples(dev, case, dtype, modes=(False,)):
        on_device = sample.moved(dev)
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                actual, expected = on_device.outputs(), sample.outputs()
                if not _alike(dev, sample, actual, expected):
                    # torch.nn may, where a device can, leave padding out; its values then differ.
                    expected = _without_fast_paths(sample)
            _compare(dev, sample, actual, expected)


@check("module/backward", "MODULE-003", cases=MODULES, dtypes=("float32",))
def a_module_has_the_cpus_gradients(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Gradients of parameters and inputs are the CPU's, in training and in evaluation."""
    generator = dev.rng()
    for sample in _samples(dev, case, dtype, requires_grad=True):
        on_device = sample.moved(dev)
        weights: list[Tensor] = []
        expected = sample.gradients(weights, generator)
        actual = on_device.gradients(weights, generator)
        _compare(dev, sample, actual, expected)


@check("module/low_precision", "MODULE-004", cases=SERVED, dtypes=("float16", "bfloat16"))
def a_module_in_16_bits_is_near_float32(dev: Device, case: str, dtype: torch.dtype) -> None:
    """In 16 bits outputs have the data type, and are near those of float32 with the same values."""
    if dtype not in dev.dtypes("floating"):
        dev.unsupported(f"needs {dtype}")
    granted = MORE_LOW.get(case, LOW).factor * dev.tolerance(dtype)[0]
    for sample in _samples(dev, case, dtype, modes=(False,)):
        actual = sample.moved(dev).outputs()
        expected = sample.converted(torch.float32).outputs()
        for found, wanted in zip(actual.values(), expected.values(), strict=True):
            assert found.dtype == (dtype if wanted.is_floating_point() else wanted.dtype)
            error = _norm(dev.cpu(found).double() - wanted) / (_norm(wanted) + 1e-3)
            assert error <= granted, f"relative error {error:.1e}, granted {granted:.1e}"


# ---- the life of a module ----------------------------------------------------------------------


@check("module/move", "MODULE-005", cases=STATEFUL)
def a_module_moves_to_the_device_and_back(dev: Device, case: str) -> None:
    """to(device) moves every parameter and buffer, and cpu() brings the same bits back."""
    module = _first(dev, case)
    kept = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    required = {name: p.requires_grad for name, p in module.named_parameters()}
    assert module.to(dev.device()) is module
    _is_on(dev, module)
    assert {name: p.requires_grad for name, p in module.named_parameters()} == required
    for name, tensor in module.cpu().state_dict().items():
        assert tensor.is_cpu
        dev.assert_equal(tensor, kept[name])


@check("module/construct", "MODULE-006", cases=STATEFUL)
def a_module_is_made_on_the_device(dev: Device, case: str) -> None:
    """device= puts every parameter and buffer there, initialised, in the shape of the CPU's."""
    make = _constructor(case)
    expected = make()
    with dev.device():
        in_context = make()
    for module in (make(device=dev.device()), in_context):
        _is_on(dev, module)
        _is_initialised(dev, module, expected)


@check("module/state_dict", "MODULE-007", cases=STATEFUL)
def a_state_dict_goes_round(dev: Device, case: str) -> None:
    """A state dict of the device loads into a module of the device and into one of the CPU."""
    module = _first(dev, case)
    kept = module.state_dict()
    state = copy.deepcopy(module).to(dev.device()).state_dict()
    assert list(state) == list(kept)
    assert {tensor.device.type for tensor in state.values()} <= {dev.type}
    for target in (dev.device(), torch.device("cpu")):
        other = copy.deepcopy(module).to(target)
        with torch.no_grad():
            for tensor in other.state_dict().values():
                tensor.zero_()
        other.load_state_dict(state)
        for name, tensor in other.state_dict().items():
            assert tensor.device.type == target.type
            dev.assert_equal(tensor, kept[name])


@check("module/deepcopy", "MODULE-008", cases=STATEFUL, needs=("storage_allocation",))
def a_deep_copy_has_memory_of_its_own(dev: Device, case: str) -> None:
    """A copy on the device has the values, the forward, and not the memory of the original."""
    module = _first(dev, case).to(dev.device())
    other = copy.deepcopy(module)
    with torch.no_grad():
        for tensor in module.state_dict().values():
            tensor.zero_()
    _is_on(dev, other)
    for name, tensor in _first(dev, case).state_dict().items():
        dev.assert_equal(other.state_dict()[name], tensor)


@check("module/materialize", "MODULE-009", cases=STATEFUL)
def a_module_without_memory_gets_some(dev: Device, case: str) -> None:
    """A module made on meta is materialised by to_empty and initialised on the device."""
    make = _constructor(case)
    expected, module = make(), make(device="meta")
    module.to_empty(device=dev.device())
    _is_on(dev, module)
    for part in reversed(list(module.modules())):  # A module may overrule what its parts did.
        reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if reset is not None:
            reset()
    _is_initialised(dev, module, expected)
    module.load_state_dict(expected.state_dict())
    for name, tensor in module.state_dict().items():
        dev.assert_equal(tensor, expected.state_dict()[name])


# ---- what holds for modules as such --------------------------------------------------------------


@check("module/shared:parameters", "MODULE-010")
def shared_parameters_stay_shared(dev: Device) -> None:
    """Modules that share a parameter share it after to(device)."""
    _moved_with_a_shared_weight(dev)


@check("module/shared:gradients", "MODULE-010")
def shared_parameters_get_one_gradient(dev: Device) -> None:
    """The gradient of a shared parameter is the sum over the modules that share it."""
    model, embedding, _, _ = _moved_with_a_shared_weight(dev)
    tokens = torch.arange(5, device=dev.device())
    model(tokens).sum().backward()
    assert len(list(model.parameters())) == 1
    weight = dev.cpu(embedding.weight)
    # Every row is looked up once, and meets every row of the head once: twice the sum.
    dev.assert_close(embedding.weight.grad, 2 * weight.sum(0).expand(5, 3), rtol=1e-4)


@check("module/shared:optimizer", "MODULE-010")
def an_optimizer_keeps_its_parameters(dev: Device) -> None:
    """An optimizer made before to(device) steps the parameters that have moved."""
    _, embedding, head, optimizer = _moved_with_a_shared_weight(dev)
    before = dev.cpu(embedding.weight).clone()
    head.weight.grad = torch.ones_like(head.weight)
    optimizer.step()
    dev.assert_close(head.weight, before - 0.5)


@check("module/shared:back", "MODULE-010")
def shared_parameters_return_shared(dev: Device) -> None:
    """Modules that share a parameter on the device share it after cpu()."""
    model, embedding, head, _ = _moved_with_a_shared_weight(dev)
    model.cpu()
    assert head.weight is embedding.weight
    assert head.weight.is_cpu


def _moved_with_a_shared_weight(
    dev: Device,
) -> tuple[nn.Module, nn.Embedding, nn.Linear, torch.optim.Optimizer]:
    """A moved model, its two modules, which share a parameter, and an optimizer made before."""
    embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    head.weight = embedding.weight
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.5)
    model = nn.Sequential(embedding, head)
    model.to(dev.device())
    _is_on(dev, model)
    assert head.weight is embedding.weight, "modules that shared a parameter have one each"
    return model, embedding, head, optimizer


#: Where a module is first, and what it is then moved or converted to.
_MOVES: dict[str, Callable[[torch.device], tuple[Any, Any]]] = {
    "to_device": lambda device: ("cpu", device),
    "to_cpu": lambda device: (device, "cpu"),
    "to_half": lambda device: (device, torch.bfloat16),
}


@check("module/gradients_move", "MODULE-011", cases=_MOVES)
def gradients_move_with_their_parameters(dev: Device, case: str) -> None:
    """A gradient that is there when a module is moved or converted goes with it."""
    start, target = _MOVES[case](dev.device())
    module = nn.Linear(3, 2).to(start)
    module(torch.ones(4, 3, device=start)).sum().backward()
    kept = [dev.cpu(p.grad) for p in module.parameters() if p.grad is not None]
    module.to(target)
    assert len(kept) == 2
    for parameter, gradient in zip(module.parameters(), kept, strict=True):
        assert parameter.grad is not None
        assert parameter.grad.device == parameter.device
        dev.assert_equal(parameter.grad, gradient.to(parameter.dtype))


@check("module/channels_last", "MODULE-012", cases=("conv2d", "batchnorm2d", "maxpool2d", "relu"))
def channels_last_goes_through(dev: Device, case: str) -> None:
    """With channels_last weights and inputs, results, gradients and strides are the CPU's."""
    made: dict[str, Callable[[], nn.Module]] = {
        "conv2d": lambda: nn.Conv2d(4, 6, 3, padding=1),
        "batchnorm2d": lambda: nn.BatchNorm2d(4),
        "maxpool2d": lambda: nn.MaxPool2d(2),
        "relu": nn.ReLU,
    }
    module = made[case]().to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in the stubs
    on_device = copy.deepcopy(module).to(dev.device())
    image = torch.randn(2, 4, 6, 6, generator=dev.rng()).to(memory_format=torch.channels_last)
    results = []
    for instance, given in ((on_device, image.to(dev.device())), (module, image)):
        leaf = given.requires_grad_()
        output = instance(leaf)
        output.square().sum().backward()
        results.append((output, leaf.grad, *(p.grad for p in instance.parameters())))
    for actual, expected in zip(*results, strict=True):
        dev.assert_close(actual, expected.detach(), rtol=1e-4, atol=1e-4)
    assert results[0][0].stride() == results[1][0].stride()


_Double = Callable[[Tensor], Tensor]


def _hook_gradients(module: nn.Module, double: _Double) -> Any:
    def hook(_module: nn.Module, gradients: Any, _outputs: Any) -> Any:
        return (double(gradients[0]),)

    return module.register_full_backward_hook(hook)


#: How a function that doubles a tensor is registered as a hook, and by what that multiplies the
#: gradient of the module's input and that of its weight.
_HOOKS: dict[str, tuple[Callable[[nn.Linear, _Double], Any], int, int]] = {
    "forward": (lambda m, double: m.register_forward_hook(lambda _m, _i, out: double(out)), 2, 2),
    "full_backward": (_hook_gradients, 2, 1),
    "parameter": (lambda m, double: m.weight.register_hook(double), 1, 2),
}


@check("module/hooks", "MODULE-013", cases=_HOOKS)
def hooks_see_tensors_of_the_device(dev: Device, case: str) -> None:
    """Hooks of modules and parameters run, with tensors of the device that they may replace."""
    register, of_input, of_weight = _HOOKS[case]
    module = nn.Linear(3, 2, bias=False).to(dev.device())
    leaf = torch.ones(4, 3, device=dev.device(), requires_grad=True)
    seen: list[Tensor] = []

    def double(tensor: Tensor) -> Tensor:
        seen.append(tensor)
        return tensor * 2

    register(module, double)
    module(leaf).sum().backward()
    assert [tensor.device.type for tensor in seen] == [dev.type]
    weight = dev.cpu(module.weight)
    dev.assert_close(leaf.grad, (of_input * weight.sum(0)).expand(4, 3), rtol=1e-5)
    dev.assert_close(module.weight.grad, torch.full((2, 3), 4.0 * of_weight))


@check("module/parametrize", "MODULE-014", cases=("weight_norm", "spectral_norm", "orthogonal"))
def parametrized_weights_train(dev: Device, case: str) -> None:
    """A reparametrised weight is computed, and its originals trained, as on the CPU."""
    wrap = getattr(nn.utils.parametrizations, case)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(_seed(dev))
        module = wrap(nn.Linear(4, 4, bias=False))
    on_device = copy.deepcopy(module).to(dev.device())
    inputs = torch.randn(3, 4, generator=dev.rng())
    results = []
    for instance, given in ((on_device, inputs.to(dev.device())), (module, inputs)):
        instance(given).square().sum().backward()
        results.append([instance.weight, *(p.grad for p in instance.parameters())])
    for actual, expected in zip(*results, strict=True):
        dev.assert_close(actual, expected.detach(), rtol=1e-4, atol=1e-5)


@check("module/save", "MODULE-015", needs=("serialization",))
def a_whole_module_is_saved(dev: Device) -> None:
    """A module saved as a whole comes back on the device, or on the CPU where that is asked for."""
    module = nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3)).to(dev.device())
    file = io.BytesIO()
    torch.save(module, file)
    for target in (None, "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=target, weights_only=False)
        for name, tensor in module.state_dict().items():
            other = loaded.state_dict()[name]
            assert other.device.type == (target or dev.type)
            dev.assert_equal(other, dev.cpu(tensor))


# ---- what the checks share -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """A module and what it is called with, all on one device."""

    case: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def moved(self, dev: Device) -> _Sample:
        """A copy on the device."""
        return self._mapped(lambda x: x.clone().to(dev.device()), dev.device())

    def converted(self, dtype: torch.dtype) -> _Sample:
        """A copy in which floating point numbers are of another type."""
        return self._mapped(lambda x: x.to(dtype) if x.is_floating_point() else x.clone(), dtype)

    def _mapped(self, change: Callable[[Tensor], Tensor], target: Any) -> _Sample:
        args, kwargs = _leaves((self.args, self.kwargs), change)
        return _Sample(self.case, copy.deepcopy(self.module).to(target), args, kwargs)

    def outputs(self) -> Tensors:
        """Every tensor the module returns."""
        leaves = tree_leaves(self.module(*self.args, **self.kwargs))
        return {f"output {i}": leaf for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}

    def buffers(self) -> Tensors:
        """The module's buffers, which the call may have updated."""
        return dict(self.module.named_buffers())

    def gradients(self, weights: list[Tensor], generator: torch.Generator) -> Tensors:
        """Gradients of inputs and parameters of the weighted outputs; draws weights if it must."""
        outputs = [x for x in self.outputs().values() if x is not None and x.requires_grad]
        if not weights:
            weights.extend(torch.randn(x.shape, generator=generator) for x in outputs)
        if outputs:
            given = [w.to(x.device) for w, x in zip(weights, outputs, strict=True)]
            torch.autograd.backward(outputs, given)
        inputs = [x for x in tree_leaves((self.args, self.kwargs)) if isinstance(x, Tensor)]
        found = {f"input {i}": x.grad for i, x in enumerate(inputs) if x.requires_grad}
        return found | {name: p.grad for name, p in self.module.named_parameters()}

    def is_random(self) -> bool:
        """Whether the call draws random numbers."""
        return randomness.drawn(lambda: self.module(*self.args, **self.kwargs))


def _samples(
    dev: Device,
    case: str,
    dtype: torch.dtype,
    *,
    modes: tuple[bool, ...] = (True, False),
    requires_grad: bool = False,
) -> Iterator[_Sample]:
    """The database's samples on the CPU, for training and evaluation; of many some."""
    info = MODULES[case]
    for training in modes:
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(_seed(dev))
            entries = list(info.module_inputs_func(info, "cpu", dtype, requires_grad, training))
            first, others = entries[:1], entries[1:]
            if len(others) > SOME:
                others = random.Random(_seed(dev)).sample(others, SOME)
            for entry in first + others:
                given, called = entry.constructor_input, entry.forward_input
                module = info.module_cls(*given.args, **given.kwargs).to(dtype)
                args, kwargs = _leaves((called.args, called.kwargs), torch.clone)
                if info.is_lazy:
                    module(*args, **kwargs)
                yield _Sample(case, module.train(training), args, kwargs)


def _leaves(arguments: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Changed copies of all tensors, as leaves; one that occurs twice still does."""
    made: dict[int, Tensor] = {}

    def leaf(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if id(value) not in made:
            made[id(value)] = change(value.detach()).requires_grad_(value.requires_grad)
        return made[id(value)]

    return tree_map(leaf, arguments)


def _constructor(case: str) -> Callable[..., nn.Module]:
    """What makes the module of the first sample; takes device=."""
    info = MODULES[case]
    given = next(iter(info.module_inputs_func(info, "cpu", torch.float32, False, True)))
    args, kwargs = given.constructor_input.args, dict(given.constructor_input.kwargs)
    kwargs.pop("device", None)
    return partial(info.module_cls, *args, **kwargs)


def _first(dev: Device, case: str) -> nn.Module:
    """The module of the first sample, the same on every call."""
    return next(_samples(dev, case, torch.float32)).module


def _compare(
    dev: Device,
    sample: _Sample,
    actual: Tensors,
    expected: Tensors,
) -> None:
    """Fail unless tensors are on the device and near the CPU's; if random, alike but for values."""
    __tracebackhide__ = True
    assert list(actual) == list(expected), f"{list(actual)} instead of {list(expected)}"
    factor = MORE.get(sample.case, ANY).factor
    for name, wanted in expected.items():
        found = actual[name]
        assert (found is None) == (wanted is None), f"{name}: {found} instead of {wanted}"
        if found is None or wanted is None:
            continue
        assert found.device.type == dev.type, f"{name} is on {found.device}"
        on_cpu, wanted = dev.cpu(found), wanted.detach()
        compare.require_none(compare.metadata_difference(on_cpu, wanted, f" {name}"))
        rtol, atol = (factor * granted for granted in dev.tolerance(wanted.dtype))
        apart = compare.difference(on_cpu, wanted, rtol=rtol, atol=atol, where=f" {name}")
        if apart is not None and not sample.is_random():
            compare.require_none(apart)


def _alike(dev: Device, *arguments: Any) -> bool:
    try:
        _compare(dev, *arguments)
    except AssertionError as error:
        if not is_verdict(error, __file__):
            raise
        return False
    return True


def _without_fast_paths(sample: _Sample) -> Tensors:
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        return sample.outputs()
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _norm(tensor: Tensor) -> float:
    return float(tensor.double().norm())


def _is_on(dev: Device, module: nn.Module) -> None:
    __tracebackhide__ = True
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        assert tensor.device.type == dev.type, f"{name} is on {tensor.device}"


def _is_initialised(dev: Device, module: nn.Module, expected: nn.Module) -> None:
    """Fail unless parameters are drawn from where the CPU's are: by range, and not all alike."""
    __tracebackhide__ = True
    for name, wanted in expected.state_dict().items():
        found = dev.cpu(module.state_dict()[name])
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), name
        if wanted.numel() < 2 or bool((wanted == wanted.flatten()[0]).all()):
            dev.assert_equal(found, wanted)  # A constant: no chance in it.
            continue
        assert bool(found.isfinite().all()), f"{name} is not initialised"
        ratio = float(found.abs().max() / wanted.abs().max())
        # The largest of a few numbers may by chance be small: of three in one case of a hundred.
        limit = 10 if wanted.numel() >= 8 else 1000
        assert 1 / limit < ratio < limit, f"{name} is {ratio:.1e} times as large as the CPU's"


def _seed(dev: Device) -> int:
    return zlib.crc32(f"{dev.seed}:{dev.check_id}".encode())
