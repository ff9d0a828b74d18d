# SPDX-License-Identifier: BSD-3-Clause
"""Registration: the device type, the module `torch.<type>`, generated methods, loading and exit."""

from __future__ import annotations

import functools
import glob
import json
import os
import pickle
import signal
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, Literal

import torch

from torch_conformance.authoring.api import (
    AT_ONCE,
    Device,
    Ended,
    check,
    ends,
    raised,
    why_ended,
)
from torch_conformance.authoring.refusal import misses_attribute

# ---- the device type -------------------------------------------------------------------------


@check("registration/device_parsing:type_only", "REG-001")
def device_type_parses(dev: Device) -> None:
    """torch.device understands the device type without an index."""
    parsed = torch.device(dev.type)
    assert parsed.type == dev.type and parsed.index is None


@check("registration/device_parsing:with_index", "REG-001")
def device_type_with_index_parses(dev: Device) -> None:
    """torch.device understands the device type with an index in one string."""
    parsed = torch.device(f"{dev.type}:0")
    assert (parsed.type, parsed.index) == (dev.type, 0)


@check("registration/device_parsing:index_argument", "REG-001")
def device_index_may_be_an_argument(dev: Device) -> None:
    """torch.device takes the index as an argument, by position and by name."""
    assert torch.device(dev.type, 0) == torch.device(f"{dev.type}:0")
    assert torch.device(type=dev.type, index=0) == torch.device(f"{dev.type}:0")


@check("registration/device_parsing:text", "REG-001")
def device_shows_its_type(dev: Device) -> None:
    """str() and repr() of a torch.device show the device type."""
    assert str(torch.device(dev.type)) == dev.type
    assert str(torch.device(dev.type, 0)) == f"{dev.type}:0"
    assert dev.type in repr(torch.device(dev.type, 0))


@check("registration/device_parsing:equality", "REG-001")
def devices_are_equal_by_type_and_index(dev: Device) -> None:
    """Devices of one type and index are equal and hash alike; those of other indices are not."""
    assert torch.device(dev.type, 0) != torch.device(dev.type)
    assert torch.device(dev.type, 0) != torch.device(dev.type, 1)
    assert len({torch.device(dev.type, 0), torch.device(f"{dev.type}:0")}) == 1


@check("registration/device_parsing:pickle", "REG-001")
def devices_can_be_pickled(dev: Device) -> None:
    """A pickled torch.device is equal to the one that was pickled."""
    device = torch.device(dev.type, 0)
    assert pickle.loads(pickle.dumps(device)) == device


_MALFORMED = {
    "negative": "{}:-1",
    "empty_index": "{}:",
    "letters": "{}:zero",
    "two_indices": "{}:0:1",
    "leading_zero": "{}:00",
    "spaces": " {} ",
}


@check("registration/device_malformed", "REG-002", cases=tuple(_MALFORMED))
def malformed_device_string_is_refused(dev: Device, case: str) -> None:
    """A malformed device string raises RuntimeError and is never read as some other device."""
    text = _MALFORMED[case].format(dev.type)
    error = raised(lambda: torch.device(text))
    assert isinstance(error, RuntimeError), f"torch.device({text!r}) raised {error!r}"


@check("registration/renamed:name", "REG-003", needs=("privateuse1",))
def privateuse1_has_the_backend_name(dev: Device) -> None:
    """PrivateUse1 was renamed to the device type."""
    assert torch._C._get_privateuse1_backend_name() == dev.type


@check("registration/renamed:device_type_alias", "REG-003", needs=("privateuse1",))
def device_type_has_an_alias(dev: Device) -> None:
    """PrivateUse1 was renamed through the Python function, which gives DeviceType an alias."""
    assert torch._C._get_privateuse1_backend_name() == dev.type
    if torch.__version__ < "2.13":
        dev.unsupported("torch before 2.13 does not rename DeviceType")
    device_type = torch._C._autograd.DeviceType
    assert hasattr(device_type, dev.type.upper()), (
        "DeviceType has no alias: the rename bypassed torch.utils.rename_privateuse1_backend"
    )
    assert dev.type.upper() in str(device_type.PrivateUse1)


def _made(dev: Device) -> dict[str, torch.Tensor]:
    """Tensors that come into being in different ways."""
    x = torch.zeros(2, 3, device=dev.device())
    return {
        "empty": torch.empty(2, 3, device=dev.device()),
        "empty_strided": torch.empty_strided((2, 3), (1, 2), device=dev.device()),
        "zeros": torch.zeros(3, device=dev.device()),
        "tensor": torch.tensor([1.0], device=dev.device()),
        "to": torch.ones(3).to(dev.device()),
        "view": x.t()[1:],
        "result": x + x,
        "cast": x.to(torch.int32),
        "detached": x.requires_grad_().detach(),
    }


@check(
    "registration/dispatch_keys",
    "REG-004",
    cases=("backend", "autograd", "not_cpu"),
    needs=("privateuse1",),
)
def tensor_carries_the_dispatch_keys(dev: Device, case: str) -> None:
    """A device tensor dispatches to PrivateUse1 and its autograd key, never to the CPU."""
    key, wanted = {
        "backend": (torch._C.DispatchKey.PrivateUse1, True),
        "autograd": (torch._C.DispatchKey.AutogradPrivateUse1, True),
        "not_cpu": (torch._C.DispatchKey.CPU, False),
    }[case]
    for made, x in _made(dev).items():
        assert torch._C._dispatch_keys(x).has(key) is wanted, f"{made}: {key}"


@check("registration/current_accelerator:type", "REG-005", needs=("accelerator",))
def backend_is_the_current_accelerator(dev: Device) -> None:
    """torch.accelerator names this backend."""
    current = torch.accelerator.current_accelerator()
    assert current is not None and current.type == dev.type
    assert current.index is None


@check("registration/current_accelerator:available", "REG-005", needs=("accelerator",))
def current_accelerator_is_available(dev: Device) -> None:
    """torch.accelerator says that this backend is available."""
    assert torch.accelerator.is_available() is True
    assert torch.accelerator.current_accelerator(check_available=True) is not None


@check("registration/current_accelerator:device_index_only", "REG-005", needs=("accelerator",))
def an_index_alone_means_the_backends_device(dev: Device) -> None:
    """A device given as an index alone is the device of this backend."""
    assert torch.device(0) == dev.device(0)
    assert torch.empty(1, device=0).device == dev.device(0)


# ---- the module torch.<type> -----------------------------------------------------------------


_MODULE: dict[str, Callable[[str], Any]] = {
    "attribute": lambda type: getattr(torch, type),
    "by_string": torch.get_device_module,
    "by_device": lambda type: torch.get_device_module(torch.device(type)),
    "by_index": lambda type: torch.get_device_module(torch.device(type, 0)),
    "importable": lambda type: sys.modules.get(f"torch.{type}"),
}


@check("registration/module", "REG-010", cases=_MODULE)
def device_module_is_registered(dev: Device, case: str) -> None:
    """torch.<type> exists, and get_device_module and `import torch.<type>` agree on it."""
    module = getattr(torch, dev.type, None)
    assert module is not None, f"torch has no attribute {dev.type!r}"
    assert _MODULE[case](dev.type) is module


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.uint8 and not value.is_cuda


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_stream(value: Any) -> bool:
    return isinstance(value, torch.Stream)


#: name -> (call it, judge what came back); grouped by requirement below.
Member = tuple[Callable[[ModuleType], Any], Callable[[Any], bool]]


def _none(value: Any) -> bool:
    return value is None


_ENUMERATION: dict[str, Member] = {
    "device_count": (lambda m: m.device_count(), lambda v: _is_index(v) and v >= 1),
    "is_available": (lambda m: m.is_available(), lambda v: v is True),
    "current_device": (lambda m: m.current_device(), _is_index),
    "set_device": (lambda m: m.set_device(m.current_device()), _none),
    "device": (lambda m: m.device(0), lambda v: hasattr(v, "__enter__") and hasattr(v, "__exit__")),
}
_STREAMS: dict[str, Member] = {
    "stream_class": (lambda m: m.Stream(), _is_stream),
    "event_class": (lambda m: m.Event(), lambda v: isinstance(v, torch.Event)),
    "current_stream": (lambda m: m.current_stream(), _is_stream),
    "current_stream_of": (lambda m: m.current_stream(0), _is_stream),
    "default_stream": (lambda m: m.default_stream(), _is_stream),
    "default_stream_of": (lambda m: m.default_stream(0), _is_stream),
    "set_stream": (lambda m: m.set_stream(m.current_stream()), _none),
    "stream": (lambda m: m.stream(m.current_stream()), lambda v: hasattr(v, "__enter__")),
    "synchronize": (lambda m: m.synchronize(), _none),
    "synchronize_device": (lambda m: m.synchronize(0), _none),
}
_DESCRIPTION: dict[str, Member] = {
    "get_device_name": (lambda m: m.get_device_name(0), _is_text),
    "get_device_name_current": (lambda m: m.get_device_name(), _is_text),
    "get_device_properties": (
        lambda m: m.get_device_properties(0),
        lambda v: _is_text(v.name) and v.total_memory > 0,
    ),
    "get_device_capability": (lambda m: m.get_device_capability(0), lambda v: v is not None),
}
_MEMORY: dict[str, Member] = {
    "memory_allocated": (lambda m: m.memory_allocated(), _is_index),
    "max_memory_allocated": (lambda m: m.max_memory_allocated(), _is_index),
    "memory_reserved": (lambda m: m.memory_reserved(), _is_index),
    "max_memory_reserved": (lambda m: m.max_memory_reserved(), _is_index),
    "memory_stats": (lambda m: m.memory_stats(), lambda v: "allocated_bytes.all.current" in v),
    "memory_summary": (lambda m: m.memory_summary(), _is_text),
    "reset_peak_memory_stats": (lambda m: m.reset_peak_memory_stats(), _none),
    "reset_accumulated_memory_stats": (lambda m: m.reset_accumulated_memory_stats(), _none),
    "mem_get_info": (
        lambda m: m.mem_get_info(),
        lambda v: len(v) == 2 and 0 <= v[0] <= v[1] and v[1] > 0,
    ),
    "empty_cache": (lambda m: m.empty_cache(), _none),
}


def _is_of_module(value: Any) -> bool:
    return {"Stream", "Event", "synchronize", "current_device"} <= set(value)


#: What a module need not have; where it is there, it is what torch.cuda's is.
_IF_THERE: dict[str, Member] = {
    "device_of": (lambda m: m.device_of(torch.ones(1)), lambda v: hasattr(v, "__enter__")),
    "device_memory_used": (lambda m: m.device_memory_used(), _is_index),
    "host_empty_cache": (lambda m: m.host_empty_cache(), _none),
    "ipc_collect": (lambda m: m.ipc_collect(), _none),
    "is_bf16_supported": (lambda m: m.is_bf16_supported(), lambda v: isinstance(v, bool)),
    "is_tf32_supported": (lambda m: m.is_tf32_supported(), lambda v: isinstance(v, bool)),
    "can_device_access_peer": (
        lambda m: m.can_device_access_peer(0, m.device_count() - 1),
        lambda v: isinstance(v, (bool, int)),
    ),
    "get_per_process_memory_fraction": (
        lambda m: m.get_per_process_memory_fraction(0),
        lambda v: 0 < v <= 1,
    ),
    "memory_snapshot": (lambda m: m.memory_snapshot(), lambda v: isinstance(v, list)),
    "memory_stats_as_nested_dict": (
        lambda m: m.memory_stats_as_nested_dict(),
        lambda v: "current" in v["allocated_bytes"]["all"],
    ),
    "__dir__": (dir, _is_of_module),
}
_SEEDING: dict[str, Member] = {
    "manual_seed_all": (lambda m: m.manual_seed_all(7), _none),
    "get_rng_state": (lambda m: m.get_rng_state(), _is_bytes),
    "get_rng_state_of": (lambda m: m.get_rng_state(0), _is_bytes),
    "set_rng_state": (lambda m: m.set_rng_state(m.get_rng_state()), _none),
    "in_bad_fork": (lambda m: m._is_in_bad_fork(), lambda v: v is False),
}
_SEEDING_MORE: dict[str, Member] = {
    "manual_seed": (lambda m: m.manual_seed(7), _none),
    "seed": (lambda m: m.seed(), _none),
    "seed_all": (lambda m: m.seed_all(), _none),
    "initial_seed": (lambda m: m.initial_seed(), _is_seed),
    "get_rng_state_all": (
        lambda m: m.get_rng_state_all(),
        lambda v: len(v) >= 1 and all(_is_bytes(state) for state in v),
    ),
    "set_rng_state_all": (lambda m: m.set_rng_state_all(m.get_rng_state_all()), _none),
    "default_generators": (
        lambda m: m.default_generators,
        lambda v: len(v) >= 1 and all(isinstance(g, torch.Generator) for g in v),
    ),
}
_STATE: dict[str, Member] = {
    "is_initialized": (lambda m: m.is_initialized(), lambda v: v is True),
    "init": (lambda m: m.init(), _none),
    "init_twice": (lambda m: (m.init(), m.init())[1], _none),
    "lazy_call": (lambda m: m._lazy_call(lambda: None), _none),
}
_MIXED_PRECISION: dict[str, Member] = {
    "get_amp_supported_dtype": (
        lambda m: m.get_amp_supported_dtype(),
        lambda v: len(v) >= 1 and all(isinstance(d, torch.dtype) for d in v),
    ),
}


def _verify_member(dev: Device, members: dict[str, Member], case: str) -> None:
    """Call one member of the module."""
    call, judge = members[case]
    torch.empty(1, device=dev.device())  # the contract is that of an initialised device
    try:
        value = call(dev.bare_module)
    except (AttributeError, NotImplementedError) as error:
        if isinstance(error, AttributeError) and not misses_attribute(error, __file__):
            raise
        raise AssertionError(f"torch.{dev.type}: {error}") from error
    assert judge(value), f"torch.{dev.type}: {case} returned {value!r}"


@check("registration/if_there", "REG-050", cases=_IF_THERE, needs=("accelerator",))
def further_functions_are_those_of_cuda(dev: Device, case: str) -> None:
    """A function that the module has by the name of one of torch.cuda's returns what that does."""
    if not hasattr(dev.bare_module, case):
        dev.unsupported(f"torch.{dev.type} has no {case}")
    _verify_member(dev, _IF_THERE, case)


@check("registration/if_there:memory_used", "REG-050", needs=("memory_stats",))
def used_memory_grows_with_use(dev: Device) -> None:
    """device_memory_used of a device grows with what is allocated there."""
    if not hasattr(dev.bare_module, "device_memory_used"):
        dev.unsupported(f"torch.{dev.type} has no device_memory_used")
    index, size = dev.count - 1, 64 << 20
    torch.accelerator.empty_cache()
    before = dev.bare_module.device_memory_used(index)
    x = torch.empty(size, dtype=torch.uint8, device=dev.device(index))
    grown = dev.bare_module.device_memory_used(index) - before
    assert size <= grown < 2 * size, f"by {grown} bytes for {x.nbytes}"


@check("registration/if_there:repr", "REG-050", needs=("streams",))
def streams_are_shown_with_their_device(dev: Device) -> None:
    """The text of a stream of the device module names its device."""
    if not hasattr(dev.bare_module, "Stream"):
        dev.unsupported(f"torch.{dev.type} has no Stream")
    for index in {0, dev.count - 1}:
        stream = dev.bare_module.Stream(device=index)
        assert str(stream.device) in repr(stream), repr(stream)


def _random_state_kept(dev: Device) -> AbstractContextManager[None]:
    """Puts the random state back, where the module can; each function of it has a case."""
    if all(hasattr(dev.bare_module, name) for name in ("get_rng_state", "set_rng_state")):
        return torch.random.fork_rng(devices=range(dev.count), device_type=dev.type)
    return nullcontext()


@check("registration/enumeration", "REG-011", cases=tuple(_ENUMERATION), needs=("accelerator",))
def module_enumerates_devices(dev: Device, case: str) -> None:
    """torch.<type> offers the functions to count, query and choose devices."""
    _verify_member(dev, _ENUMERATION, case)


@check("registration/streams", "REG-012", cases=tuple(_STREAMS), needs=("streams",))
def module_offers_streams(dev: Device, case: str) -> None:
    """torch.<type> offers streams and events under their conventional names."""
    _verify_member(dev, _STREAMS, case)


@check("registration/description", "REG-013", cases=tuple(_DESCRIPTION), needs=("accelerator",))
def module_describes_devices(dev: Device, case: str) -> None:
    """torch.<type> describes a device by name, properties and capability."""
    _verify_member(dev, _DESCRIPTION, case)


@check("registration/memory", "REG-014", cases=tuple(_MEMORY), needs=("memory_stats",))
def module_reports_memory(dev: Device, case: str) -> None:
    """torch.<type> reports and manages memory under the conventional names."""
    _verify_member(dev, _MEMORY, case)


@check("registration/seeding", "REG-015", cases=tuple(_SEEDING), needs=("accelerator", "generator"))
def module_offers_what_torch_seeds_through(dev: Device, case: str) -> None:
    """torch.<type> offers the functions through which torch.manual_seed and fork_rng reach it."""
    with _random_state_kept(dev):
        _verify_member(dev, _SEEDING, case)


@check(
    "registration/seeding_more",
    "REG-016",
    cases=tuple(_SEEDING_MORE),
    needs=("accelerator", "generator"),
)
def module_offers_the_rest_of_seeding(dev: Device, case: str) -> None:
    """torch.<type> offers the further random functions users know from other devices."""
    with _random_state_kept(dev):
        _verify_member(dev, _SEEDING_MORE, case)


@check("registration/state", "REG-017", cases=tuple(_STATE), needs=("accelerator",))
def module_tells_its_state(dev: Device, case: str) -> None:
    """torch.<type> tells whether it is initialised, and initialising it again is harmless."""
    _verify_member(dev, _STATE, case)


@check("registration/lazy_call", "REG-017", needs=("accelerator",))
def lazy_call_runs_once_initialised(dev: Device) -> None:
    """A function given to _lazy_call after initialisation runs, and runs once."""
    torch.empty(1, device=dev.device())
    calls: list[int] = []
    dev.module._lazy_call(lambda: calls.append(1))
    torch.empty(1, device=dev.device())
    assert calls == [1], f"the function ran {len(calls)} times"


@check(
    "registration/mixed_precision",
    "REG-018",
    cases=_MIXED_PRECISION,
    needs=("autocast", "privateuse1"),
)
def module_names_the_dtypes_of_autocast(dev: Device, case: str) -> None:
    """torch.<type> lists the data types that autocast may have."""
    _verify_member(dev, _MIXED_PRECISION, case)


def _autocast_dtype(dev: Device) -> torch.dtype:
    """The first data type that the module lists for autocast, which has to be available."""
    assert torch.amp.is_autocast_available(dev.type) is True
    dtype: torch.dtype = dev.bare_module.get_amp_supported_dtype()[0]
    return dtype


@check("registration/mixed_precision:available", "REG-018", needs=("autocast", "privateuse1"))
def autocast_is_available(dev: Device) -> None:
    """Autocast is available for the device type and has a default data type."""
    _autocast_dtype(dev)
    assert isinstance(torch.get_autocast_dtype(dev.type), torch.dtype)


@check("registration/mixed_precision:context", "REG-018", needs=("autocast", "privateuse1"))
def autocast_can_be_entered(dev: Device) -> None:
    """Inside autocast it is enabled with its data type; before and after it is not."""
    dtype = _autocast_dtype(dev)
    assert not torch.is_autocast_enabled(dev.type)
    with torch.autocast(dev.type, dtype=dtype):
        assert torch.is_autocast_enabled(dev.type)
        assert torch.get_autocast_dtype(dev.type) is dtype
    assert not torch.is_autocast_enabled(dev.type)


@check("registration/mixed_precision:operator", "REG-018", needs=("autocast", "privateuse1"))
def operators_run_under_autocast(dev: Device) -> None:
    """An operator that autocast does not change gives its result under autocast."""
    x = torch.ones(4, device=dev.device())
    with torch.autocast(dev.type, dtype=_autocast_dtype(dev)):
        y = x.clone()
    dev.assert_equal(y, torch.ones(4))


@check("registration/mixed_precision:nested_off", "REG-018", needs=("autocast", "privateuse1"))
def autocast_can_be_switched_off_inside(dev: Device) -> None:
    """autocast(enabled=False) inside autocast switches it off."""
    dtype = _autocast_dtype(dev)
    with torch.autocast(dev.type, dtype=dtype), torch.autocast(dev.type, enabled=False):
        assert not torch.is_autocast_enabled(dev.type)


@check("registration/is_bf16_supported", "REG-019", needs=("accelerator",))
def bf16_answer_is_true_to_the_device(dev: Device) -> None:
    """is_bf16_supported() answers with a bool that agrees with what the device accepts."""
    answer = dev.bare_module.is_bf16_supported()
    assert isinstance(answer, bool)
    if answer:
        x = torch.ones(2).to(dev.device(), torch.bfloat16)
        dev.assert_equal(x, torch.ones(2, dtype=torch.bfloat16))


# ---- generated methods -----------------------------------------------------------------------


@check("registration/tensor_methods:flag_on_device", "REG-020", needs=("privateuse1",))
def tensor_flag_is_true_on_the_device(dev: Device) -> None:
    """Tensor.is_<type> is true of a tensor of the device."""
    assert getattr(torch.empty(1, device=dev.device()), f"is_{dev.type}") is True


@check("registration/tensor_methods:flag_on_cpu", "REG-020", needs=("privateuse1",))
def tensor_flag_is_false_on_the_cpu(dev: Device) -> None:
    """Tensor.is_<type> is false of a tensor of the CPU."""
    assert getattr(torch.arange(6.0), f"is_{dev.type}") is False


def _verify_move(dev: Device, index: int | None, **options: Any) -> None:
    cpu = torch.arange(6.0)
    moved = getattr(cpu, dev.type)(index, **options)
    wanted = dev.bare_module.current_device() if index is None else index
    assert moved.device == dev.device(wanted)
    dev.assert_equal(moved, cpu)


@check("registration/tensor_methods:move", "REG-020", needs=("privateuse1",))
def tensor_method_moves_to_the_current_device(dev: Device) -> None:
    """Tensor.<type>() copies a tensor of the CPU to the current device."""
    _verify_move(dev, None)


@check("registration/tensor_methods:move_to_index", "REG-020", needs=("privateuse1",))
def tensor_method_moves_to_the_device_asked_for(dev: Device) -> None:
    """Tensor.<type>(index) copies a tensor of the CPU to the device of that index."""
    _verify_move(dev, dev.count - 1)


@check("registration/tensor_methods:already_there", "REG-020", needs=("privateuse1",))
def tensor_method_returns_what_is_already_there(dev: Device) -> None:
    """Tensor.<type>() returns a tensor of the current device itself."""
    x = torch.arange(6.0).to(dev.device(dev.bare_module.current_device()))
    assert getattr(x, dev.type)() is x


@check("registration/tensor_methods:non_blocking", "REG-020", needs=("privateuse1",))
def tensor_method_takes_non_blocking(dev: Device) -> None:
    """Tensor.<type>(non_blocking=True) copies a tensor of the CPU to the current device."""
    _verify_move(dev, None, non_blocking=True)


@check("registration/tensor_methods:gradient", "REG-020", needs=("privateuse1",))
def tensor_method_keeps_history(dev: Device) -> None:
    """Gradients pass through Tensor.<type>()."""
    leaf = torch.arange(6.0).requires_grad_()
    getattr(leaf, dev.type)().mul(2).sum().backward()
    assert leaf.grad is not None, "the tensor arrived without its history"
    assert torch.equal(leaf.grad, torch.full((6,), 2.0))


def _model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()


def _moved(dev: Device, model: torch.nn.Module, *index: int) -> torch.nn.Module:
    moved: torch.nn.Module = getattr(model, dev.type)(*index)
    assert moved is model
    return moved


@check("registration/module_methods:parameters", "REG-021", needs=("privateuse1",))
def module_method_moves_parameters(dev: Device) -> None:
    """nn.Module.<type>() moves parameters, which remain leaves that require grad."""
    model = _moved(dev, _model())
    assert {p.device.type for p in model.parameters()} == {dev.type}
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


@check("registration/module_methods:same_parameters", "REG-021", needs=("privateuse1",))
def module_method_keeps_the_parameter_objects(dev: Device) -> None:
    """After nn.Module.<type>() the parameters are the objects that an optimizer was given."""
    model = _model()
    before = list(model.parameters())
    _moved(dev, model)
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))


@check("registration/module_methods:buffers", "REG-021", needs=("privateuse1",))
def module_method_moves_buffers(dev: Device) -> None:
    """nn.Module.<type>() moves buffers."""
    assert {b.device.type for b in _moved(dev, _model()).buffers()} == {dev.type}


@check("registration/module_methods:forward", "REG-021", needs=("privateuse1",))
def module_method_makes_a_module_that_computes(dev: Device) -> None:
    """A module that nn.Module.<type>() has moved computes what it computed on the CPU."""
    model, x = _model(), torch.arange(6.0).reshape(2, 3)
    expected = model(x).detach()
    dev.assert_close(_moved(dev, model)(x.to(dev.device())).detach(), expected)


@check("registration/module_methods:to_index", "REG-021", needs=("privateuse1",))
def module_method_moves_to_the_device_asked_for(dev: Device) -> None:
    """nn.Module.<type>(index) moves parameters and buffers to the device of that index."""
    model = _moved(dev, _model(), dev.count - 1)
    assert {t.device for t in model.state_dict().values()} == {dev.device(dev.count - 1)}


def _packed() -> Any:
    return torch.nn.utils.rnn.pack_sequence([torch.arange(3.0), torch.arange(2.0)])


@check("registration/packed_sequence_methods:flag", "REG-022", needs=("privateuse1",))
def packed_sequence_flag_is_generated(dev: Device) -> None:
    """PackedSequence.is_<type> says whether the sequence is on the device."""
    packed = _packed()
    assert getattr(packed, f"is_{dev.type}") is False
    assert getattr(getattr(packed, dev.type)(), f"is_{dev.type}") is True


@check("registration/packed_sequence_methods:move", "REG-022", needs=("privateuse1",))
def packed_sequence_method_is_generated(dev: Device) -> None:
    """PackedSequence.<type>() copies the data to the device and keeps the batch sizes."""
    packed = _packed()
    moved = getattr(packed, dev.type)()
    assert moved.data.device.type == dev.type
    dev.assert_equal(moved.data, packed.data)
    assert torch.equal(moved.batch_sizes, packed.batch_sizes)


@check("registration/storage_methods:flag", "REG-023", needs=("privateuse1",))
def storage_flag_is_generated(dev: Device) -> None:
    """UntypedStorage.is_<type> says whether the storage is on the device."""
    assert getattr(torch.empty(1).untyped_storage(), f"is_{dev.type}") is False
    on_device = torch.empty(1, device=dev.device()).untyped_storage()
    assert getattr(on_device, f"is_{dev.type}") is True


#: What gives the storage of a tensor, and what gives the untyped storage of that.
_STORAGES: dict[str, tuple[Callable[[torch.Tensor], Any], Callable[[Any], Any]]] = {
    "untyped": (lambda x: x.untyped_storage(), lambda storage: storage),
    "typed": (lambda x: x._typed_storage(), lambda storage: storage._untyped_storage),
}


@check("registration/storage_methods", "REG-023", cases=_STORAGES, needs=("privateuse1",))
def storage_methods_are_generated(dev: Device, case: str) -> None:
    """UntypedStorage.<type>() and TypedStorage.<type>() copy the bytes to the device."""
    dev.require("storage_allocation")
    storage_of, untyped = _STORAGES[case]
    cpu = torch.arange(8, dtype=torch.uint8)
    moved = getattr(storage_of(cpu), dev.type)()
    assert moved.device.type == dev.type
    view = torch.empty(0, dtype=torch.uint8, device=moved.device).set_(untyped(moved))
    dev.assert_equal(view, cpu)


# ---- loading ---------------------------------------------------------------------------------

_REPORT = """
import json, os, random, signal, threading, warnings
import torch
module = getattr(torch, {type!r}, None)
children = []
for task in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{{task}}/children") as listing:
        children += listing.read().split()
state = {{
    "dtype": torch.get_default_dtype(),
    "device": torch.get_default_device(),
    "grad_mode": torch.is_grad_enabled(),
    "inference_mode": torch.is_inference_mode_enabled(),
    "autocast": torch.is_autocast_enabled("cpu"),
    "anomaly_mode": torch.is_anomaly_enabled(),
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "float32_precision": torch.get_float32_matmul_precision(),
    "flush_denormal": (torch.tensor(1e-40, dtype=torch.float32) * 1).item() == 0,
    "threads": torch.get_num_threads(),
    "interop_threads": torch.get_num_interop_threads(),
    "print_options": vars(torch._tensor_str.PRINT_OPTS),
    "sharing_strategy": torch.multiprocessing.get_sharing_strategy(),
    "start_method": torch.multiprocessing.get_start_method(allow_none=True),
    "warning_filters": [entry[:2] + entry[4:] for entry in warnings.filters],
    "signals": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
    "folder": os.getcwd(),
    "modes": torch._C._len_torch_dispatch_stack() + torch._C._len_torch_function_stack(),
}}
report = {{
    "state": {{name: str(value) for name, value in state.items()}},
    "known": module is not None,
    "initialized": bool(module.is_initialized()) if hasattr(module, "is_initialized") else None,
    "threads": len(os.listdir("/proc/self/task")),
    "python_threads": threading.active_count(),
    "children": len(children),
}}
print("REPORT" + json.dumps(report), end="")
"""

#: One interpreter per way of loading serves all the checks of a worker: a start costs a second.
_REPORTS: dict[tuple[str, str], tuple[dict[str, Any], str, str]] = {}


def _after_import(dev: Device, backend: Literal["load", "none"]) -> tuple[dict[str, Any], str, str]:
    """What a fresh interpreter shows after its imports alone: (facts, stdout, stderr)."""
    key = (dev.type, backend)
    if key not in _REPORTS:
        # "none" is torch alone, the measure for the rest: not even autoload may load the backend.
        env = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"} if backend == "none" else {}
        done = dev.python(_REPORT.format(type=dev.type), backend=backend, env=env)
        assert done.returncode == 0, why_ended(done)
        stdout, _, facts = done.stdout.rpartition("REPORT")
        _REPORTS[key] = json.loads(facts), stdout, done.stderr
    return _REPORTS[key]


@check("registration/import_alone:exits", "REG-030", needs=("accelerator",))
def a_process_that_only_imports_ends(dev: Device) -> None:
    """A process that loads the backend and does nothing else exits with status 0."""
    _after_import(dev, "load")


@check("registration/import_alone:known", "REG-030", needs=("accelerator",))
def import_registers_the_module(dev: Device) -> None:
    """Loading the backend is enough for torch.<type> to exist."""
    facts, _, _ = _after_import(dev, "load")
    assert facts["known"]


# Needs fork because a fork loses threads: that is what is wrong with them.
@check("registration/import_alone:no_thread", "REG-030", needs=("accelerator", "fork"))
def import_starts_no_thread(dev: Device) -> None:
    """Loading the backend starts no thread."""
    facts, _, _ = _after_import(dev, "load")
    without, _, _ = _after_import(dev, "none")
    assert facts["threads"] <= without["threads"], "the import started threads"
    assert facts["python_threads"] == 1


@check("registration/import_alone:no_child", "REG-030", needs=("accelerator",))
def import_starts_no_process(dev: Device) -> None:
    """Loading the backend leaves no child process."""
    facts, _, _ = _after_import(dev, "load")
    assert facts["children"] == 0, "the import left helper processes behind"


@check("registration/import_alone:not_initialized", "REG-030", needs=("accelerator",))
def import_initialises_no_device(dev: Device) -> None:
    """Loading the backend does not initialise the device."""
    facts, _, _ = _after_import(dev, "load")
    assert facts["initialized"] is not True, "the import initialised the device"


@check("registration/import_state", "REG-038", needs=("accelerator",))
def import_changes_no_global_state(dev: Device) -> None:
    """After loading the backend the program's defaults, modes and handlers are what torch made."""
    without, _, _ = _after_import(dev, "none")
    facts, _, _ = _after_import(dev, "load")
    changed = {
        name: (value, facts["state"][name])
        for name, value in without["state"].items()
        if facts["state"][name] != value
    }
    assert not changed, f"loading the backend changed {changed}"


@check("registration/import_silent", "REG-031", cases=("stdout",), needs=("accelerator",))
def import_writes_nothing_to_stdout(dev: Device, case: str) -> None:
    """Loading the backend prints nothing on stdout, which belongs to the program."""
    _, stdout, _ = _after_import(dev, "load")
    assert stdout == "", f"{case}: {stdout[:300]!r}"


@check("registration/import_silent", "REG-032", cases=("stderr",), needs=("accelerator",))
def import_writes_nothing_to_stderr(dev: Device, case: str) -> None:
    """Loading the backend prints nothing on stderr that torch alone does not print."""
    _, _, without = _after_import(dev, "none")
    _, _, stderr = _after_import(dev, "load")
    new = [line for line in stderr.splitlines() if line not in without.splitlines()]
    assert not new, f"{case}: {new[:3]!r}"


_USE = """
import torch
x = torch.arange(4.0).to({type!r})
assert x.add(1).cpu().tolist() == [1.0, 2.0, 3.0, 4.0]
assert x.device.type == {type!r}
print("used")
"""


def _require_explicit_import(dev: Device) -> None:
    if not (dev.descriptor.imports.before_torch or dev.descriptor.imports.after_torch):
        dev.unsupported("the descriptor names no module to import: torch brings the backend itself")


def _expect_used(done: Any) -> None:
    assert done.returncode == 0, why_ended(done)
    assert done.stdout.strip().endswith("used"), f"stdout: {done.stdout[-500:]!r}"


@check("registration/import_order", "REG-033", cases=("after_torch",), needs=("accelerator",))
def backend_loads_after_torch(dev: Device, case: str) -> None:
    """Imported after torch with autoload off, the backend works."""
    _require_explicit_import(dev)
    _expect_used(
        dev.python(
            _USE.format(type=dev.type),
            backend="load",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        )
    )


@check("registration/import_order", "REG-034", cases=("before_torch",), needs=("accelerator",))
def backend_loads_before_torch(dev: Device, case: str) -> None:
    """Imported before torch, the backend works just as well."""
    _require_explicit_import(dev)
    _expect_used(dev.python(_USE.format(type=dev.type), backend="before_torch"))


@check("registration/autoload", "REG-035", cases=("on",), needs=("autoload",))
def backend_autoloads(dev: Device, case: str) -> None:
    """`import torch` alone makes the device usable where autoload is on."""
    _expect_used(
        dev.python(
            _USE.format(type=dev.type),
            backend="none",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
        )
    )


@check("registration/autoload", "REG-036", cases=("off",), needs=("autoload",))
def autoload_can_be_switched_off(dev: Device, case: str) -> None:
    """With TORCH_DEVICE_BACKEND_AUTOLOAD=0 torch starts without the backend."""
    done = dev.python(
        f"import torch; print(hasattr(torch, {dev.type!r}))",
        backend="none",
        env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )
    assert done.returncode == 0, why_ended(done)
    assert done.stdout.strip() == "False", "the backend loaded although autoload is off"


@check("registration/autoload", "REG-037", cases=("then_import",), needs=("autoload",))
def import_after_autoload_is_harmless(dev: Device, case: str) -> None:
    """An explicit import after autoload neither fails nor registers twice."""
    _require_explicit_import(dev)
    _expect_used(
        dev.python(
            _USE.format(type=dev.type),
            backend="load",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
        )
    )


# ---- another backend -------------------------------------------------------------------------

_SECOND = """
import torch
for rename in (torch.utils.rename_privateuse1_backend, torch._C._rename_privateuse1_backend):
    try:
        rename("second")
    except RuntimeError as error:
        assert {type!r} in str(error), f"the error does not name the first backend: {{error}}"
    else:
        raise AssertionError(f"{{rename}} gave PrivateUse1 to a second backend without an error")
    assert torch._C._get_privateuse1_backend_name() == {type!r}
"""


@check("registration/second_backend:refused", "REG-045", needs=("privateuse1",))
def second_backend_is_refused(dev: Device) -> None:
    """Renaming PrivateUse1 again, in Python or in C++, raises, and this backend works on."""
    program = _SECOND + _USE
    _expect_used(dev.python(program.format(type=dev.type)))


_TAKEN = """
torch.utils.rename_privateuse1_backend("anotherdevice")
import atexit
atexit.register(lambda: print("name:", torch._C._get_privateuse1_backend_name()))
"""


@check("registration/second_backend:loaded", "REG-046", needs=("privateuse1",))
def backend_that_comes_second_says_so(dev: Device) -> None:
    """Loaded when PrivateUse1 has another name, the backend raises an error that names it."""
    _require_explicit_import(dev)
    if dev.descriptor.imports.before_torch:
        dev.unsupported("the backend is imported before torch, so no other one can be the first")
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = dev.python("print('loaded')", between=_TAKEN, env=off)
    assert "loaded" not in done.stdout, "the backend was loaded although the name was taken"
    assert done.returncode == 1, f"loading did not end in an exception: {why_ended(done)}"
    assert "name: anotherdevice" in done.stdout, "the first backend lost its name"
    assert "anotherdevice" in done.stderr, f"the error does not name the other: {why_ended(done)}"


# ---- leaving ---------------------------------------------------------------------------------

_BACKWARD = (
    "w = torch.ones(8, device=D, requires_grad=True)\n"
    "(w * 2).sum().backward()\n"
    "assert w.grad.cpu().tolist() == [2.0] * 8\n"
)
_REPEATED = {f"process {number}": _BACKWARD for number in range(5)}
_LEAVE_WITH_STREAMS = {
    "live_streams_and_events": (
        "s = torch.Stream(device=D); e = torch.Event(device=D)\n"
        "with s: x = torch.ones(8, device=D)\n"
        "e.record(s)\n"
        "waiting = torch.Stream(device=D); waiting.wait_event(e)\n"
    ),
    "work_queued": (
        "s = torch.Stream(device=D)\n"
        "with s:\n"
        "    x = torch.zeros(1 << 16, device=D)\n"
        "    for step in range(2000): x.fill_(step)\n"
        "y = torch.ones(1 << 16, device=D) * 2\n"
    ),
}
_LEAVE: dict[str, str] = {
    "live_tensors": (
        "import builtins\n"
        "builtins.keep = [torch.ones(1 << k, device=D) for k in range(12)]\n"
        "keep = [t + 1 for t in builtins.keep]\n"
        "class Cycle: pass\n"
        "c = Cycle(); c.me = c; c.tensor = torch.ones(3, device=D)\n"
    ),
    "at_exit_hook": (
        "import atexit\n"
        "x = torch.ones(8, device=D)\n"
        "def last():\n"
        "    assert (x + 1).cpu().tolist() == [2.0] * 8\n"
        "    print('hook ran')\n"
        "atexit.register(last)\n"
    ),
    "uncaught_exception": "x = torch.ones(8, device=D)\nraise KeyError('on purpose')\n",
    "own_status": "import sys; x = torch.ones(8, device=D); sys.exit(3)\n",
    "init": (
        "module = torch.get_device_module(D)\n"
        "for time in ('first', 'second'):\n"
        "    module.init()\n"
        "    assert module.is_initialized(), f'the {time} init() did not initialise the device'\n"
        "assert (torch.ones(8, device=D) + 1).cpu().tolist() == [2.0] * 8\n" + AT_ONCE
    ),
    **_LEAVE_WITH_STREAMS,
    **_REPEATED,
}


#: The exit status of each program without an exit hook.
_STATUS = {"live_tensors": 0, "uncaught_exception": 1, "own_status": 3}


@check("registration/exit", "REG-040", cases=_STATUS, needs=("accelerator",), deadline=180)
def process_exits_cleanly(dev: Device, case: str) -> None:
    """A process that used the device ends with its own exit status, whatever is still alive."""
    ends(dev, _LEAVE)[case].verify(status=_STATUS[case])


@check("registration/init", "REG-017", needs=("accelerator",), deadline=180)
def init_initialises_the_device(dev: Device) -> None:
    """is_initialized() is true after init() in a process that has not used the device."""
    ends(dev, _LEAVE)["init"].verify()


@check("registration/exit:at_exit_hook", "REG-044", needs=("accelerator",), deadline=180)
def exit_hooks_use_the_device(dev: Device) -> None:
    """A function that a program gave to atexit uses the device when the program exits."""
    end = ends(dev, _LEAVE)["at_exit_hook"]
    end.verify()
    assert "hook ran" in end.output, "the device was gone before the program's exit hooks ran"


@check(
    "registration/exit_streams",
    "REG-040",
    cases=tuple(_LEAVE_WITH_STREAMS),
    needs=("streams", "events"),
    deadline=180,
)
def process_exits_cleanly_with_streams(dev: Device, case: str) -> None:
    """A process ends cleanly with work still queued, and with live streams and events."""
    ends(dev, _LEAVE)[case].verify()


@check("registration/exit_repeated", "REG-041", needs=("accelerator",), deadline=180)
def process_exits_cleanly_every_time(dev: Device) -> None:
    """Five processes that ran backward, and so have autograd threads, all end cleanly."""
    for number in _REPEATED:
        ends(dev, _LEAVE)[number].verify()


#: Calls of the device module that need the device. What a backend lacks is left out.
_FIRST_USES = (
    "m.current_device()",
    "m.set_device(0)",
    "m.device(0).__enter__()",
    "m.synchronize()",
    "m.get_device_name()",
    "m.get_device_properties(0)",
    "m.get_device_capability()",
    "m.mem_get_info()",
    "m.Stream()",
    "m.current_stream()",
    "m.default_stream()",
    "m.get_rng_state()",
    "m.initial_seed()",
)
_FIRST_USE = (
    "m = torch.get_device_module(torch.device(D).type)\n"
    "torch.manual_seed(77)\n"
    "{call}\n"
    "print('FIRST', m.is_initialized(), torch.rand(4, device=D).tolist(), flush=True)\n" + AT_ONCE
)


def _printed_first(end: Ended) -> str:
    """What a program of _FIRST_USE printed."""
    end.verify()
    return end.output.rpartition("FIRST ")[2].strip()


@check("registration/first_use", "REG-047", needs=("accelerator", "fork", "generator"))
def the_first_call_initialises_the_device(dev: Device) -> None:
    """After a call that needs the device, it is initialised, and has the seed given before."""
    if not hasattr(dev.bare_module, "is_initialized"):
        dev.unsupported(f"torch.{dev.type} has no is_initialized")
    calls = [
        call
        for call in _FIRST_USES
        if hasattr(dev.bare_module, call.removeprefix("m.").partition("(")[0])
    ]
    found = ends(dev, {call: _FIRST_USE.format(call=call) for call in ["", *calls]})
    expected = _printed_first(found[""]).partition(" ")[2]
    wrong = {
        call: told for call in calls if (told := _printed_first(found[call])) != f"True {expected}"
    }
    assert not wrong, f"initialised, and drawn instead of {expected}: {wrong}"


_WITHOUT_DEVICE = """
import json, torch
D = {type!r}
m = torch.get_device_module(D)
torch.manual_seed(3)  # of every device there is
told = [
    m.is_available(),
    m.device_count(),
    torch.accelerator.is_available(),
    torch.accelerator.device_count(),
]
said = []
for use in {uses!r}:
    try:
        eval(use)
        said.append([use, "nothing", ""])
    except Exception as error:
        said.append([use, type(error).__name__, str(error)])
print("FOUND" + json.dumps([told, said, torch.ones(3).sum().item()]))
"""
#: What needs a device.
_USES = ("torch.ones(2, device=D)", "torch.ones(2).to(D)", "m.synchronize()", "m.current_device()")


@functools.cache
def _found_without_device(dev: Device) -> list[Any]:
    """What a fresh process finds where there is no device."""
    env = dev.environment("no_device_env")
    done = dev.python(_WITHOUT_DEVICE.format(type=dev.type, uses=_USES), env=env)
    assert done.returncode == 0, why_ended(done)
    found: list[Any] = json.loads(done.stdout.rpartition("FOUND")[2])
    return found


@check("registration/no_device:told", "REG-048", needs=("accelerator",))
def where_there_is_no_device_the_module_says_so(dev: Device) -> None:
    """Without a device none is available or counted; work on the CPU goes on."""
    told, _, total = _found_without_device(dev)
    assert told == [False, 0, False, 0], f"(module, its count, accelerator, its count): {told}"
    assert total == 3, f"torch.ones(3).sum() on the CPU is {total}"


@check("registration/no_device:raised", "REG-049", needs=("accelerator",))
def where_there_is_no_device_its_use_raises(dev: Device) -> None:
    """Without a device each use raises RuntimeError with a reason."""
    _, said, _ = _found_without_device(dev)
    for use, error, message in said:
        assert error in ("RuntimeError", "AcceleratorError"), f"{use} raises {error}: {message}"
        assert dev.type in message, f"{use} does not say what is missing: {message}"


_WORK = """
import torch
x = torch.randn(64, 64, device=D, requires_grad=True)
with torch.no_grad():
    y = torch.cat([x, x.t()]).sum(0).sort().values.to("cpu", copy=True)
(x @ x).relu().sum().backward()
assert x.grad.cpu().isfinite().all()
print("worked", flush=True)
"""


@check("registration/silent_use", "REG-043", needs=("accelerator",))
def work_writes_nothing_to_stdout(dev: Device) -> None:
    """A program that computes, copies and runs backward prints what it prints itself."""
    done = dev.python(f"D = {dev.type!r}\n{_WORK}")
    assert done.returncode == 0, why_ended(done)
    _, silent, _ = _after_import(dev, "load")
    printed = done.stdout.removeprefix(silent)
    assert printed == "worked\n", f"the backend wrote {printed.replace('worked', '')[:300]!r}"


#: Seconds in which helpers may notice that their process has ended.
_TIME_TO_LEAVE = 3.0


@check("registration/leaves_no_process", "REG-042", needs=("accelerator",))
def no_process_is_left_behind(dev: Device) -> None:
    """When a process that used the device has ended, so has everything it started."""
    if not os.path.isdir("/proc/self"):
        dev.unsupported("needs /proc to find processes")
    marker = f"CONFORMANCE_FAMILY={uuid.uuid4().hex}"
    name, _, value = marker.partition("=")
    done = dev.python(f"D = {dev.type!r}\n{_WORK}", env={name: value})
    assert done.returncode == 0, why_ended(done)
    end = time.monotonic() + _TIME_TO_LEAVE
    while (left := _processes_with(marker)) and time.monotonic() < end:
        time.sleep(0.02)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert not left, f"{len(left)} processes outlived the one that used the device"


def _processes_with(marker: str) -> list[int]:
    """The processes that inherited an environment variable; zombies have none any more."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/environ", "rb") as environment:
                if marker.encode() in environment.read().split(b"\0"):
                    found.append(int(folder.rpartition("/")[2]))
        except OSError:
            pass  # It has ended, or is somebody else's.
    return found
