# SPDX-License-Identifier: BSD-3-Clause
"""Devices and guards: counting, bounds, the current device, contexts, properties, capability."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch

from conformance.check import check
from conformance.device import Device
from conformance.observe import in_thread, in_threads, raised


def _current(dev: Device) -> int:
    return int(torch.accelerator.current_device_index())


# ---- counting and bounds ---------------------------------------------------------------------


@check(
    "device/count",
    "DEV-001",
    cases=("module", "accelerator", "stable", "from_thread"),
    needs=("accelerator",),
)
def devices_are_counted(dev: Device, case: str) -> None:
    """Every way to count devices gives the same positive number, always."""
    if case == "module":
        assert dev.module.device_count() == dev.count >= 1
    elif case == "accelerator":
        assert torch.accelerator.device_count() == dev.count
    elif case == "stable":
        in_use = [torch.empty(1, device=dev.device(index)) for index in range(dev.count)]
        assert {dev.module.device_count() for _ in in_use * 5} == {dev.count}
    else:
        assert in_thread(dev.module.device_count) == dev.count
        assert in_thread(torch.accelerator.device_count) == dev.count


@check(
    "device/every_index", "DEV-002", cases=("allocate", "values", "index"), needs=("accelerator",)
)
def every_counted_device_is_usable(dev: Device, case: str) -> None:
    """Each index below the count is a device that computes and keeps its index."""
    for index in range(dev.count):
        x = torch.arange(5.0, device=dev.device(index))
        if case == "values":
            dev.assert_equal(x + 1, torch.arange(1.0, 6.0))
        elif case == "index":
            assert x.get_device() == index
            assert (x + 1).get_device() == index
        else:
            assert x.device == dev.device(index)


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
_BY_INDEX_NEEDS = {"accelerator_set_index": "device_guard", "synchronize": "synchronize"}
_BY_INDEX_STREAMS: dict[str, Callable[[Device, int], Any]] = {
    "stream": lambda dev, i: torch.Stream(device=dev.device(i)),
    "current_stream": lambda dev, i: torch.accelerator.current_stream(i),
}
_BY_INDEX_MEMORY: dict[str, Callable[[Device, int], Any]] = {
    "memory_stats": lambda dev, i: torch.accelerator.memory_stats(i),
    "reset_peak": lambda dev, i: torch.accelerator.reset_peak_memory_stats(i),
}


def _refuses(dev: Device, call: Callable[[Device, int], Any], index: int) -> None:
    """`call` raises for `index`, and leaves the current device and the device itself usable."""
    torch.empty(1, device=dev.device(0))
    before = _current(dev)
    error = raised(lambda: call(dev, index))
    assert not isinstance(error, (AttributeError, TypeError)), f"wrong kind of error: {error!r}"
    assert _current(dev) == before, "a refused index changed the current device"
    dev.assert_equal(torch.ones(2, device=dev.device(0)), torch.ones(2))


@check("device/out_of_range", "DEV-003", cases=tuple(_BY_INDEX), needs=("accelerator",))
def index_equal_to_the_count_is_refused(dev: Device, case: str) -> None:
    """The first index that does not exist raises; it is never an alias of another device."""
    if case in _BY_INDEX_NEEDS:
        dev.require(_BY_INDEX_NEEDS[case])
    _refuses(dev, _BY_INDEX[case], dev.count)


@check("device/out_of_range_streams", "DEV-003", cases=tuple(_BY_INDEX_STREAMS), needs=("streams",))
def index_equal_to_the_count_is_refused_by_streams(dev: Device, case: str) -> None:
    """Stream functions raise for the first index that does not exist."""
    _refuses(dev, _BY_INDEX_STREAMS[case], dev.count)


@check(
    "device/out_of_range_memory",
    "DEV-003",
    cases=tuple(_BY_INDEX_MEMORY),
    needs=("memory_stats",),
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


@check(
    "device/negative",
    "DEV-005",
    cases=("set_device", "accelerator", "context"),
    needs=("accelerator",),
)
def negative_index_changes_nothing(dev: Device, case: str) -> None:
    """A negative index is a no-op or an error, but never selects a device."""
    for start in {0, dev.count - 1}:  # -1 might be the last one, or clamped to the first
        with torch.accelerator.device_index(start):
            within = start
            try:
                if case == "set_device":
                    dev.module.set_device(-1)
                elif case == "accelerator":
                    torch.accelerator.set_device_index(-1)
                else:
                    with dev.module.device(-1):
                        within = _current(dev)
            except (RuntimeError, ValueError, AssertionError):
                pass  # refused
            assert (within, _current(dev)) == (start, start)


# ---- the current device ----------------------------------------------------------------------


@check(
    "device/default_index", "DEV-006", cases=("main_thread", "new_thread"), needs=("accelerator",)
)
def first_device_is_the_default(dev: Device, case: str) -> None:
    """A process, and every new thread, starts on device 0."""
    if case == "main_thread":
        done = dev.python(
            "import torch\nprint('index', torch.accelerator.current_device_index())\n"
            f"x = torch.empty(1, device={dev.type!r})\nprint('tensor', x.device.index)"
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "index 0" in done.stdout
        assert "tensor 0" in done.stdout
        return
    with torch.accelerator.device_index(dev.count - 1):
        assert in_thread(lambda: _current(dev)) == 0


_FORMS: dict[str, Callable[[Device, int], Any]] = {
    "integer": lambda dev, i: i,
    "string": lambda dev, i: f"{dev.type}:{i}",
    "device": lambda dev, i: dev.device(i),
}


@check("device/set_device", "DEV-007", cases=tuple(_FORMS), needs=("accelerator",))
def set_device_takes_every_form(dev: Device, case: str) -> None:
    """set_device accepts an int, a string and a torch.device, in both modules."""
    with torch.accelerator.device_index(0):
        for setter in (dev.module.set_device, torch.accelerator.set_device_index):
            for index in (*range(dev.count), 0):
                setter(_FORMS[case](dev, index))
                assert dev.module.current_device() == index
                assert torch.accelerator.current_device_index() == index


@check(
    "device/per_thread",
    "DEV-008",
    cases=("set_elsewhere", "eight_threads", "allocation"),
    needs=("multi_device", "threads"),
)
def current_device_belongs_to_the_thread(dev: Device, case: str) -> None:
    """Each thread has its own current device."""
    if case == "set_elsewhere":
        before = _current(dev)

        def elsewhere() -> int:
            torch.accelerator.set_device_index(dev.count - 1 - before)
            return _current(dev)

        assert in_thread(elsewhere) == dev.count - 1 - before
        assert _current(dev) == before, "another thread changed this thread's current device"
        return
    everyone = threading.Barrier(8)

    def worker(index: int) -> bool:
        torch.accelerator.set_device_index(index)
        everyone.wait(30)  # all have chosen before any looks
        here = torch.empty(3, device=dev.type).get_device() if case == "allocation" else None
        everyone.wait(30)
        return _current(dev) == index and here in (None, index)

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


@check("device/context", "DEV-009", cases=tuple(_CONTEXTS), needs=("multi_device",))
def context_selects_and_restores(dev: Device, case: str) -> None:
    """A device context selects its device and puts the former one back."""
    make = _CONTEXTS[case]
    with torch.accelerator.device_index(0):
        with make(dev, 1):
            assert _current(dev) == 1
            assert torch.empty(1, device=dev.type).get_device() == 1
        assert _current(dev) == 0


@check("device/context_exception", "DEV-009", cases=tuple(_CONTEXTS), needs=("multi_device",))
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


@check("device/context_nested", "DEV-009", cases=tuple(_CONTEXTS), needs=("multi_device",))
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


@check("device/context_reused", "DEV-009", cases=tuple(_CONTEXTS), needs=("multi_device",))
def contexts_are_entered_where_they_are(dev: Device, case: str) -> None:
    """A context, entered again and again, restores what was current when it was entered."""
    context = _CONTEXTS[case](dev, 0)
    for outer in (1, 0, 1):
        with torch.accelerator.device_index(outer):
            with context:
                assert _current(dev) == 0
            assert _current(dev) == outer


@check("device/context_single", "DEV-010", cases=tuple(_CONTEXTS), needs=("accelerator",))
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


@check("device/default_device", "DEV-012", cases=("context", "indexed_context", "set_default"))
def factories_follow_the_default_device(dev: Device, case: str) -> None:
    """torch.device as a context and set_default_device choose where factories allocate."""
    before = torch.get_default_device()
    if case == "set_default":
        try:
            torch.set_default_device(dev.type)
            _placed(dev.type)
        finally:
            torch.set_default_device(None)
    else:
        wanted = torch.device(dev.type) if case == "context" else torch.device(dev.type, 0)
        with wanted:
            _placed(dev.type)
            with torch.device("cpu"):
                _placed("cpu")
            assert torch.ones(2, device="cpu").device.type == "cpu"
    assert torch.get_default_device() == before
    assert torch.ones(2).device == before


# ---- guards ----------------------------------------------------------------------------------


def _train(x: torch.Tensor) -> None:
    leaf = x.detach().clone().requires_grad_()
    (leaf * leaf).sum().backward()


#: Work on a tensor of a device that is not current.
_ELSEWHERE: dict[str, Callable[[torch.Tensor], Any]] = {
    "fill": lambda x: x.fill_(3),
    "add": lambda x: x + x,
    "factory_like": lambda x: torch.ones_like(x),
    "new_empty": lambda x: x.new_empty(7),
    "view": lambda x: x.reshape(2, 4)[1],
    "item": lambda x: x[3].item(),
    "to_cpu": lambda x: x.cpu(),
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
    cases=tuple(_ELSEWHERE),
    needs=("multi_device", "device_guard"),
    case_needs={"printing": "float64"},
)
def operators_leave_the_current_device_alone(dev: Device, case: str) -> None:
    """An operator runs on its operands' device and leaves the current device as it was."""
    with torch.accelerator.device_index(0):
        x = torch.ones(8, device=dev.device(1))
        result = _ELSEWHERE[case](x)
        assert _current(dev) == 0, "the operator changed the current device"
        if isinstance(result, torch.Tensor) and case != "to_cpu":
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


@check(
    "device/indexless",
    "DEV-014",
    cases=("factory", "to", "to_from_other", "empty_like", "cast"),
    needs=("multi_device",),
    case_needs={"cast": "float16"},
)
def device_without_index_is_the_current_one(dev: Device, case: str) -> None:
    """A device without an index means the current one; tensors always carry an index."""
    with torch.accelerator.device_index(1):
        if case == "factory":
            x = torch.empty(2, device=dev.type)
        elif case == "to":
            x = torch.ones(2).to(dev.type)
        elif case == "to_from_other":
            x = torch.ones(2, device=dev.device(0)).to(dev.type)
        elif case == "empty_like":
            x = torch.empty_like(torch.ones(2), device=dev.type)
        else:
            x = torch.ones(2).to(dev.type, torch.float16)
        assert x.device == dev.device(1), f"expected index 1, got {x.device}"


@check(
    "device/identity",
    "DEV-015",
    cases=("index", "equality", "hash", "text", "pickle", "as_argument"),
)
def tensor_device_is_a_proper_device(dev: Device, case: str) -> None:
    """A tensor's device has type and index and behaves as a value."""
    x = torch.ones(3, device=dev.device(0))
    if case == "index":
        assert x.device.type == dev.type
        if dev.is_accelerator:
            assert x.device.index == 0 == x.get_device()
    elif case == "equality":
        assert x.device == torch.ones(1, device=dev.device(0)).device
        assert x.device != torch.device("meta")
    elif case == "hash":
        assert len({x.device, torch.empty(1, device=x.device).device}) == 1
    elif case == "text":
        assert torch.device(str(x.device)) == x.device
    elif case == "pickle":
        assert pickle.loads(pickle.dumps(x.device)) == x.device
    else:
        dev.assert_equal(torch.ones(3, device=x.device), torch.ones(3))


@check("device/many_contexts", "DEV-009", needs=("multi_device",))
def thousand_context_switches_keep_the_device(dev: Device) -> None:
    """A thousand switches back and forth end on the device they began with."""
    with torch.accelerator.device_index(0):
        for step in range(1000):
            with dev.module.device(step % dev.count):
                pass
        assert _current(dev) == 0


# ---- description -----------------------------------------------------------------------------


@check(
    "device/description",
    "DEV-016",
    cases=("name", "name_of_every_form", "properties_name", "total_memory", "capability", "repr"),
    needs=("accelerator",),
)
def devices_describe_themselves(dev: Device, case: str) -> None:
    """Name, properties and capability exist for every device and agree with each other."""
    for index in range(dev.count):
        properties = dev.module.get_device_properties(index)
        name = dev.module.get_device_name(index)
        if case == "name":
            assert isinstance(name, str) and name.strip()
        elif case == "name_of_every_form":
            assert {dev.module.get_device_name(form(dev, index)) for form in _FORMS.values()} == {
                name
            }
        elif case == "properties_name":
            assert properties.name == name
        elif case == "total_memory":
            assert isinstance(properties.total_memory, int) and properties.total_memory > 0
        elif case == "capability":
            assert dev.module.get_device_capability(index) == dev.module.get_device_capability(
                index
            )
        else:
            assert repr(properties).strip()


@check("device/total_memory", "DEV-017", needs=("memory_info",))
def properties_and_memory_info_agree(dev: Device) -> None:
    """The total memory in the properties is the one of get_memory_info."""
    for index in range(dev.count):
        total = torch.accelerator.get_memory_info(index)[1]
        assert dev.module.get_device_properties(index).total_memory == total


@check(
    "device/capability",
    "DEV-018",
    cases=("keys", "holds_float32", "every_device"),
    needs=("capability_query",),
)
def capability_query_answers(dev: Device, case: str) -> None:
    """get_device_capability names the supported dtypes of each device."""
    for index in range(dev.count) if case == "every_device" else (0,):
        dtypes = torch.accelerator.get_device_capability(index)["supported_dtypes"]
        assert dtypes and all(isinstance(dtype, torch.dtype) for dtype in dtypes)
        if case == "holds_float32":
            assert torch.float32 in dtypes


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


@check(
    "device/accelerator_parity",
    "DEV-020",
    cases=("count", "current", "available", "stream", "synchronize"),
    needs=("accelerator",),
)
def module_and_accelerator_agree(dev: Device, case: str) -> None:
    """torch.<type> and torch.accelerator are two views of the same state."""
    last = dev.count - 1
    with torch.accelerator.device_index(last):
        if case == "count":
            assert torch.accelerator.device_count() == dev.module.device_count()
        elif case == "current":
            assert torch.accelerator.current_device_index() == dev.module.current_device() == last
        elif case == "available":
            assert torch.accelerator.is_available() == dev.module.is_available()
        elif case == "stream":
            dev.require("streams")
            assert torch.accelerator.current_stream() == dev.module.current_stream()
            assert torch.accelerator.current_stream(last) == dev.module.current_stream(last)
        else:
            dev.require("synchronize")
            torch.accelerator.synchronize()
            torch.accelerator.synchronize(last)
            torch.accelerator.synchronize(dev.device(last))
            assert torch.accelerator.current_device_index() == last


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


@check("device/asked", "DEV-013", cases=tuple(_ASKED), needs=("multi_device",))
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
