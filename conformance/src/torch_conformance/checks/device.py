# SPDX-License-Identifier: BSD-3-Clause
"""Devices and guards: counting, bounds, the current device, contexts, properties, capability."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, in_thread, in_threads, raised, why_ended


def _current(dev: Device) -> int:
    return int(torch.accelerator.current_device_index())


# ---- counting and bounds ---------------------------------------------------------------------


def _counted_in_use(dev: Device) -> set[int]:
    in_use = [torch.empty(1, device=dev.device(index)) for index in range(dev.count)]
    return {dev.module.device_count() for _ in in_use * 5}


#: Ways to count devices, and all that they answer.
_COUNTS: dict[str, Callable[[Device], set[int]]] = {
    "module": lambda dev: {dev.module.device_count()},
    "accelerator": lambda dev: {torch.accelerator.device_count()},
    "stable": _counted_in_use,
    "from_thread": lambda dev: {
        in_thread(dev.module.device_count),
        in_thread(torch.accelerator.device_count),
    },
}


@check("device/count", "DEV-001", cases=_COUNTS, needs=("accelerator",))
def devices_are_counted(dev: Device, case: str) -> None:
    """Every way to count devices gives the same positive number, always."""
    assert _COUNTS[case](dev) == {dev.count}
    assert dev.count >= 1


@check("device/every_index:allocate", "DEV-002", needs=("accelerator",))
def every_counted_device_has_memory(dev: Device) -> None:
    """Each index below the count is a device on which tensors are made."""
    for index in range(dev.count):
        assert torch.arange(5.0, device=dev.device(index)).device == dev.device(index)


@check("device/every_index:values", "DEV-002", needs=("accelerator",))
def every_counted_device_computes(dev: Device) -> None:
    """Each index below the count is a device that computes."""
    for index in range(dev.count):
        x = torch.arange(5.0, device=dev.device(index))
        dev.assert_equal(x + 1, torch.arange(1.0, 6.0))


@check("device/every_index:index", "DEV-002", needs=("accelerator",))
def tensors_keep_the_index_of_their_device(dev: Device) -> None:
    """get_device() of a tensor, and of what is computed from it, is the index it was made with."""
    for index in range(dev.count):
        x = torch.arange(5.0, device=dev.device(index))
        assert x.get_device() == (x + 1).get_device() == index


def _use_context(dev: Device, index: int) -> None:
    with dev.module.device(index):
        torch.empty(1, device=dev.type)


#: Every public way to hand over a device index; each must refuse one that does not exist.
_BY_INDEX: dict[str, Callable[[Device, int], Any]] = {
    "empty": lambda dev, i: torch.empty(2, device=dev.device(i)),
    "empty_zero_size": lambda dev, i: torch.empty(0, device=dev.device(i)),
    "tensor": lambda dev, i: torch.tensor([1.0], device=dev.device(i)),
    "to": lambda dev, i: torch.ones(2).to(dev.device(i)),
    "set_device": lambda dev, i: dev.module.set_device(i),
    "accelerator_set_index": lambda dev, i: torch.accelerator.set_device_index(i),
    "context": _use_context,
    "properties": lambda dev, i: dev.module.get_device_properties(i),
    "synchronize": lambda dev, i: torch.accelerator.synchronize(i),
}
_BY_INDEX_NEEDS = {"accelerator_set_index": ("device_guard",), "synchronize": ("synchronize",)}
_BY_INDEX_STREAMS: dict[str, Callable[[Device, int], Any]] = {
    "stream": lambda dev, i: torch.Stream(device=dev.device(i)),
    "current_stream": lambda dev, i: torch.accelerator.current_stream(i),
}
_BY_INDEX_MEMORY: dict[str, Callable[[Device, int], Any]] = {
    "memory_stats": lambda dev, i: torch.accelerator.memory_stats(i),
    "reset_peak": lambda dev, i: torch.accelerator.reset_peak_memory_stats(i),
    "set_fraction": lambda dev, i: dev.module.set_per_process_memory_fraction(1.0, i),
    "get_fraction": lambda dev, i: dev.module.get_per_process_memory_fraction(i),
}
_BY_INDEX_MEMORY_NEEDS = dict.fromkeys(("set_fraction", "get_fraction"), "memory_limit")


def _refuses(dev: Device, call: Callable[[Device, int], Any], index: int) -> None:
    """`call` raises for `index`; the current device stays the same, and devices stay usable."""
    torch.empty(1, device=dev.device(0))
    before = _current(dev)
    error = raised(lambda: call(dev, index))
    assert not isinstance(error, (AttributeError, TypeError)), f"wrong kind of error: {error!r}"
    assert _current(dev) == before, "a refused index changed the current device"
    dev.assert_equal(torch.ones(2, device=dev.device(0)), torch.ones(2))


@check("device/out_of_range", "DEV-003", cases=_BY_INDEX, needs=("accelerator",))
def index_equal_to_the_count_is_refused(dev: Device, case: str) -> None:
    """The first index that does not exist raises; it is never an alias of another device."""
    dev.require(*_BY_INDEX_NEEDS.get(case, ()))
    _refuses(dev, _BY_INDEX[case], dev.count)


@check("device/out_of_range_streams", "DEV-003", cases=_BY_INDEX_STREAMS, needs=("streams",))
def index_equal_to_the_count_is_refused_by_streams(dev: Device, case: str) -> None:
    """Stream functions raise for the first index that does not exist."""
    _refuses(dev, _BY_INDEX_STREAMS[case], dev.count)


@check(
    "device/out_of_range_memory",
    "DEV-003",
    cases=_BY_INDEX_MEMORY,
    needs=("memory_stats",),
    case_needs=_BY_INDEX_MEMORY_NEEDS,
)
def index_equal_to_the_count_is_refused_by_memory(dev: Device, case: str) -> None:
    """Memory functions raise for the first index that does not exist."""
    torch.empty(1, device=dev.device(0))  # statistics of an unused allocator are empty, not errors
    _refuses(dev, _BY_INDEX_MEMORY[case], dev.count)


@check(
    "device/far_out_of_range",
    "DEV-003",
    cases=("empty", "to", "set_device", "context"),
    needs=("accelerator",),
)
def far_index_is_refused(dev: Device, case: str) -> None:
    """Index 100 raises as well; it is not taken modulo anything."""
    _refuses(dev, _BY_INDEX[case], 100)


@check("device/out_of_range_message", "DEV-004", needs=("accelerator",))
def refusal_names_the_index(dev: Device) -> None:
    """The error for a device that does not exist names the index."""
    error = raised(lambda: torch.empty(2, device=dev.device(100)))
    assert "100" in str(error), f"the message does not help: {error}"


def _set_device(dev: Device, index: int) -> int:
    dev.module.set_device(index)
    return _current(dev)


def _set_device_index(dev: Device, index: int) -> int:
    torch.accelerator.set_device_index(index)
    return _current(dev)


def _in_context(dev: Device, index: int) -> int:
    with dev.module.device(index):
        return _current(dev)


#: Ways to select a device; each returns the one that is current then.
_SELECTIONS: dict[str, Callable[[Device, int], int]] = {
    "set_device": _set_device,
    "accelerator": _set_device_index,
    "context": _in_context,
}


@check("device/negative", "DEV-005", cases=_SELECTIONS, needs=("accelerator",))
def negative_index_changes_nothing(dev: Device, case: str) -> None:
    """A negative index is a no-op or an error, but never selects a device."""
    for start in {0, dev.count - 1}:  # -1 might be the last one, or clamped to the first
        with torch.accelerator.device_index(start):
            try:
                within = _SELECTIONS[case](dev, -1)
            except (RuntimeError, ValueError, AssertionError):
                within = start  # refused
            assert (within, _current(dev)) == (start, start)


@check(
    "device/negative_memory",
    "DEV-005",
    cases=_BY_INDEX_MEMORY,
    needs=("memory_stats",),
    case_needs=_BY_INDEX_MEMORY_NEEDS,
)
def negative_index_has_no_memory(dev: Device, case: str) -> None:
    """Memory functions raise for index -2; -1 may stand for the current device."""
    _refuses(dev, _BY_INDEX_MEMORY[case], -2)


# ---- the current device ----------------------------------------------------------------------


@check("device/default_index:main_thread", "DEV-006", needs=("accelerator",))
def first_device_is_the_default(dev: Device) -> None:
    """A process starts on device 0."""
    done = dev.python(
        "import torch\nprint('index', torch.accelerator.current_device_index())\n"
        f"x = torch.empty(1, device={dev.type!r})\nprint('tensor', x.device.index)"
    )
    assert done.returncode == 0, why_ended(done)
    assert "index 0" in done.stdout
    assert "tensor 0" in done.stdout


@check("device/default_index:new_thread", "DEV-006", needs=("accelerator",))
def first_device_is_the_default_of_threads(dev: Device) -> None:
    """A new thread starts on device 0, wherever the thread that started it is."""
    with torch.accelerator.device_index(dev.count - 1):
        assert in_thread(lambda: _current(dev)) == 0


_FORMS: dict[str, Callable[[Device, int], Any]] = {
    "integer": lambda dev, i: i,
    "string": lambda dev, i: f"{dev.type}:{i}",
    "device": lambda dev, i: dev.device(i),
}


@check("device/set_device", "DEV-007", cases=_FORMS, needs=("accelerator",))
def set_device_takes_every_form(dev: Device, case: str) -> None:
    """set_device accepts an int, a string and a torch.device, in both modules."""
    with torch.accelerator.device_index(0):
        for setter in (dev.module.set_device, torch.accelerator.set_device_index):
            for index in (*range(dev.count), 0):
                setter(_FORMS[case](dev, index))
                assert dev.module.current_device() == index
                assert torch.accelerator.current_device_index() == index


def _fraction_set(module: Any, *device: Any) -> Any:
    """The share of the first device's memory that it may use, after it was set and set back."""
    module.set_per_process_memory_fraction(0.75, *device)
    try:
        return module.get_per_process_memory_fraction(0)
    finally:
        module.set_per_process_memory_fraction(1.0, 0)


def _peak_reset(module: Any, *device: Any) -> Any:
    torch.empty(1 << 20, device=torch.accelerator.current_accelerator())  # and dies at once
    module.reset_peak_memory_stats(*device)
    return module.max_memory_allocated(0) == module.memory_allocated(0)


#: Functions of torch.<type> that take a device or nothing, and what they need.
_OPTIONAL: dict[str, tuple[str, Callable[..., Any]]] = {
    "get_device_name": ("accelerator", lambda m, *d: m.get_device_name(*d)),
    "get_device_properties": ("accelerator", lambda m, *d: str(m.get_device_properties(*d))),
    "mem_get_info": ("memory_info", lambda m, *d: m.mem_get_info(*d)[1]),
    "memory_allocated": ("memory_stats", lambda m, *d: m.memory_allocated(*d)),
    "memory_reserved": ("memory_stats", lambda m, *d: m.memory_reserved(*d)),
    "memory_stats": ("memory_stats", lambda m, *d: dict(m.memory_stats(*d))),
    "memory_summary": ("memory_stats", lambda m, *d: m.memory_summary(*d)),
    "reset_peak_memory_stats": ("memory_stats", _peak_reset),
    "set_per_process_memory_fraction": ("memory_limit", _fraction_set),
}
_OPTIONAL_NEEDS = {name: need for name, (need, _) in _OPTIONAL.items() if need != "accelerator"}


@check(
    "device/argument",
    "DEV-021",
    cases=_OPTIONAL,
    needs=("accelerator",),
    case_needs=_OPTIONAL_NEEDS,
)
def functions_take_every_form_of_a_device(dev: Device, case: str) -> None:
    """Nothing, an int, a string and a torch.device, with and without an index, are one device."""
    _, ask = _OPTIONAL[case]
    with torch.accelerator.device_index(0):
        kept = torch.ones(1 << 16, device=dev.device(0))
        expected = ask(dev.module, 0)
        forms = [(), (None,), (dev.type,), (torch.device(dev.type),)]
        forms += [(form(dev, 0),) for form in _FORMS.values()]
        for form in forms:
            found = ask(dev.module, *form)
            assert found == expected, f"{found!r} of {form!r}, {expected!r} of (0,)"
        del kept


@check(
    "device/argument_type",
    "DEV-022",
    cases=_OPTIONAL,
    needs=("accelerator",),
    case_needs=_OPTIONAL_NEEDS,
)
def functions_refuse_devices_of_other_types(dev: Device, case: str) -> None:
    """A device of the CPU, by its name or as a torch.device, raises and changes nothing."""
    _, ask = _OPTIONAL[case]
    before = _current(dev)
    for other in ("cpu", torch.device("cpu"), torch.device("cpu", 0)):
        error = raised(partial(ask, dev.module, other))
        assert isinstance(error, (ValueError, RuntimeError)), f"{other!r}: {error!r}"
    assert _current(dev) == before, "the current device has changed"


@check("device/per_thread:set_elsewhere", "DEV-008", needs=("multi_device", "threads"))
def another_thread_does_not_move_this_one(dev: Device) -> None:
    """Setting the device in another thread leaves the current device of this one."""
    before = _current(dev)
    other = (before + 1) % dev.count
    assert in_thread(lambda: _set_device_index(dev, other)) == other
    assert _current(dev) == before, "another thread changed this thread's current device"


_LOOKS: dict[str, Callable[[Device], int]] = {
    "eight_threads": _current,
    "allocation": lambda dev: torch.empty(3, device=dev.type).get_device(),
}


@check("device/per_thread", "DEV-008", cases=_LOOKS, needs=("multi_device", "threads"))
def current_device_belongs_to_the_thread(dev: Device, case: str) -> None:
    """Each of eight threads has its own current device, and allocates on it."""
    everyone = threading.Barrier(8)

    def worker(index: int) -> bool:
        torch.accelerator.set_device_index(index)
        everyone.wait(30)  # all have chosen before any looks
        here = _LOOKS[case](dev)
        everyone.wait(30)
        return here == _current(dev) == index

    indices = [number % dev.count for number in range(8)]
    seen = in_threads([partial(worker, index) for index in indices])
    assert all(seen), (
        f"threads that lost their device: {[i for i, ok in enumerate(seen) if not ok]}"
    )


# ---- contexts --------------------------------------------------------------------------------

_CONTEXTS: dict[str, Callable[[Device, int], AbstractContextManager[Any]]] = {
    "index": lambda dev, i: dev.module.device(i),
    "device": lambda dev, i: dev.module.device(dev.device(i)),
    "string": lambda dev, i: dev.module.device(f"{dev.type}:{i}"),
    "accelerator": lambda dev, i: torch.accelerator.device_index(i),
}


@check("device/context", "DEV-009", cases=_CONTEXTS, needs=("multi_device",))
def context_selects_and_restores(dev: Device, case: str) -> None:
    """A device context selects its device and puts the former one back."""
    make = _CONTEXTS[case]
    with torch.accelerator.device_index(0):
        with make(dev, 1):
            assert _current(dev) == 1
            assert torch.empty(1, device=dev.type).get_device() == 1
        assert _current(dev) == 0


@check("device/context_exception", "DEV-009", cases=_CONTEXTS, needs=("multi_device",))
def context_restores_after_an_exception(dev: Device, case: str) -> None:
    """A device context lets an exception pass and still puts the former device back."""
    make = _CONTEXTS[case]
    with torch.accelerator.device_index(0):
        try:
            with make(dev, 1):
                raise KeyError("on purpose")
        except KeyError:
            assert _current(dev) == 0
        else:
            raise AssertionError("the context swallowed the exception")


@check("device/context_nested", "DEV-009", cases=_CONTEXTS, needs=("multi_device",))
def contexts_nest(dev: Device, case: str) -> None:
    """Nested device contexts restore level by level, also around set_device."""
    make = _CONTEXTS[case]
    with torch.accelerator.device_index(0):
        with make(dev, 1):
            with make(dev, 0):
                assert _current(dev) == 0
            assert _current(dev) == 1
            with make(dev, 1):
                torch.accelerator.set_device_index(0)
            assert _current(dev) == 1
        assert _current(dev) == 0


@check("device/context_reused", "DEV-009", cases=_CONTEXTS, needs=("multi_device",))
def contexts_are_entered_where_they_are(dev: Device, case: str) -> None:
    """A context, entered again and again, restores what was current when it was entered."""
    context = _CONTEXTS[case](dev, 0)
    for outer in (1, 0, 1):
        with torch.accelerator.device_index(outer):
            with context:
                assert _current(dev) == 0
            assert _current(dev) == outer


@check("device/context_single", "DEV-010", cases=_CONTEXTS, needs=("accelerator",))
def context_takes_every_form(dev: Device, case: str) -> None:
    """A device context takes an int, a torch.device and a string, on a single device too."""
    with _CONTEXTS[case](dev, 0):
        assert _current(dev) == 0
        assert torch.ones(2, device=dev.type).device == dev.device(0)


@check("device/context_none", "DEV-011", cases=("accelerator",), needs=("accelerator",))
def context_of_none_changes_nothing(dev: Device, case: str) -> None:
    """torch.accelerator.device_index(None) keeps the current device."""
    start = dev.count - 1
    with torch.accelerator.device_index(start):
        with torch.accelerator.device_index(None):
            assert _current(dev) == start
        assert _current(dev) == start


#: Ways to make a tensor without saying where.
_FACTORIES: dict[str, Callable[[], torch.Tensor]] = {
    "empty": lambda: torch.empty(2),
    "ones": lambda: torch.ones(2),
    "full": lambda: torch.full((2,), 3.0),
    "arange": lambda: torch.arange(3),
    "linspace": lambda: torch.linspace(0, 1, 3),
    "eye": lambda: torch.eye(2),
    "rand": lambda: torch.rand(2),
    "randn": lambda: torch.randn(2),
    "tensor": lambda: torch.tensor([1.0, 2.0]),
    "module": lambda: torch.nn.Linear(2, 2).weight,
}


def _placed(where: str) -> None:
    """Every factory allocates on the device type `where`."""
    found = {name: make().device.type for name, make in _FACTORIES.items()}
    assert set(found.values()) == {where}, f"not on {where}: {found}"


@contextmanager
def _default_kept() -> Iterator[None]:
    """The default device is the same after the block."""
    before = torch.get_default_device()
    yield
    assert torch.get_default_device() == before
    assert torch.ones(2).device == before


_DEFAULTS: dict[str, Callable[[Device], torch.device]] = {
    "context": lambda dev: torch.device(dev.type),
    "indexed_context": lambda dev: torch.device(dev.type, 0),
}


@check("device/default_device", "DEV-012", cases=_DEFAULTS)
def factories_follow_the_default_device(dev: Device, case: str) -> None:
    """torch.device as a context chooses where factories allocate; an inner one, again."""
    with _default_kept(), _DEFAULTS[case](dev):
        _placed(dev.type)
        with torch.device("cpu"):
            _placed("cpu")
        assert torch.ones(2, device="cpu").device.type == "cpu"


@check("device/default_device:set_default", "DEV-012")
def the_default_device_can_be_set(dev: Device) -> None:
    """torch.set_default_device chooses where factories allocate."""
    with _default_kept():
        try:
            torch.set_default_device(dev.type)
            _placed(dev.type)
        finally:
            torch.set_default_device(None)


# ---- guards ----------------------------------------------------------------------------------


def _train(x: torch.Tensor) -> None:
    leaf = x.detach().clone().requires_grad_()
    (leaf * leaf).sum().backward()


#: Work on a tensor of a device that is not current; what it returns as a tensor is there, too.
_ELSEWHERE: dict[str, Callable[[torch.Tensor], Any]] = {
    "fill": lambda x: x.fill_(3),
    "add": lambda x: x + x,
    "factory_like": lambda x: torch.ones_like(x),
    "new_empty": lambda x: x.new_empty(7),
    "view": lambda x: x.reshape(2, 4)[1],
    "item": lambda x: x[3].item(),
    "to_cpu": lambda x: x.cpu().tolist(),
    "from_cpu": lambda x: x.copy_(torch.ones(8)),
    "cast": lambda x: x.to(torch.int32),
    "reduce": lambda x: x.sum(),
    "matmul": lambda x: x.reshape(2, 4) @ x.reshape(4, 2),
    "printing": lambda x: repr(x),
    "backward": _train,
    "free": lambda x: x.clone(),
}


@check(
    "device/guard",
    "DEV-013",
    cases=_ELSEWHERE,
    needs=("multi_device", "device_guard"),
    case_needs={"printing": "float64"},
)
def operators_leave_the_current_device_alone(dev: Device, case: str) -> None:
    """An operator runs on its operands' device and leaves the current device as it was."""
    with torch.accelerator.device_index(0):
        x = torch.ones(8, device=dev.device(1))
        result = _ELSEWHERE[case](x)
        assert _current(dev) == 0, "the operator changed the current device"
        if isinstance(result, torch.Tensor):
            assert result.device == dev.device(1), f"the result is on {result.device}"


@check("device/guard_values", "DEV-013", needs=("multi_device", "device_guard"))
def operators_compute_on_the_operands_device(dev: Device) -> None:
    """Work on two devices in turn, neither of them made current, gives each its own values."""
    with torch.accelerator.device_index(0):
        xs = [
            torch.full((16,), float(index), device=dev.device(index)) for index in range(dev.count)
        ]
        for _ in range(3):
            for x in xs:
                x.add_(1)
        for index, x in enumerate(xs):
            dev.assert_equal(x, torch.full((16,), index + 3.0))


@check("device/guard_error", "DEV-013", needs=("multi_device", "device_guard"))
def failed_operator_leaves_the_current_device_alone(dev: Device) -> None:
    """An operator that raises on another device leaves the current device as it was."""
    with torch.accelerator.device_index(0):
        x = torch.ones(8, device=dev.device(1))
        raised(lambda: x.reshape(3, 5))
        raised(lambda: x + torch.ones(3, device=dev.device(1)))
        assert _current(dev) == 0


#: Tensors of a device that is given without an index.
_INDEXLESS: dict[str, Callable[[Device], torch.Tensor]] = {
    "factory": lambda dev: torch.empty(2, device=dev.type),
    "to": lambda dev: torch.ones(2).to(dev.type),
    "to_from_other": lambda dev: torch.ones(2, device=dev.device(0)).to(dev.type),
    "empty_like": lambda dev: torch.empty_like(torch.ones(2), device=dev.type),
    "cast": lambda dev: torch.ones(2).to(dev.type, torch.float16),
}


@check(
    "device/indexless",
    "DEV-014",
    cases=_INDEXLESS,
    needs=("multi_device",),
    case_needs={"cast": "float16"},
)
def device_without_index_is_the_current_one(dev: Device, case: str) -> None:
    """A device without an index means the current one."""
    with torch.accelerator.device_index(1):
        x = _INDEXLESS[case](dev)
        assert x.device == dev.device(1), f"expected index 1, got {x.device}"


def _recorded(dev: Device) -> torch.device:
    """The device of an event that the current stream has recorded."""
    event = torch.Event(device=dev.type)
    event.record()
    return event.device


#: Objects of a device that is given without an index: their devices.
_INDEXLESS_OBJECTS: dict[str, Callable[[Device], torch.device]] = {
    "stream": lambda dev: torch.Stream(device=dev.type).device,
    "stream_of_the_module": lambda dev: dev.module.Stream().device,
    "current_stream": lambda dev: torch.accelerator.current_stream().device,
    "current_stream_of_the_module": lambda dev: dev.module.current_stream().device,
    "event": _recorded,
    "generator": lambda dev: torch.Generator(dev.type).device,
}


@check(
    "device/indexless_objects",
    "DEV-014",
    cases=_INDEXLESS_OBJECTS,
    needs=("multi_device", "accelerator"),
    case_needs={
        **dict.fromkeys(_INDEXLESS_OBJECTS, "streams"),
        "event": "events",
        "generator": "generator",
    },
)
def objects_without_index_are_of_the_current_device(dev: Device, case: str) -> None:
    """A stream, event or generator of a device without an index is of the current device."""
    for index in (1, 0):
        with torch.accelerator.device_index(index):
            found = _INDEXLESS_OBJECTS[case](dev)
            assert found == dev.device(index), f"expected index {index}, got {found}"


@check("device/identity:index", "DEV-015")
def the_device_of_a_tensor_has_type_and_index(dev: Device) -> None:
    """A tensor's device has the type and the index of the device it was made on."""
    x = torch.ones(3, device=dev.device(0))
    assert x.device.type == dev.type
    if dev.is_accelerator:
        assert x.device.index == 0 == x.get_device()


#: Ways to get the device of a tensor once more.
_SAME_DEVICE: dict[str, Callable[[Device, torch.device], torch.device]] = {
    "equality": lambda dev, _: torch.ones(1, device=dev.device(0)).device,
    "hash": lambda dev, own: torch.empty(1, device=own).device,
    "text": lambda dev, own: torch.device(str(own)),
    "pickle": lambda dev, own: pickle.loads(pickle.dumps(own)),
}


@check("device/identity", "DEV-015", cases=_SAME_DEVICE)
def tensor_device_is_a_value(dev: Device, case: str) -> None:
    """The same device, asked for again, is equal, has the same hash, and differs from others."""
    own = torch.ones(3, device=dev.device(0)).device
    again = _SAME_DEVICE[case](dev, own)
    assert again == own
    assert hash(again) == hash(own)
    assert again != torch.device("meta")


@check("device/identity:as_argument", "DEV-015")
def tensor_device_is_an_argument(dev: Device) -> None:
    """A tensor's device is taken where a device is asked for."""
    own = torch.ones(3, device=dev.device(0)).device
    dev.assert_equal(torch.ones(3, device=own), torch.ones(3))


@check("device/many_contexts", "DEV-009", needs=("multi_device",))
def thousand_context_switches_keep_the_device(dev: Device) -> None:
    """A thousand switches back and forth end on the device they began with."""
    with torch.accelerator.device_index(0):
        for step in range(1000):
            with dev.module.device(step % dev.count):
                pass
        assert _current(dev) == 0


# ---- description -----------------------------------------------------------------------------


@check("device/description:name", "DEV-016", needs=("accelerator",))
def devices_have_a_name(dev: Device) -> None:
    """get_device_name is a text that is not blank, for every device."""
    for index in range(dev.count):
        name = dev.module.get_device_name(index)
        assert isinstance(name, str) and name.strip()


#: Ways to ask for a name besides get_device_name(int), and all that they answer.
_NAMES: dict[str, Callable[[Device, int], set[str]]] = {
    "name_of_every_form": lambda dev, i: {
        dev.module.get_device_name(form(dev, i)) for form in _FORMS.values()
    },
    "properties_name": lambda dev, i: {dev.module.get_device_properties(i).name},
}


@check("device/description", "DEV-016", cases=_NAMES, needs=("accelerator",))
def devices_have_one_name(dev: Device, case: str) -> None:
    """get_device_name of an int, a string and a torch.device, and the properties, agree."""
    for index in range(dev.count):
        assert _NAMES[case](dev, index) == {dev.module.get_device_name(index)}


@check("device/description:total_memory", "DEV-016", needs=("accelerator",))
def properties_have_the_total_memory(dev: Device) -> None:
    """The total memory in the properties is a positive int."""
    for index in range(dev.count):
        total = dev.module.get_device_properties(index).total_memory
        assert isinstance(total, int) and total > 0


@check("device/description:capability", "DEV-016", needs=("accelerator",))
def devices_have_a_capability(dev: Device) -> None:
    """get_device_capability answers for every device, and always the same."""
    for index in range(dev.count):
        first, second = (dev.module.get_device_capability(index) for _ in range(2))
        assert first == second


@check("device/description:repr", "DEV-016", needs=("accelerator",))
def properties_can_be_printed(dev: Device) -> None:
    """repr() of the properties is not blank."""
    for index in range(dev.count):
        assert repr(dev.module.get_device_properties(index)).strip()


@check("device/total_memory", "DEV-017", needs=("memory_info",))
def properties_and_memory_info_agree(dev: Device) -> None:
    """The total memory in the properties is the one of get_memory_info."""
    for index in range(dev.count):
        total = torch.accelerator.get_memory_info(index)[1]
        assert dev.module.get_device_properties(index).total_memory == total


def _listed(index: int) -> list[torch.dtype]:
    """The data types that get_device_capability lists, of which there is one at least."""
    dtypes = torch.accelerator.get_device_capability(index)["supported_dtypes"]
    assert dtypes and all(isinstance(dtype, torch.dtype) for dtype in dtypes)
    return list(dtypes)


@check("device/capability:keys", "DEV-018", needs=("capability_query",))
def capability_query_answers(dev: Device) -> None:
    """get_device_capability names the supported dtypes of the first device."""
    _listed(0)


@check("device/capability:holds_float32", "DEV-018", needs=("capability_query",))
def capability_query_names_float32(dev: Device) -> None:
    """float32 is among the supported dtypes."""
    assert torch.float32 in _listed(0)


@check("device/capability:every_device", "DEV-018", needs=("capability_query",))
def capability_query_answers_for_every_device(dev: Device) -> None:
    """get_device_capability names the supported dtypes of each device."""
    for index in range(dev.count):
        _listed(index)


def _utmost(dtype: torch.dtype) -> torch.Tensor:
    """Values that no smaller or coarser data type holds."""
    if dtype is torch.bool:
        return torch.tensor([True])
    if dtype.is_floating_point or dtype.is_complex:
        info = torch.finfo(dtype)
        return torch.tensor([1 + info.eps, info.max, info.smallest_normal], dtype=dtype)
    limits = torch.iinfo(dtype)
    return torch.tensor([limits.min, limits.max, limits.max - 2], dtype=dtype)


@check(
    "device/capability_dtype",
    "DEV-019",
    dtypes=(
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "complex64",
        "complex128",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
    ),
    needs=("capability_query",),
)
def capability_query_tells_the_truth(dev: Device, dtype: torch.dtype) -> None:
    """A dtype that is listed can be allocated, filled, cast and read back; others are refused."""
    listed = dtype in torch.accelerator.get_device_capability(0)["supported_dtypes"]
    cpu = torch.tensor([0, 1, 1, 0, 1]).to(dtype)
    exact = torch.cat([cpu, _utmost(dtype)])
    if not listed:
        error = raised(lambda: cpu.to(dev.device()) + 1)
        assert isinstance(error, (RuntimeError, TypeError))
        return
    x = exact.to(dev.device())
    assert x.dtype is dtype, f"became {x.dtype}"
    assert x.element_size() == cpu.element_size()
    dev.assert_equal(x, exact)
    dev.assert_equal(torch.ones(5, device=dev.device()).to(dtype), torch.ones(5).to(dtype))
    dev.assert_equal(torch.full((3,), 1, dtype=dtype, device=dev.device()), torch.ones(3).to(dtype))


_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")


@check("device/capability_float8", "DEV-019", cases=_FLOAT8, needs=("capability_query",))
def capability_query_tells_the_truth_of_float8(dev: Device, case: str) -> None:
    """A float8 type is listed if, and only if, conversions to it and back are those of the CPU."""
    dtype: torch.dtype = getattr(torch, case)
    values = torch.tensor([0.25, 1.0, 2.0, 5.0, 64.0])

    def converts() -> bool:
        x = values.to(dev.device()).to(dtype)
        exact = x.cpu().view(torch.uint8).equal(values.to(dtype).view(torch.uint8))
        return exact and x.float().cpu().equal(values.to(dtype).float())

    listed = dtype in torch.accelerator.get_device_capability(0)["supported_dtypes"]
    if listed:
        assert converts(), "it is listed, and conversions give other bits than those of the CPU"
        return
    with suppress(RuntimeError, TypeError):
        assert not converts(), "it is not listed, but conversions are right"


@check("device/capability_bytes", "DEV-019", needs=("capability_query",))
def bytes_of_every_listed_dtype_arrive(dev: Device) -> None:
    """Bytes of each dtype that is listed, narrow and quantized ones too, go there and come back."""
    pattern = torch.tensor([0, 1] * 8, dtype=torch.uint8)
    for dtype in _listed(0):
        x = pattern.view(dtype).to(dev.device())
        assert x.dtype is dtype, f"{dtype} became {x.dtype}"
        back = x.cpu().view(torch.uint8)
        assert torch.equal(back, pattern), f"bytes of {dtype} come back as {back.tolist()}"


#: What both modules tell: by torch.accelerator, and by the module of the device type.
_PARITY: dict[str, Callable[[Device], tuple[Any, Any]]] = {
    "count": lambda dev: (torch.accelerator.device_count(), dev.module.device_count()),
    "current": lambda dev: (_current(dev), dev.module.current_device()),
    "available": lambda dev: (torch.accelerator.is_available(), dev.module.is_available()),
}


@check("device/accelerator_parity", "DEV-020", cases=_PARITY, needs=("accelerator",))
def module_and_accelerator_agree(dev: Device, case: str) -> None:
    """torch.<type> and torch.accelerator are two views of the same state."""
    with torch.accelerator.device_index(dev.count - 1):
        by_accelerator, by_module = _PARITY[case](dev)
        assert by_accelerator == by_module
        assert _current(dev) == dev.count - 1


@check("device/accelerator_parity:stream", "DEV-020", needs=("accelerator",))
def module_and_accelerator_agree_on_the_stream(dev: Device) -> None:
    """The current stream is the same by torch.<type> and torch.accelerator."""
    dev.require("streams")
    last = dev.count - 1
    with torch.accelerator.device_index(last):
        assert torch.accelerator.current_stream() == dev.module.current_stream()
        assert torch.accelerator.current_stream(last) == dev.module.current_stream(last)


@check("device/accelerator_parity:synchronize", "DEV-020", needs=("accelerator",))
def every_form_of_synchronize_keeps_the_device(dev: Device) -> None:
    """torch.accelerator.synchronize takes nothing, an int and a torch.device."""
    dev.require("synchronize")
    last = dev.count - 1
    with torch.accelerator.device_index(last):
        torch.accelerator.synchronize()
        torch.accelerator.synchronize(last)
        torch.accelerator.synchronize(dev.device(last))
        assert _current(dev) == last


def _views(dev: Device) -> tuple[list[Any], list[Any]]:
    """The current device, and the current stream of every device, by both modules."""
    devices = range(dev.count)
    by_module = [dev.module.current_device(), dev.module.current_stream()]
    by_accelerator = [_current(dev), torch.accelerator.current_stream()]
    by_module += [dev.module.current_stream(i) for i in devices]
    by_accelerator += [torch.accelerator.current_stream(i) for i in devices]
    return by_module, by_accelerator


@contextmanager
def _set_for_a_while(setter: Callable[[Any], Any], value: Any, former: Any) -> Iterator[None]:
    setter(value)
    try:
        yield
    finally:
        setter(former)


@contextmanager
def _stream_set_for_a_while(
    dev: Device, setter: Callable[[Any], Any], stream: torch.Stream
) -> Iterator[None]:
    """Setting a stream makes its device current, too: both are restored."""
    device = _current(dev)
    former = torch.accelerator.current_stream(stream.device)
    try:
        with _set_for_a_while(setter, stream, former):
            yield
    finally:
        torch.accelerator.set_device_index(device)


#: Ways to change what is current on this thread, with a stream of a device.
_CHANGES: dict[str, Callable[[Device, torch.Stream], AbstractContextManager[Any]]] = {
    "set_device": lambda dev, s: _set_for_a_while(
        dev.module.set_device, s.device_index, _current(dev)
    ),
    "set_device_index": lambda dev, s: _set_for_a_while(
        torch.accelerator.set_device_index, s.device_index, _current(dev)
    ),
    "device_context": lambda dev, s: dev.module.device(s.device_index),
    "device_index_context": lambda dev, s: torch.accelerator.device_index(s.device_index),
    "stream_context": lambda dev, s: s,
    "module_stream_context": lambda dev, s: dev.module.stream(s),
    "set_stream": lambda dev, s: _stream_set_for_a_while(dev, torch.accelerator.set_stream, s),
    "module_set_stream": lambda dev, s: _stream_set_for_a_while(dev, dev.module.set_stream, s),
}


def _verify_views(dev: Device, case: str, index: int) -> None:
    """Both modules see the same before, within and after a change, also by an exception."""
    before = _views(dev)
    assert before[0] == before[1], f"before: {before}"
    for leaves_by_error in (False, True):
        with suppress(KeyError), _CHANGES[case](dev, dev.stream(index)):
            within = _views(dev)
            assert within[0] == within[1], f"within: {within}"
            assert within[0][0] == index, f"device {within[0][0]} is current, not {index}"
            if leaves_by_error:
                raise KeyError("on purpose")
        after = _views(dev)
        assert after == before, f"after: {after}, before: {before}"


@check("device/views", "DEV-020", cases=_CHANGES, needs=("streams",))
def both_modules_see_every_change(dev: Device, case: str) -> None:
    """However device or stream are changed, torch.<type> and torch.accelerator report the same."""
    for index in {0, dev.count - 1}:
        _verify_views(dev, case, index)


@check("device/views_thread", "DEV-020", cases=_CHANGES, needs=("streams", "threads"))
def both_modules_see_the_changes_of_a_thread(dev: Device, case: str) -> None:
    """What a thread changes is seen by both modules there, and by neither in another thread."""
    before = _views(dev)
    with torch.accelerator.device_index(dev.count - 1):
        in_thread(lambda: _verify_views(dev, case, dev.count - 1))
    assert _views(dev) == before


#: Questions about a device that is not current.
_ASKED: dict[str, tuple[str, Callable[[Device, int], Any]]] = {
    "properties": ("accelerator", lambda dev, i: dev.module.get_device_properties(i)),
    "name": ("accelerator", lambda dev, i: dev.module.get_device_name(i)),
    "stream": ("streams", lambda dev, i: dev.module.current_stream(i)),
    "new_stream": ("streams", lambda dev, i: dev.stream(i)),
    "memory_stats": ("memory_stats", lambda dev, i: torch.accelerator.memory_stats(i)),
    "memory_info": ("memory_info", lambda dev, i: torch.accelerator.get_memory_info(i)),
    "reset_peak": ("memory_stats", lambda dev, i: torch.accelerator.reset_peak_memory_stats(i)),
    "random_state": ("generator", lambda dev, i: dev.module.get_rng_state(i)),
    "empty_cache": ("empty_cache", lambda dev, i: torch.accelerator.empty_cache()),
}


@check("device/asked", "DEV-013", cases=_ASKED, needs=("multi_device",))
def questions_leave_the_current_device_alone(dev: Device, case: str) -> None:
    """What is asked of another device leaves the current device as it was."""
    need, ask = _ASKED[case]
    dev.require(need)
    kept = [torch.ones(4, device=dev.device(index)) for index in range(dev.count)]
    with torch.accelerator.device_index(0):
        ask(dev, 1)
        assert _current(dev) == 0
    del kept


@check("device/synchronize_other", "DEV-013", needs=("multi_device",))
def synchronising_another_device_keeps_the_current(dev: Device) -> None:
    """synchronize(i) leaves the current device as it was."""
    with torch.accelerator.device_index(0):
        torch.accelerator.synchronize(1)
        dev.module.synchronize(1)
        assert _current(dev) == 0
