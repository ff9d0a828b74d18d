# SPDX-License-Identifier: BSD-3-Clause
"""The validation layer: misuse of every entry is refused, over sim and over the cuda driver.

Over sim it is always on. The cuda driver's host code, over the stand-in for CUDA's runtime, checks
no arguments itself; the odd driver "validation" puts the layer around it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_float, c_int32, c_size_t, c_uint64, c_void_p, sizeof
from pathlib import Path
from typing import Any

import pytest
from driver_in_child import with_driver
from suites import FAKE_NVRTC, ODD, OVER_FAKE_NCCL, SIM, STANDIN, needs_standin, odd

from hal_conformance import abi, contract, kernels, modules
from hal_conformance.abi import EventFlags, IpcMemoryHandle, MemcpyKind, Reduction, Status
from hal_conformance.driver import Driver
from hal_conformance.kernels import DType
from hal_conformance.test_collective import alone, new_id
from hal_conformance.test_ipc import exporter, opened

WILD = 0x1234560  # nothing is there
H2D, D2D = MemcpyKind.HOST_TO_DEVICE, MemcpyKind.DEVICE_TO_DEVICE
ARGUMENT, DEVICE = Status.INVALID_ARGUMENT, Status.INVALID_DEVICE
FLOAT, SUM = DType.FLOAT32, Reduction.SUM
SMALL = 8  # a struct_size that no struct of the ABI has


def _dead_stream(hal: Driver) -> int:
    stream = hal.stream()
    hal.ok(hal.api.stream_destroy(stream))
    return stream


def _dead_event(hal: Driver) -> int:
    event = hal.event()
    hal.ok(hal.api.event_destroy(event))
    return event


def _timed(hal: Driver, device: int = 0) -> int:
    """A timed event that was recorded and is complete."""
    event, stream = hal.event(EventFlags.TIMING, device), hal.stream(device)
    hal.record(event, stream)
    hal.synchronize(stream)
    return event


def _launch(hal: Driver, kernel: int | None, args: object, size: int, stream: int | None) -> int:
    return int(hal.api.kernel_launch(kernel, args, size, stream, None))


def _launch_with_small_context(hal: Driver) -> int:
    context, args = abi.LaunchContext(struct_size=SMALL), kernels.delay(0)
    kernel, stream = hal.kernel("delay"), hal.stream()
    return int(hal.api.kernel_launch(kernel, byref(args), 8, stream, byref(context)))


def out() -> object:
    return byref(c_void_p())


Misuse = Callable[[Driver], int]
#: Each entry of the table -> what is wrong, the call, and what it must answer.
MISUSE: dict[str, dict[str, tuple[Misuse, Status]]] = {
    "describe": {
        "no struct": (lambda hal: hal.api.describe(None), ARGUMENT),
        "small struct": (
            lambda hal: hal.api.describe(byref(abi.DriverInfo(struct_size=SMALL))),
            ARGUMENT,
        ),
    },
    "device_count": {"no result": (lambda hal: hal.api.device_count(None), ARGUMENT)},
    "device_properties": {
        "no device": (
            lambda hal: hal.api.device_properties(99, byref(abi.DeviceProperties())),
            DEVICE,
        ),
        "no struct": (lambda hal: hal.api.device_properties(0, None), ARGUMENT),
        "small struct": (
            lambda hal: hal.api.device_properties(
                0, byref(abi.DeviceProperties(struct_size=SMALL))
            ),
            ARGUMENT,
        ),
    },
    "device_memory_info": {
        "no device": (
            lambda hal: hal.api.device_memory_info(-1, byref(c_uint64()), byref(c_uint64())),
            DEVICE,
        ),
        "no result": (
            lambda hal: hal.api.device_memory_info(0, byref(c_uint64()), None),
            ARGUMENT,
        ),
    },
    "device_synchronize": {"no device": (lambda hal: hal.api.device_synchronize(99), DEVICE)},
    "stream_priority_range": {
        "no device": (
            lambda hal: hal.api.stream_priority_range(99, byref(c_int32()), byref(c_int32())),
            DEVICE,
        ),
        "no result": (
            lambda hal: hal.api.stream_priority_range(0, None, byref(c_int32())),
            ARGUMENT,
        ),
    },
    "device_can_access_peer": {
        "no peer": (lambda hal: hal.api.device_can_access_peer(0, 99, byref(c_int32())), DEVICE),
        "no result": (lambda hal: hal.api.device_can_access_peer(0, 0, None), ARGUMENT),
    },
    "malloc": {
        "no device": (lambda hal: hal.api.malloc(99, 64, out()), DEVICE),
        "no bytes": (lambda hal: hal.api.malloc(0, 0, out()), ARGUMENT),
        "no result": (lambda hal: hal.api.malloc(0, 64, None), ARGUMENT),
    },
    "free": {
        "wild": (lambda hal: hal.api.free(WILD), ARGUMENT),
        "interior": (lambda hal: hal.api.free(hal.malloc(4096) + 256), ARGUMENT),
        "pinned": (lambda hal: hal.api.free(hal.host_malloc(64)), ARGUMENT),
    },
    "host_malloc": {
        "no bytes": (lambda hal: hal.api.host_malloc(0, out()), ARGUMENT),
        "no result": (lambda hal: hal.api.host_malloc(64, None), ARGUMENT),
    },
    "host_free": {
        "wild": (lambda hal: hal.api.host_free(WILD), ARGUMENT),
        "interior": (lambda hal: hal.api.host_free(hal.host_malloc(4096) + 64), ARGUMENT),
        "of a device": (lambda hal: hal.api.host_free(hal.malloc(64)), ARGUMENT),
    },
    "pointer_attributes": {
        "no struct": (lambda hal: hal.api.pointer_attributes(WILD, None), ARGUMENT),
        "small struct": (
            lambda hal: hal.api.pointer_attributes(
                WILD, byref(abi.PointerAttributes(struct_size=SMALL))
            ),
            ARGUMENT,
        ),
    },
    "memcpy_async": {
        "dead stream": (
            lambda hal: hal.api.memcpy_async(
                hal.malloc(64), hal.malloc(64), 64, D2D, _dead_stream(hal)
            ),
            ARGUMENT,
        ),
        "too long": (
            lambda hal: hal.api.memcpy_async(
                hal.malloc(4096), hal.malloc(64), 4096, D2D, hal.stream()
            ),
            ARGUMENT,
        ),
        "not of the kind": (
            lambda hal: hal.api.memcpy_async(hal.malloc(64), hal.malloc(64), 64, H2D, hal.stream()),
            ARGUMENT,
        ),
        "unknown kind": (
            lambda hal: hal.api.memcpy_async(hal.malloc(64), hal.malloc(64), 64, 9, hal.stream()),
            ARGUMENT,
        ),
        "no bytes of an unknown kind": (
            lambda hal: hal.api.memcpy_async(None, None, 0, 9, hal.stream()),
            ARGUMENT,
        ),
    },
    "memset_async": {
        "no stream": (lambda hal: hal.api.memset_async(hal.malloc(64), 0, 64, None), ARGUMENT),
        "of the host": (
            lambda hal: hal.api.memset_async(hal.host_malloc(64), 0, 64, hal.stream()),
            ARGUMENT,
        ),
    },
    "stream_create": {
        "no device": (lambda hal: hal.api.stream_create(99, 0, out()), DEVICE),
        "no result": (lambda hal: hal.api.stream_create(0, 0, None), ARGUMENT),
    },
    "stream_from_native": {
        "no device": (
            lambda hal: hal.api.stream_from_native(99, hal.native(hal.stream()), out()),
            DEVICE,
        ),
        "nothing": (lambda hal: hal.api.stream_from_native(0, None, out()), ARGUMENT),
        "no result": (
            lambda hal: hal.api.stream_from_native(0, hal.native(hal.stream()), None),
            ARGUMENT,
        ),
    },
    "stream_destroy": {
        "wild": (lambda hal: hal.api.stream_destroy(WILD), ARGUMENT),
        "twice": (lambda hal: hal.api.stream_destroy(_dead_stream(hal)), ARGUMENT),
        "an event": (lambda hal: hal.api.stream_destroy(hal.event()), ARGUMENT),
    },
    "stream_query": {"dead": (lambda hal: hal.api.stream_query(_dead_stream(hal)), ARGUMENT)},
    "stream_synchronize": {"wild": (lambda hal: hal.api.stream_synchronize(WILD), ARGUMENT)},
    "stream_wait_event": {
        "dead event": (
            lambda hal: hal.api.stream_wait_event(hal.stream(), _dead_event(hal)),
            ARGUMENT,
        ),
        "no stream": (lambda hal: hal.api.stream_wait_event(None, hal.event()), ARGUMENT),
    },
    "stream_host_func": {
        "no function": (
            lambda hal: hal.api.stream_host_func(hal.stream(), abi.HostFunc(), None),
            ARGUMENT,
        ),
        "no stream": (
            lambda hal: hal.api.stream_host_func(None, hal.keep(abi.HostFunc(id)), None),
            ARGUMENT,
        ),
    },
    "stream_native_handle": {
        "no result": (lambda hal: hal.api.stream_native_handle(hal.stream(), None), ARGUMENT),
        "dead": (lambda hal: hal.api.stream_native_handle(_dead_stream(hal), out()), ARGUMENT),
    },
    "event_create": {
        "no device": (lambda hal: hal.api.event_create(99, 0, out()), DEVICE),
        "unknown flag": (lambda hal: hal.api.event_create(0, 1 << 9, out()), ARGUMENT),
        "no result": (lambda hal: hal.api.event_create(0, 0, None), ARGUMENT),
    },
    "event_destroy": {
        "wild": (lambda hal: hal.api.event_destroy(WILD), ARGUMENT),
        "twice": (lambda hal: hal.api.event_destroy(_dead_event(hal)), ARGUMENT),
    },
    "event_record": {
        "dead event": (lambda hal: hal.api.event_record(_dead_event(hal), hal.stream()), ARGUMENT),
        "another device": (
            lambda hal: hal.api.event_record(hal.event(device=0), hal.stream(1)),
            ARGUMENT,
        ),
    },
    "event_query": {"a stream": (lambda hal: hal.api.event_query(hal.stream()), ARGUMENT)},
    "event_synchronize": {"wild": (lambda hal: hal.api.event_synchronize(WILD), ARGUMENT)},
    "event_elapsed_ms": {
        "without timing": (
            lambda hal: hal.api.event_elapsed_ms(_timed(hal), hal.event(), byref(c_float())),
            ARGUMENT,
        ),
        "never recorded": (
            lambda hal: hal.api.event_elapsed_ms(
                _timed(hal), hal.event(EventFlags.TIMING), byref(c_float())
            ),
            ARGUMENT,
        ),
        "of two devices": (
            lambda hal: hal.api.event_elapsed_ms(_timed(hal), _timed(hal, 1), byref(c_float())),
            ARGUMENT,
        ),
    },
    "kernel_find": {
        "no name": (lambda hal: hal.api.kernel_find(None, None, out()), ARGUMENT),
        "no result": (lambda hal: hal.api.kernel_find(b"delay", None, None), ARGUMENT),
        "small struct": (
            lambda hal: hal.api.kernel_find(
                b"delay", byref(abi.KernelInfo(struct_size=SMALL)), out()
            ),
            ARGUMENT,
        ),
    },
    "kernel_launch": {
        "no kernel": (lambda hal: _launch(hal, None, out(), 8, hal.stream()), ARGUMENT),
        "wild kernel": (lambda hal: _launch(hal, WILD, out(), 8, hal.stream()), ARGUMENT),
        "wrong size": (
            lambda hal: _launch(hal, hal.kernel("delay"), out(), 7, hal.stream()),
            ARGUMENT,
        ),
        "no arguments": (
            lambda hal: _launch(hal, hal.kernel("delay"), None, 8, hal.stream()),
            ARGUMENT,
        ),
        "dead stream": (
            lambda hal: _launch(hal, hal.kernel("delay"), out(), 8, _dead_stream(hal)),
            ARGUMENT,
        ),
        "small context": (_launch_with_small_context, ARGUMENT),
    },
    "get_extension": {
        "no name": (lambda hal: hal.api.get_extension(None, 1, out()), ARGUMENT),
        "no result": (lambda hal: hal.api.get_extension(b"fault", 1, None), ARGUMENT),
    },
}
#: These take nothing that could be wrong.
NOTHING_TO_MISUSE = {"init", "shutdown", "last_error_message"}
CASES = [(entry, case) for entry, cases in MISUSE.items() for case in cases]

#: A library, and its environment.
Setup = tuple[Path, dict[str, str]]
OVER_STANDIN: Setup = (
    ODD,
    {
        **odd("validation", STANDIN),
        "PUONE_STANDIN_MEMORY": "64",
        "PUONE_CUDA_NVRTC": str(FAKE_NVRTC),
    },
)


@pytest.fixture(
    params=[
        pytest.param((SIM, {}), id="sim"),
        pytest.param(OVER_STANDIN, id="standin", marks=needs_standin),
    ]
)
def setup(request: pytest.FixtureRequest) -> Setup:
    found: Setup = request.param
    return found


def assert_nothing_wrong(setup: Setup, work: Callable[[Driver], list[str]]) -> None:
    """Call `work`, which lists what is wrong, in a process of its own."""
    ending = with_driver(*setup, lambda hal: "\n".join(["done", *work(hal)]), 60)
    assert (str(ending), ending.payload.decode()) == ("exit status 0", "done")


def test_every_entry_is_misused() -> None:
    assert set(MISUSE) | NOTHING_TO_MISUSE == set(abi.ENTRIES)


def misuse(hal: Driver) -> list[str]:
    """Misuse every entry; what was not refused as it should be, and whether work still runs."""
    hal.ok(hal.api.init())
    wrong = []
    for entry, case in CASES:
        call, expected = MISUSE[entry][case]
        status = Status(call(hal))
        if status is not expected:
            wrong.append(f"{entry}, {case}: {status.name}")
        elif not hal.message().startswith(f"{entry}: "):
            wrong.append(f"{entry}, {case}: the message is {hal.message()!r}")
    block, stream = hal.malloc(64), hal.stream()
    hal.memset(block, 5, 64, stream)
    assert hal.read(block, 64, stream) == b"\x05" * 64
    hal.ok(hal.api.shutdown())
    if Status(hal.api.stream_query(stream)) is not Status.INTERNAL:
        wrong.append("a stream outlives shutdown()")
    return wrong


def test_misuse_of_every_entry_is_refused(setup: Setup) -> None:
    assert_nothing_wrong(setup, misuse)


#: The same for the extension "ipc"; `mapped` is memory of another process.
IPC_MISUSE: dict[str, dict[str, Callable[[Driver, int], int]]] = {
    "export_memory": {
        "no result": lambda hal, mapped: hal.ipc().export_memory(hal.malloc(64), None),
        "no block": lambda hal, mapped: hal.ipc().export_memory(None, byref(IpcMemoryHandle())),
        "interior": lambda hal, mapped: hal.ipc().export_memory(
            hal.malloc(4096) + 256, byref(IpcMemoryHandle())
        ),
        "pinned": lambda hal, mapped: hal.ipc().export_memory(
            hal.host_malloc(64), byref(IpcMemoryHandle())
        ),
        "of another process": lambda hal, mapped: hal.ipc().export_memory(
            mapped, byref(IpcMemoryHandle())
        ),
    },
    "open_memory": {
        "no handle": lambda hal, mapped: hal.ipc().open_memory(0, None, out()),
        "no result": lambda hal, mapped: hal.ipc().open_memory(0, byref(IpcMemoryHandle()), None),
        "zeros": lambda hal, mapped: hal.ipc().open_memory(0, byref(IpcMemoryHandle()), out()),
    },
    "close_memory": {
        "wild": lambda hal, mapped: hal.ipc().close_memory(WILD),
        "its own block": lambda hal, mapped: hal.ipc().close_memory(hal.malloc(64)),
        "interior": lambda hal, mapped: hal.ipc().close_memory(mapped + 256),
    },
}


def misuse_ipc(hal: Driver) -> list[str]:
    """Misuse the entries of "ipc", and free() for memory that close_memory() releases."""
    hal.ok(hal.api.init())
    wrong = []
    with exporter(hal) as other:
        mapped = opened(hal, other.handle)
        for entry, cases in IPC_MISUSE.items():
            for case, call in cases.items():
                if call(hal, mapped) != ARGUMENT or not hal.message().startswith(f"ipc.{entry}: "):
                    wrong.append(f"{entry}, {case}: {hal.message()!r}")
        if hal.ipc().open_memory(99, byref(other.handle), out()) != DEVICE:
            wrong.append("open_memory: no device")
        if hal.api.free(mapped) != ARGUMENT or "close" not in hal.message():
            wrong.append("free: memory of another process")
        hal.ok(hal.ipc().close_memory(mapped))
        if hal.ipc().close_memory(mapped) != ARGUMENT:
            wrong.append("close_memory: twice")
    hal.ok(hal.api.shutdown())
    return wrong


def test_misuse_of_memory_between_processes_is_refused() -> None:
    assert_nothing_wrong((SIM, {}), misuse_ipc)


def _find(hal: Driver, module: int | None, **wrong: Any) -> int:
    """find() of a kernel that is there, but for what is wrong in the declaration."""
    kernel = modules.declaration("scale")
    access = {name: wrong.pop(name) for name in ("pointer", "flags", "element") if name in wrong}
    for holder, changed in ((kernel, wrong), (kernel.accesses[0], access)):
        for name, value in changed.items():
            setattr(holder, name, value)
    return int(hal.module().find(module, byref(kernel), out()))


def _compile(hal: Driver, source: bytes | None, **options: Any) -> int:
    given = byref(abi.ModuleOptions(**options)) if options else None
    return int(hal.module().compile(source, given, out(), byref(c_size_t())))


#: The same for the extension "module"; `it` is a module that is loaded.
MODULE_MISUSE: dict[str, dict[str, Callable[[Driver, int], int]]] = {
    "target": {
        "no result": lambda hal, it: hal.module().target(0, None),
        "small struct": lambda hal, it: hal.module().target(
            0, byref(abi.ModuleTarget(struct_size=SMALL))
        ),
    },
    "compile": {
        "no source": lambda hal, it: _compile(hal, None),
        "no image": lambda hal, it: hal.module().compile(b"", None, None, byref(c_size_t())),
        "no size": lambda hal, it: hal.module().compile(b"", None, out(), None),
        "small struct": lambda hal, it: _compile(hal, b"", struct_size=SMALL),
        "unknown flag": lambda hal, it: _compile(hal, b"", flags=1 << 9),
    },
    "load": {
        "no image": lambda hal, it: hal.module().load(0, None, 100, out()),
        "no result": lambda hal, it: hal.module().load(0, b"image", 5, None),
    },
    "find": {
        "no module": lambda hal, it: _find(hal, None),
        "wild module": lambda hal, it: _find(hal, WILD),
        "no kernel": lambda hal, it: hal.module().find(it, None, out()),
        "no result": lambda hal, it: hal.module().find(
            it, byref(modules.declaration("scale")), None
        ),
        "small struct": lambda hal, it: _find(hal, it, struct_size=SMALL),
        "no name": lambda hal, it: _find(hal, it, name=None),
        "small arguments": lambda hal, it: _find(hal, it, args_size=32),
        "too many errors": lambda hal, it: _find(hal, it, error_count=5),
        "no errors": lambda hal, it: _find(hal, it, errors=None),
        "no accesses": lambda hal, it: _find(hal, it, accesses=None),
        "address beyond the end": lambda hal, it: _find(hal, it, pointer=1 << 20),
        "address across the end": lambda hal, it: _find(hal, it, pointer=2**64 - 8),
        "address between words": lambda hal, it: _find(hal, it, pointer=44),
        "address of the driver's": lambda hal, it: _find(hal, it, pointer=0),
        "unknown access": lambda hal, it: _find(hal, it, flags=1 << 9),
        "elements of no size": lambda hal, it: _find(hal, it, element=0),
    },
    "declaration": {
        "no kernel": lambda hal, it: hal.module().declaration(
            None, byref(POINTER(abi.ModuleKernel)())
        ),
        "wild kernel": lambda hal, it: hal.module().declaration(
            WILD, byref(POINTER(abi.ModuleKernel)())
        ),
        "no result": lambda hal, it: hal.module().declaration(
            modules.found(hal, it, "scale"), None
        ),
    },
    "unload": {
        "wild": lambda hal, it: hal.module().unload(WILD),
        "a stream": lambda hal, it: hal.module().unload(hal.stream()),
    },
}


def misuse_modules(hal: Driver) -> list[str]:
    """Misuse the entries of "module", and launches of kernels whose module is gone."""
    hal.ok(hal.api.init())
    wrong = []
    module = modules.loaded(hal, modules.compiled(hal))
    for entry, cases in MODULE_MISUSE.items():
        for case, call in cases.items():
            if call(hal, module) != ARGUMENT or not hal.message().startswith(f"module.{entry}: "):
                wrong.append(f"{entry}, {case}: {hal.message()!r}")
    for device in (-1, 99):
        if hal.module().load(device, b"image", 5, out()) != DEVICE:
            wrong.append(f"load: device {device}")
    kernel, block = modules.found(hal, module, "scale"), hal.malloc(64)
    args = modules.args(4, block, block)
    for size, stream, what in ((72, hal.stream(1), "on device 0"), (64, hal.stream(), "bytes")):
        if _launch(hal, kernel, byref(args), size, stream) != ARGUMENT or what not in hal.message():
            wrong.append(f"kernel_launch: {what}: {hal.message()!r}")
    hal.ok(hal.module().unload(module))
    if hal.module().unload(module) != ARGUMENT:
        wrong.append("unload: twice")
    for late in (
        lambda: _launch(hal, kernel, byref(args), 72, hal.stream()),
        lambda: hal.module().declaration(kernel, byref(POINTER(abi.ModuleKernel)())),
    ):
        if late() != ARGUMENT or "not a live kernel" not in hal.message():
            wrong.append(f"a kernel outlives its module: {hal.message()!r}")
    hal.ok(hal.api.shutdown())
    return wrong


def test_misuse_of_modules_is_refused(setup: Setup) -> None:
    assert_nothing_wrong(setup, misuse_modules)


Collective = Callable[[Driver, abi.CollectiveApi, int, int, int], int]
#: The same for the extension "collective": a communicator of one rank, a stream and a block of 400
#: bytes, all of the first device.
COLLECTIVE_MISUSE: dict[str, dict[str, Collective]] = {
    "identify": {"no result": lambda hal, api, comm, stream, block: api.identify(0, None)},
    "create_id": {"no result": lambda hal, api, comm, stream, block: api.create_id(None)},
    "init": {
        "no id": lambda hal, api, comm, stream, block: api.init(0, None, 0, 1, 1, out()),
        "no result": lambda hal, api, comm, stream, block: api.init(
            0, byref(new_id(hal)), 0, 1, 1, None
        ),
        "no such rank": lambda hal, api, comm, stream, block: api.init(
            0, byref(new_id(hal)), 1, 1, 1, out()
        ),
    },
    "destroy": {"wild": lambda hal, api, comm, stream, block: api.destroy(WILD)},
    "abort": {"wild": lambda hal, api, comm, stream, block: api.abort(WILD)},
    "query": {"wild": lambda hal, api, comm, stream, block: api.query(WILD)},
    "group_begin": {"wild": lambda hal, api, comm, stream, block: api.group_begin(WILD)},
    "group_end": {"wild": lambda hal, api, comm, stream, block: api.group_end(WILD)},
    "all_reduce": {
        "wild": lambda hal, api, comm, stream, block: api.all_reduce(
            WILD, block, block, 100, FLOAT, SUM, stream
        ),
        "dead stream": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, block, block, 100, FLOAT, SUM, _dead_stream(hal)
        ),
        "stream of another device": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, block, block, 100, FLOAT, SUM, hal.stream(1)
        ),
        "no type": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, block, block, 100, 16, SUM, stream
        ),
        "no reduction": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, block, block, 100, FLOAT, 5, stream
        ),
        "over the end": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, block, block, 101, FLOAT, SUM, stream
        ),
        "too many": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, block, block, 1 << 63, FLOAT, SUM, stream
        ),
        "host memory": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, hal.host_malloc(400), block, 100, FLOAT, SUM, stream
        ),
        "overlap": lambda hal, api, comm, stream, block: api.all_reduce(
            comm, block, block + 40, 20, FLOAT, SUM, stream
        ),
    },
    "broadcast": {
        "no such root": lambda hal, api, comm, stream, block: api.broadcast(
            comm, block, block, 100, FLOAT, 1, stream
        ),
        "wild": lambda hal, api, comm, stream, block: api.broadcast(
            comm, WILD, block, 100, FLOAT, 0, stream
        ),
    },
    "reduce": {
        "no such root": lambda hal, api, comm, stream, block: api.reduce(
            comm, block, block, 100, FLOAT, SUM, -1, stream
        ),
    },
    "all_gather": {
        "over the end": lambda hal, api, comm, stream, block: api.all_gather(
            comm, block, block, 101, FLOAT, stream
        ),
    },
    "reduce_scatter": {
        "overlap": lambda hal, api, comm, stream, block: api.reduce_scatter(
            comm, block + 40, block, 20, FLOAT, SUM, stream
        ),
    },
    "send": {
        "no such peer": lambda hal, api, comm, stream, block: api.send(
            comm, block, 100, FLOAT, 1, stream
        ),
    },
    "recv": {
        "wild": lambda hal, api, comm, stream, block: api.recv(comm, WILD, 100, FLOAT, 0, stream),
    },
}


def misuse_collectives(hal: Driver) -> list[str]:
    """Misuse the entries of "collective"."""
    hal.ok(hal.api.init())
    wrong = []
    with alone(hal) as communicator:
        api, stream, block = hal.collective(), hal.stream(), hal.malloc(400)
        for entry, cases in COLLECTIVE_MISUSE.items():
            for case, call in cases.items():
                status = call(hal, api, communicator, stream, block)
                if status != ARGUMENT or not hal.message().startswith(f"collective.{entry}: "):
                    wrong.append(f"{entry}, {case}: {Status(status).name}, {hal.message()!r}")
        if api.init(99, byref(new_id(hal)), 0, 1, 1, out()) != DEVICE:
            wrong.append("init: no device")
        if api.identify(99, byref(abi.DeviceIdentity())) != DEVICE:
            wrong.append("identify: no device")
        hal.ok(api.all_reduce(communicator, block, block, 100, FLOAT, SUM, stream))
        hal.synchronize(stream)
    if hal.collective().query(communicator) != ARGUMENT:
        wrong.append("query: a communicator that was destroyed")
    hal.ok(hal.api.shutdown())
    return wrong


@needs_standin
def test_misuse_of_collectives_is_refused() -> None:
    environment = {**odd("validation", STANDIN), **OVER_FAKE_NCCL}
    assert_nothing_wrong((ODD, environment), misuse_collectives)


def destroy_at_once(hal: Driver) -> list[str]:
    """Threads give one block, stream and event back: one succeeds, the others are refused."""
    hal.ok(hal.api.init())
    with ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            for entry, handle in (
                ("free", hal.malloc(64)),
                ("stream_destroy", hal.stream()),
                ("event_destroy", hal.event()),
            ):
                calls = [pool.submit(getattr(hal.api, entry), handle) for _ in range(4)]
                answers = sorted(call.result() for call in calls)
                assert answers == [Status.OK] + [ARGUMENT] * 3, (entry, answers)
    hal.ok(hal.api.shutdown())
    return []


def test_of_threads_that_destroy_one_thing_one_succeeds(setup: Setup) -> None:
    assert_nothing_wrong(setup, destroy_at_once)


#: Entries that look at their device or memory first; before init() there is none.
BEFORE_INIT: dict[str, Misuse] = {
    "device_properties": lambda hal: hal.api.device_properties(0, byref(abi.DeviceProperties())),
    "device_synchronize": lambda hal: hal.api.device_synchronize(0),
    "malloc": lambda hal: hal.api.malloc(0, 64, out()),
    "free": lambda hal: hal.api.free(WILD),
    "stream_create": lambda hal: hal.api.stream_create(0, 0, out()),
    "event_create": lambda hal: hal.api.event_create(0, 0, out()),
}


def before_init(hal: Driver) -> list[str]:
    """Call entries too early; what was not refused in the entry's own name."""
    wrong = []
    for entry, call in BEFORE_INIT.items():
        status = Status(call(hal))
        if status is not Status.INTERNAL or not hal.message().startswith(f"{entry}: init()"):
            wrong.append(f"{entry}: {status.name}, {hal.message()!r}")
    return wrong


def test_before_init_the_message_names_the_entry(setup: Setup) -> None:
    assert_nothing_wrong(setup, before_init)


#: Calls that a host function must not make.
WITHIN: dict[str, Callable[[Driver, int, int], int]] = {
    "malloc": lambda hal, stream, block: hal.api.malloc(0, 64, out()),
    "free": lambda hal, stream, block: hal.api.free(block),
    "memset_async": lambda hal, stream, block: hal.api.memset_async(block, 1, 64, stream),
    "stream_synchronize": lambda hal, stream, block: hal.api.stream_synchronize(stream),
    "shutdown": lambda hal, stream, block: hal.api.shutdown(),
}


def call_from_a_host_function(hal: Driver) -> list[str]:
    """A host function calls back; what was not refused for that reason, and whether work runs."""
    hal.ok(hal.api.init())
    stream, block = hal.stream(), hal.malloc(64)
    wrong = []

    def call_back(_: object) -> None:
        for entry, call in WITHIN.items():
            status = Status(call(hal, stream, block))
            if status is not Status.INTERNAL or f"{entry}: called from within" not in hal.message():
                wrong.append(f"{entry}: {status.name}, {hal.message()!r}")

    hal.ok(hal.api.stream_host_func(stream, hal.keep(abi.HostFunc(call_back)), None))
    hal.synchronize(stream)
    hal.memset(block, 5, 64, stream)
    assert hal.read(block, 64, stream) == b"\x05" * 64
    hal.ok(hal.api.shutdown())
    return wrong


def test_a_host_function_that_calls_back_is_refused(setup: Setup) -> None:
    assert_nothing_wrong(setup, call_from_a_host_function)


#: Workspace that a caller must not give, and what is said of it. The kernel asks for 64 bytes.
WORKSPACE: dict[str, tuple[Callable[[Driver], int], str]] = {
    "short": (lambda hal: hal.malloc(256) + 256 - 32, "has 32 bytes, not 64"),
    "misaligned": (lambda hal: hal.malloc(4096) + 32, "is not aligned to 256 bytes"),
    "of the host": (lambda hal: hal.host_malloc(4096), "is not memory of device 0"),
    "of another device": (lambda hal: hal.malloc(4096, 1), "is not memory of device 0"),
    "nothing": (lambda hal: 0, "is not memory of device 0"),
}


def give_wrong_workspace(hal: Driver) -> list[str]:
    """Launch a kernel that asks for workspace and gets what it cannot use."""
    hal.ok(hal.api.init())
    stream, operands = hal.stream(), hal.malloc(280_000)
    args = contract.struct("puone_dot_args")(
        dtype=DType.FLOAT32,
        n=70_000,
        out=hal.malloc(64),
        a=operands,
        b=operands,
        a_stride=4,
        b_stride=4,
    )
    wrong = []
    for case, (give, said) in WORKSPACE.items():

        def allocate(_: object, size: int, result: Any, give: Any = give) -> int:
            result[0] = give(hal)
            return Status.OK

        context = abi.LaunchContext(allocate=abi.Allocate(allocate))
        status = Status(
            hal.api.kernel_launch(
                hal.kernel("dot"), byref(args), sizeof(args), stream, byref(context)
            )
        )
        if status is not ARGUMENT or said not in hal.message():
            wrong.append(f"{case}: {status.name}, {hal.message()!r}")
    hal.synchronize(stream)
    hal.ok(hal.api.shutdown())
    return wrong


@needs_standin
def test_workspace_that_a_kernel_cannot_use_is_refused() -> None:
    assert_nothing_wrong(OVER_STANDIN, give_wrong_workspace)


def pinned_memory_alone(hal: Driver) -> list[str]:
    """Use what the layer cannot check, because the driver does not know its blocks."""
    hal.ok(hal.api.init())
    hal.ok(hal.api.host_free(hal.host_malloc(64)))
    hal.ok(hal.api.shutdown())
    return []


def test_a_driver_may_lack_the_entries_that_the_layer_asks() -> None:
    setup = (ODD, odd("validation_of_few_entries"))
    assert_nothing_wrong(setup, pinned_memory_alone)


FOREIGN = 1 << 56  # as in test/subjects/driver/odd.cpp


def copy_foreign_memory(hal: Driver) -> list[str]:
    """Claim that device memory of another library is host memory."""
    hal.ok(hal.api.init())
    stream, host = hal.stream(), hal.host_malloc(64)
    wrong = []
    for to, source in ((host, FOREIGN), (FOREIGN, host)):
        kind = MemcpyKind.HOST_TO_HOST
        status = Status(hal.api.memcpy_async(to, source, 64, kind, stream))
        if (
            status is not ARGUMENT
            or "is device memory, host memory was claimed" not in hal.message()
        ):
            wrong.append(f"{to:#x} from {source:#x}: {status.name}, {hal.message()!r}")
    hal.ok(hal.api.shutdown())
    return wrong


def test_memory_of_another_library_is_not_taken_for_host_memory() -> None:
    setup = (ODD, odd("validation_of_foreign_memory"))
    assert_nothing_wrong(setup, copy_foreign_memory)
