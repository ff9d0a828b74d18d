# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in counting, choosing and describing devices."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from lies import BACKEND, Call, lie, plant


def _module() -> Any:
    return torch.get_device_module(BACKEND)


def _current() -> int:
    return torch.accelerator.current_device_index()


def _index(device: Any) -> int:
    return device if isinstance(device, int) else torch.device(device).index


def _indices(change: Callable[[int], int]) -> None:
    """Make torch.<type> choose another device than it was asked for."""
    module = _module()
    set_device: Callable[[int], None] = module.set_device
    module.set_device = lambda device: set_device(change(_index(device)))

    # The module is known at run time only.
    class Context(module.device):  # type: ignore[misc, name-defined]
        def __init__(self, device: Any) -> None:
            super().__init__(change(_index(device)))

    module.device = Context


# ---- counting ----------------------------------------------------------------------------------


@lie("DEV-001", "device/count:*", planted=True)
def devices_are_counted_per_thread() -> None:
    """The count is found once, in the thread that imports the backend; other threads see none."""
    cache = threading.local()
    cache.count = _module().device_count()
    _module().device_count = lambda: getattr(cache, "count", 0)


@lie("DEV-001", "device/count:*", planted=True)
def devices_in_use_are_not_counted() -> None:
    """The count is that of the devices without a context of this process."""
    module = _module()
    total = module.device_count()
    module.device_count = lambda: total - (1 if module.memory_allocated(0) else 0)


@lie("DEV-003", "device/out_of_range:* device/far_out_of_range:*", planted=True)
def indices_are_taken_modulo_the_count() -> None:
    """Device 2 of two devices is device 0."""
    count = _module().device_count()
    _indices(lambda index: index % count if index >= 0 else index)


@lie("DEV-003", "device/out_of_range:*", planted=True)
def a_refused_device_stays_current() -> None:
    """An index is refused after the current device was changed to the last one."""
    module = _module()
    set_device: Callable[[int], None] = module.set_device

    def change(device: Any) -> None:
        index, last = _index(device), module.device_count() - 1
        set_device(min(index, last))
        if index > last:
            raise RuntimeError(f"invalid device ordinal: {index}")

    module.set_device = change


@lie("DEV-004", "device/out_of_range_message")
def refusals_name_no_index(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A device that does not exist is an "invalid argument"."""
    try:
        return call(*args, **kwargs)
    except (RuntimeError, ValueError):
        raise RuntimeError("invalid argument") from None


@lie("DEV-005", "device/negative:*", planted=True)
def negative_indices_count_from_the_end() -> None:
    """Device -1 is the last one, as in a Python list."""
    count = _module().device_count()
    _indices(lambda index: index if index >= 0 else count + index)


# ---- the current device ------------------------------------------------------------------------


@lie("DEV-007", "device/set_device:*", planted=True)
def the_text_of_a_device_is_read_by_its_type() -> None:
    """set_device understands "type:1" as the type alone, and stays where it is."""
    module = _module()
    set_device: Callable[[Any], None] = module.set_device
    module.set_device = lambda device: None if isinstance(device, str) else set_device(device)


@lie("DEV-007", "device/set_device:*", planted=True)
def set_device_takes_integers() -> None:
    """set_device passes what it gets to C++, which wants an int."""
    module = _module()
    module.set_device = module._C.set_device


@lie("DEV-009", "device/context_exception:*", planted=True)
def contexts_restore_after_success_only() -> None:
    """A device context that is left by an exception keeps its device."""
    leave: Callable[..., None] = _module().device.__exit__

    def leave_if_well(self: Any, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            leave(self, kind, error, traceback)

    _module().device.__exit__ = leave_if_well


@lie("DEV-009", "device/context_nested:*", planted=True)
def contexts_return_to_the_first_device() -> None:
    """What a context restores is kept in one place, not one per level."""
    context = _module().device
    first: list[int] = []

    def enter(self: Any) -> None:
        first.append(_current())
        torch.accelerator.set_device_index(self.idx)

    def leave(self: Any, *error: Any) -> None:
        torch.accelerator.set_device_index(first[0])
        first.pop()

    context.__enter__, context.__exit__ = enter, leave


@lie("DEV-009", "device/context_reused:*", planted=True)
def contexts_remember_where_they_were_made() -> None:
    """A context restores the device that was current when it was made, not when it was entered."""
    module = _module()

    # The module is known at run time only.
    class Context(module.device):  # type: ignore[misc, name-defined]
        def __init__(self, device: Any) -> None:
            super().__init__(device)
            self.made_on = _current()

        def __exit__(self, *error: Any) -> None:
            torch.accelerator.set_device_index(self.made_on)

    module.device = Context


@lie("DEV-010", "device/context_single:*", planted=True)
def contexts_take_integers() -> None:
    """torch.<type>.device knows no torch.device and no text."""
    module = _module()

    # The module is known at run time only.
    class Context(module.device):  # type: ignore[misc, name-defined]
        def __init__(self, device: int) -> None:
            super().__init__(int(device))

    module.device = Context


@lie("DEV-011", "device/context_none:*", planted=True)
def no_device_is_device_0() -> None:
    """The context of None selects device 0."""
    context = torch.accelerator.device_index
    plant(torch.accelerator, "device_index", lambda index: context(index or 0))


@lie("DEV-012", "device/default_device:*", planted=True)
def replaced_factories_ignore_contexts() -> None:
    """The backend puts a function of its own in the place of a factory; contexts know the old."""
    torch.utils._device._device_constructors()  # as it stands when a context was used before
    arange = torch.arange

    @functools.wraps(arange)
    def with_device(*args: Any, **options: Any) -> torch.Tensor:
        return arange(*args, **{"device": "cpu", **options})

    plant(torch, "arange", with_device)


@lie("DEV-013", "device/guard:add device/guard:reduce")
def operators_keep_their_device(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator makes the device of its result current and leaves it so."""
    result = call(*args, **kwargs)
    if name in ("add.Tensor", "sum") and result.device.type == BACKEND:
        torch.accelerator.set_device_index(result.device.index)
    return result


@lie("DEV-013", "device/synchronize_other", planted=True)
def synchronising_selects() -> None:
    """synchronize(i) makes device i current before it waits."""
    module = _module()
    synchronize: Callable[..., None] = module.synchronize

    def select(device: Any = None) -> None:
        if device is not None:
            torch.accelerator.set_device_index(_index(device))
        synchronize(device)

    module.synchronize = select


@lie("DEV-013", "device/guard_error")
def errors_keep_their_device(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator that raises does not put the current device back."""
    try:
        return call(*args, **kwargs)
    except Exception:
        for arg in args:
            if isinstance(arg, torch.Tensor) and arg.device.type == BACKEND:
                torch.accelerator.set_device_index(arg.device.index)
        raise


@lie("DEV-013", "device/asked:*", planted=True)
def questions_select() -> None:
    """The memory of a device is asked for by making the device current."""
    ask: Callable[..., tuple[int, int]] = torch.accelerator.get_memory_info

    def select(device: Any = None) -> tuple[int, int]:
        if device is not None:
            torch.accelerator.set_device_index(_index(device))
        return ask(device)

    plant(torch.accelerator, "get_memory_info", select)


@lie("DEV-014", "device/indexless:*")
def no_index_is_index_0(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A device without an index is device 0, whichever is current."""
    where = kwargs.get("device")
    if where is not None and where.type == BACKEND and where.index is None:
        kwargs = {**kwargs, "device": torch.device(BACKEND, 0)}
    return call(*args, **kwargs)


@lie("DEV-015", "device/identity:index", planted=True)
def get_device_knows_one_kind_of_device() -> None:
    """Tensor.get_device() is -1 for all that is not CUDA."""
    get_device = torch.Tensor.get_device
    plant(torch.Tensor, "get_device", lambda self: get_device(self) if self.is_cuda else -1)


# ---- description -------------------------------------------------------------------------------


@lie("DEV-016", "device/description:*", planted=True)
def the_name_is_that_of_the_type() -> None:
    """get_device_name() is the device type, get_device_properties().name that of the product."""
    _module().get_device_name = lambda device=None: BACKEND


@lie("DEV-016 DEV-017", "device/description:* device/total_memory", planted=True)
def total_memory_is_in_megabytes() -> None:
    """The total memory of the properties is counted in megabytes, as a float."""
    module = _module()
    describe: Callable[..., Any] = module.get_device_properties

    def in_megabytes(device: Any = None) -> Any:
        found = describe(device)
        return SimpleNamespace(name=found.name, total_memory=found.total_memory / (1 << 20))

    module.get_device_properties = in_megabytes


@lie("DEV-018", "device/capability:*", planted=True)
def capability_is_known_for_the_current_device() -> None:
    """get_device_capability() of another device than the current one is empty."""
    query: Callable[..., Any] = torch.accelerator.get_device_capability

    def answer(device: Any = None) -> Any:
        found = query(device)
        here = device is None or _index(device) == _current()
        return found if here else {**found, "supported_dtypes": set()}

    plant(torch.accelerator, "get_device_capability", answer)


@lie("DEV-019", "device/capability_dtype:float64")
def float64_becomes_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """float64 is listed as supported, and what arrives on the device is float32."""
    wanted = kwargs.get("dtype") or (args[0].dtype if args and hasattr(args[0], "dtype") else None)
    if name == "_to_copy" and wanted == torch.float64 and kwargs.get("device") is not None:
        kwargs = {**kwargs, "dtype": torch.float32}
    return call(*args, **kwargs)


@lie("DEV-019", "device/capability_dtype:float64")
def float64_has_the_precision_of_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """float64 is listed as supported, and holds what float32 holds."""
    result = call(*args, **kwargs)
    if name == "_to_copy" and result.dtype == torch.float64 and result.device.type == BACKEND:
        return result.float().double()
    return result


@lie("DEV-020", "device/accelerator_parity:*", planted=True)
def the_module_keeps_a_device_of_its_own() -> None:
    """torch.<type> remembers what its own set_device was given; torch.accelerator is not asked."""
    module = _module()
    set_device: Callable[[Any], None] = module.set_device
    own = [module.current_device()]

    def remember(device: Any) -> None:
        set_device(device)
        own[0] = _index(device)

    module.set_device, module.current_device = remember, lambda: own[0]


@lie("DEV-020", "device/views:* device/views_thread:*", planted=True)
def the_modules_device_is_that_of_its_own_functions() -> None:
    """current_device() remembers what set_device() was given, and sees nothing else."""
    module = _module()
    set_device, seen = module.set_device, {"index": 0}

    def remember(device: Any) -> None:
        seen["index"] = _index(device)
        set_device(device)

    plant(module, "set_device", remember)
    plant(module, "current_device", lambda: seen["index"])


# ---- streams -----------------------------------------------------------------------------------


def _context(restores: Callable[[Any], bool], *, device: bool = True) -> None:
    """Let a context of a stream of the module restore only after some ends of its block."""
    module = _module()

    # The class is known at run time only.
    class Context(module.StreamContext):  # type: ignore[misc, name-defined]
        def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
            if restores(kind):
                current = _current()
                super().__exit__(kind, error, traceback)
                if not device:
                    module.set_device(current)

    plant(module, "StreamContext", Context)
    plant(module, "stream", Context)


@lie("DEV-021", "device/argument:set_per_process_memory_fraction", planted=True)
def a_limit_needs_an_index() -> None:
    """A memory limit is of device 1 where the device has no index."""
    limit: Callable[..., None] = _module().set_per_process_memory_fraction

    def set_limit(fraction: float, device: Any = None) -> None:
        indexed = isinstance(device, int) or torch.device(device or BACKEND).index is not None
        limit(fraction, device if indexed else 1)

    plant(_module(), "set_per_process_memory_fraction", set_limit)


@lie("STREAM-041", "stream/context:module_after_exception", planted=True)
def exceptions_keep_the_stream() -> None:
    """An exception leaves the stream of torch.<type>.stream(s) current."""
    _context(lambda kind: kind is None)


@lie("STREAM-042", "stream/context_device:module_after_exception", planted=True)
def streams_of_the_module_keep_the_device() -> None:
    """The end of torch.<type>.stream(s) restores the stream and not the device."""
    _context(lambda kind: True, device=False)


@lie("STREAM-058", "stream/priority:read_back", planted=True)
def every_stream_says_it_is_urgent() -> None:
    """The priority of a stream of the module is always the greatest."""
    stream = _module().Stream
    plant(stream, "priority", property(lambda self: stream.priority_range()[1]))


@lie("DEV-022", "device/argument_type:*", planted=True)
def the_cpu_is_device_0() -> None:
    """Functions of memory take a device of the CPU for device 0."""
    module = importlib.import_module(f"{_module().__name__}.memory")
    known: Callable[..., int] = module._get_device_index

    def index(device: Any, optional: bool = False) -> int:
        return 0 if torch.device("cpu") == device else known(device, optional)

    plant(module, "_get_device_index", index)
