# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in registering the device type and its module, and in loading them."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from lies import BACKEND, lie, plant


def _module() -> Any:
    return torch.get_device_module(BACKEND)


def _replaces_device(make: Callable[..., torch.device]) -> None:
    """Put a class in the place of torch.device, as backends do that translate device names."""
    original = torch.device

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

    class Device(metaclass=Kind):
        def __new__(cls, *args: Any, **named: Any) -> Any:
            return make(original, *args, **named)

    plant(torch, "device", Device)


# ---- the device type ---------------------------------------------------------------------------


@lie("REG-001", "registration/device_parsing:*", planted=True)
def devices_have_no_named_arguments() -> None:
    """torch.device is replaced by a class that takes its arguments by position."""

    def make(original: Any, device: Any, index: Any = None) -> Any:
        return original(device) if index is None else original(device, index)

    _replaces_device(make)


@lie("REG-001", "registration/device_parsing:pickle", planted=True)
def devices_are_not_what_pickle_finds() -> None:
    """torch.device is replaced by a class, and pickle does not find the type of a device there."""
    _replaces_device(lambda original, *args, **named: original(*args, **named))


@lie("REG-002", "registration/device_malformed:*", planted=True)
def indices_are_read_as_python_reads_numbers() -> None:
    """The text of a device is split at its colon, and the index read by int()."""

    def make(original: Any, device: Any, *args: Any, **named: Any) -> Any:
        if isinstance(device, str) and ":" in device:
            kind, index = device.split(":")
            return original(kind, int(index))
        return original(device, *args, **named)

    _replaces_device(make)


@lie("REG-002", "registration/device_malformed:*", planted=True)
def spaces_around_a_device_are_removed() -> None:
    """The text of a device is stripped before it is read."""

    def make(original: Any, device: Any, *args: Any, **named: Any) -> Any:
        return original(device.strip() if isinstance(device, str) else device, *args, **named)

    _replaces_device(make)


# ---- the module --------------------------------------------------------------------------------


@lie("REG-005", "registration/current_accelerator:device_index_only", planted=True)
def devices_are_text() -> None:
    """torch.device is replaced by a class that does not know what a bare index means."""

    def make(original: Any, device: Any, *args: Any, **named: Any) -> Any:
        if isinstance(device, int):
            raise TypeError(f"a device is expected, not {device}")
        return original(device, *args, **named)

    _replaces_device(make)


@lie("REG-010", "registration/module:importable", planted=True)
def the_module_is_there_twice() -> None:
    """`import torch.<type>` finds another copy of the module than the attribute."""
    twin = ModuleType(f"torch.{BACKEND}")
    twin.__dict__.update(vars(_module()))
    sys.modules[f"torch.{BACKEND}"] = twin


@lie(
    "REG-005 REG-011",
    "registration/current_accelerator:available registration/enumeration:is_available",
    planted=True,
)
def availability_is_a_number() -> None:
    """is_available() is the number of devices."""
    plant(_module(), "is_available", _module().device_count)


@lie("REG-011", "registration/enumeration:*", planted=True)
def set_device_returns_the_former_device() -> None:
    """set_device() returns the device that was current."""
    plant(_module(), "set_device", _module()._C.exchange_device)


@lie("REG-011", "registration/enumeration:*", planted=True)
def the_current_device_is_an_object() -> None:
    """current_device() is a torch.device."""
    current = _module().current_device
    plant(_module(), "current_device", lambda: torch.device(BACKEND, current()))


@lie("REG-012", "registration/streams:*", planted=True)
def streams_want_a_device() -> None:
    """current_stream() has to be told a device."""
    current = _module().current_stream
    plant(_module(), "current_stream", lambda device: current(device))


@lie("REG-012", "registration/streams:*", planted=True)
def there_is_no_event_class() -> None:
    """torch.<type>.Event is missing: events are torch.Event."""
    del _module().Event


@lie("REG-013", "registration/description:*", planted=True)
def names_want_a_device() -> None:
    """get_device_name() has to be told a device."""
    name = _module().get_device_name
    plant(_module(), "get_device_name", lambda device: name(device))


@lie("REG-014", "registration/memory:*", planted=True)
def memory_info_is_total_and_free() -> None:
    """mem_get_info() gives the total first."""
    info = _module().mem_get_info
    torch.empty(1, device=BACKEND)
    plant(_module(), "mem_get_info", lambda *args: info(*args)[::-1])


@lie("REG-014", "registration/memory:*", planted=True)
def statistics_are_nested() -> None:
    """memory_stats() gives nested dictionaries, not flat names."""
    plant(_module(), "memory_stats", _module().memory_stats_as_nested_dict)


@lie("REG-015", "registration/seeding:*", planted=True)
def bad_forks_are_an_attribute() -> None:
    """_is_in_bad_fork is a bool, not a function."""
    plant(_module(), "_is_in_bad_fork", False)


@lie("REG-015", "registration/seeding:*", planted=True)
def states_live_on_the_device() -> None:
    """get_rng_state() gives a list of integers, and set_rng_state() takes one."""
    module = _module()
    get, put = module.get_rng_state, module.set_rng_state
    plant(module, "get_rng_state", lambda *device: get(*device).tolist())
    plant(module, "set_rng_state", lambda s, *device: put(torch.tensor(s).byte(), *device))


@lie("REG-016", "registration/seeding_more:*", planted=True)
def default_generators_are_made_on_demand() -> None:
    """default_generators is empty until somebody asks for a generator by another way."""
    plant(_module(), "default_generators", ())


@lie("REG-017", "registration/lazy_call", planted=True)
def lazy_calls_wait_for_ever() -> None:
    """A call that is deferred after the device was initialised is never made."""
    plant(_module(), "_lazy_call", [].append)


@lie("REG-017", "registration/state:*", planted=True)
def initialising_twice_is_an_error() -> None:
    """init() raises when the device is initialised already."""
    init = _module().init

    def once() -> None:
        if _module().is_initialized():
            raise RuntimeError("the device is initialised already")
        init()

    plant(_module(), "init", once)


@lie("REG-018", "registration/mixed_precision:*", planted=True)
def autocast_dtypes_are_names() -> None:
    """get_amp_supported_dtype() gives the names of the dtypes."""
    plant(_module(), "get_amp_supported_dtype", lambda: ["float16", "bfloat16"])


@lie("REG-019", "registration/is_bf16_supported", planted=True)
def bfloat16_is_a_version() -> None:
    """is_bf16_supported() is the generation of the device that has it."""
    plant(_module(), "is_bf16_supported", lambda: 8)


# ---- generated methods -------------------------------------------------------------------------


@lie("REG-020", "registration/tensor_methods:*", planted=True)
def every_tensor_is_of_this_device() -> None:
    """Tensor.is_<type> is True for every tensor."""
    plant(torch.Tensor, f"is_{BACKEND}", property(lambda self: True))


@lie("REG-020", "registration/tensor_methods:*", planted=True)
def moving_a_tensor_ignores_the_index() -> None:
    """Tensor.<type>(1) moves to the current device."""
    plant(torch.Tensor, BACKEND, lambda self, device=None, **options: self.to(BACKEND, **options))


@lie("REG-021", "registration/module_methods:*", planted=True)
def modules_are_copied() -> None:
    """Module.<type>() returns a module on the device and leaves the original where it is."""
    plant(torch.nn.Module, BACKEND, lambda self, device=None: copy.deepcopy(self).to(BACKEND))


@lie("REG-021", "registration/module_methods:*", planted=True)
def moving_a_module_ignores_the_index() -> None:
    """Module.<type>(1) moves to the current device."""
    plant(torch.nn.Module, BACKEND, lambda self, device=None: self.to(BACKEND))


@lie("REG-021", "registration/module_methods:buffers", planted=True)
def moving_a_module_leaves_its_buffers() -> None:
    """Module.<type>() moves what has gradients."""

    def move(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
        for parameter in self.parameters():
            parameter.data = parameter.data.to(BACKEND)
        return self

    plant(torch.nn.Module, BACKEND, move)


@lie("REG-020", "registration/tensor_methods:gradient", planted=True)
def moving_a_tensor_detaches() -> None:
    """Tensor.<type>() moves the data, and forgets where it came from."""
    plant(
        torch.Tensor,
        BACKEND,
        lambda self, *args, **options: self.detach().to(BACKEND).requires_grad_(self.requires_grad),
    )


@lie("REG-021", "registration/module_methods:same_parameters", planted=True)
def moving_a_module_makes_new_parameters() -> None:
    """Module.<type>() puts new parameters in the place of those an optimizer may have."""
    move = torch.nn.Module.to

    def replace(self: torch.nn.Module, device: Any = BACKEND) -> torch.nn.Module:
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        try:
            return move(self, device)
        finally:
            torch.__future__.set_overwrite_module_params_on_conversion(False)

    plant(torch.nn.Module, BACKEND, replace)


@lie("REG-022", "registration/packed_sequence_methods:*", planted=True)
def packed_sequences_are_nowhere() -> None:
    """PackedSequence.is_<type> is False for all."""
    plant(torch.nn.utils.rnn.PackedSequence, f"is_{BACKEND}", property(lambda self: False))


@lie("REG-023", "registration/storage_methods:*", planted=True)
def storages_arrive_empty() -> None:
    """Storage.<type>() gives memory of the same size without the bytes."""

    def move(self: torch.UntypedStorage, *_: Any, **__: Any) -> torch.UntypedStorage:
        return torch.zeros(self.nbytes(), dtype=torch.uint8, device=BACKEND).untyped_storage()

    plant(torch.UntypedStorage, BACKEND, move)


# ---- loading -----------------------------------------------------------------------------------


@lie("REG-030", "registration/import_alone:*", planted=True)
def a_thread_is_started_at_import() -> None:
    """Loading the backend starts a thread that watches the device."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()


@lie("REG-030", "registration/import_alone:*", planted=True)
def a_process_is_started_at_import() -> None:
    """Loading the backend starts a compiler server."""
    subprocess.Popen(["sleep", "5"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@lie("REG-030", "registration/import_alone:*", planted=True)
def the_device_is_initialised_at_import() -> None:
    """Loading the backend initialises the device."""
    _module().init()


@lie("REG-031", "registration/import_silent:stdout", planted=True)
def loading_says_hello() -> None:
    """Loading the backend prints its version."""
    print(f"{BACKEND} backend 1.0")


@lie("REG-032", "registration/import_silent:stderr", planted=True)
def loading_complains() -> None:
    """Loading the backend warns of something that nobody can change."""
    print(f"{BACKEND}: no kernel cache, first launches will be slow", file=sys.stderr)


@lie("REG-036", "registration/autoload:off", planted=True)
def a_path_file_loads_the_backend() -> None:
    """A file of the package makes every Python load the backend (see sitecustomize.py)."""


@lie("REG-047", "registration/first_use", planted=True)
def waiting_initialises_nothing() -> None:
    """synchronize() goes to C++ at once, which initialises the half of the backend there."""
    module = torch.get_device_module(BACKEND)
    plant(module, "synchronize", lambda device=None: module._C.synchronize(0))


@lie("REG-048", "registration/no_device:told", planted=True)
def a_device_is_always_available() -> None:
    """is_available() says whether the library could be loaded."""
    plant(torch.get_device_module(BACKEND), "is_available", lambda: True)


@lie("REG-049", "registration/no_device:raised", planted=True)
def waiting_for_no_device_is_no_error() -> None:
    """synchronize() does nothing where there is no device."""
    module = torch.get_device_module(BACKEND)
    wait = module.synchronize

    def synchronize(device: Any = None) -> None:
        if module.is_available():
            wait(device)

    plant(module, "synchronize", synchronize)


@lie("REG-050", "registration/if_there:*", planted=True)
def no_memory_is_ever_used() -> None:
    """device_memory_used() is a constant."""
    plant(torch.get_device_module(BACKEND), "device_memory_used", lambda device=None: 1 << 20)
