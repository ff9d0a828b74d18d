# SPDX-License-Identifier: BSD-3-Clause
"""A driver as the tests see it: the raw table, and thin helpers that expect success."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_float, c_int32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from hal_conformance import abi, kernels
from hal_conformance.abi import Capability, EventFlags, MemcpyKind, PointerAttributes, Status

_LIBC = ctypes.CDLL(None, use_errno=True)
_SEM_T_SIZE = 64  # sizeof(sem_t) is 32 on glibc, 16 on musl

# The extensions that have tests, and their versions.
EXTENSIONS = {
    "dlpack": abi.DLPACK_VERSION,
    "fault": abi.FAULT_VERSION,
    "graph": abi.GRAPH_VERSION,
    "trace": abi.TRACE_VERSION,
    "origin": abi.ORIGIN_VERSION,
    "ipc": abi.IPC_VERSION,
    "module": abi.MODULE_VERSION,
    "collective": abi.COLLECTIVE_VERSION,
}

# Names a requirement may need beside the driver's capability bits.
CONDITIONS = {
    "device": "at least one device",
    "multi_device": "at least two devices",
    "peer": "devices 0 and 1 reach each other's memory",
    "fault": 'the extension "fault"',
    "graph": 'the extension "graph"',
    "trace": 'the extension "trace"',
    "origin": 'the extension "origin"',
    "ipc": 'the extension "ipc"',
    "module": 'the extension "module"',
    "module_compiler": 'a compiler for the extension "module"',
    "collective": 'the extension "collective"',
    "kernel_copy": 'the kernel "copy"',
    "kernel_copy_bits": 'the kernel "copy_bits"',
    "kernel_delay": 'the kernel "delay"',
    "kernel_fill": 'the kernel "fill"',
}


class RunsAtOnceError(AssertionError):
    """A test needs pending work of a driver that does not queue work."""

    def __init__(self) -> None:
        super().__init__("the driver runs work on the calling thread: fix HAL-089 first")


class Gate:
    """A host function that waits until the gate opens: holds a stream without timing or the GIL.

    It is a POSIX semaphore, for sem_wait and sem_post are plain C and fit puone_host_func.
    """

    def __init__(self) -> None:
        self._semaphore = ctypes.create_string_buffer(_SEM_T_SIZE)
        self.address = ctypes.addressof(self._semaphore)
        self.function = ctypes.cast(_LIBC.sem_wait, abi.HostFunc)
        _LIBC.sem_init(c_void_p(self.address), 0, 0)

    def open(self) -> None:
        _LIBC.sem_post(c_void_p(self.address))


class Flag:
    """A host function that raises a flag; also plain C, so it runs without the GIL."""

    def __init__(self) -> None:
        self._gate = Gate()
        self.address = self._gate.address
        self.function = ctypes.cast(_LIBC.sem_post, abi.HostFunc)

    def times(self) -> int:
        value = ctypes.c_int()
        _LIBC.sem_getvalue(c_void_p(self.address), byref(value))
        return value.value


class Workspace:
    """A launch context whose memory comes from malloc(), and goes back when the launch is done."""

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver = driver
        self._device = device
        self._blocks: list[int] = []
        # A ctypes callback is kept alive by its struct.
        self.context = abi.LaunchContext(allocate=abi.Allocate(self._allocate))

    def _allocate(self, _: int | None, size: int, out: Any) -> int:
        status = int(self._driver.api.malloc(self._device, size, out))
        if status == Status.OK:
            self._blocks.append(out[0])
        return status

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        for block in self._blocks:
            self._driver.free(block)


class Driver:
    """One loaded driver library. `api` is its table; the methods assert that a call succeeds."""

    #: What the library exports: another name where the contract has other names (--driver-symbol).
    symbol = abi.GET_SYMBOL

    def __init__(self, path: str | Path, runs_at_once: bool = False) -> None:
        self.path = Path(path)
        self._runs_at_once = runs_at_once
        library = ctypes.CDLL(str(path))
        self.get = abi.Get((self.symbol, library))
        table = ctypes.POINTER(abi.HalApi)()
        status = Status(self.get(abi.ABI_MAJOR, byref(table)))
        assert status is Status.OK, f"{self.symbol}({abi.ABI_MAJOR}) returned {status.name}"
        assert table, f"{self.symbol} returned OK and no table"
        self.api = table.contents
        # What the driver may still use at shutdown: gates, callbacks, host memory of copies.
        self._kept: list[Any] = []

    # ---- status ----

    def ok(self, status: int) -> None:
        """Assert that a call succeeded; say the driver's reason if it did not."""
        assert status == Status.OK, f"{Status(status).name}: {self.message()}"

    def message(self) -> str:
        if not self.has_entry("last_error_message"):
            return "the driver has no last_error_message, so it cannot say why"
        text = self.api.last_error_message()
        assert text is not None, "last_error_message returned NULL"
        return str(text.decode(errors="replace"))

    def keep(self, thing: Any) -> Any:
        """Keep `thing` alive as long as this driver; returns it."""
        self._kept.append(thing)
        return thing

    # ---- what the driver offers ----

    def has_entry(self, name: str) -> bool:
        end = getattr(abi.HalApi, name).offset + ctypes.sizeof(c_void_p)
        return self.api.struct_size >= end and bool(getattr(self.api, name))

    def info(self) -> abi.DriverInfo:
        info = abi.DriverInfo()
        self.ok(self.api.describe(byref(info)))
        return info

    def capabilities(self) -> Capability:
        return Capability(self.info().capabilities & abi.ALL_CAPABILITIES)

    def missing_capability(self, needs: Iterable[str]) -> str | None:
        """The first of `needs` whose capability bit is clear. Asks only describe()."""
        have = self.capabilities()
        for need in needs:
            if need not in CONDITIONS and Capability[need.upper()] not in have:
                return f"capability {need.upper()}"
        return None

    def missing_condition(self, needs: Iterable[str]) -> str | None:
        """The first of `needs` that this machine or driver does not meet. Needs init()."""
        for need in needs:
            if need in CONDITIONS and not self._meets(need):
                return CONDITIONS[need]
        return None

    def _meets(self, need: str) -> bool:
        if need == "device":
            return self.count() >= 1
        if need == "multi_device":
            return self.count() >= 2
        if need == "peer":
            return self.count() >= 2 and all(self.can_access_peer(a, 1 - a) for a in (0, 1))
        if need in EXTENSIONS:
            return self._extension(need) is not None
        if need == "module_compiler":
            return self.module().target(-1, byref(abi.ModuleTarget())) != Status.UNSUPPORTED
        out = c_void_p()
        name = need.removeprefix("kernel_").encode()
        return Capability.KERNELS in self.capabilities() and (
            self.api.kernel_find(name, None, byref(out)) == Status.OK
        )

    def _extension(self, name: str) -> int | None:
        out = c_void_p()
        if not self.has_entry("get_extension"):
            return None
        status = self.api.get_extension(name.encode(), EXTENSIONS[name], byref(out))
        return out.value if status == Status.OK else None

    def is_on_shared_runtime(self) -> bool:
        """Whether other libraries of a process use the native runtime below the driver as well."""
        return self._extension("dlpack") is not None

    def _extension_there(self, name: str) -> int:
        address = self._extension(name)
        assert address, f"the driver offers no {name} extension"
        return address

    def fault(self) -> abi.FaultApi:
        return abi.FaultApi.from_address(self._extension_there("fault"))

    def graph(self) -> abi.GraphApi:
        return abi.GraphApi.from_address(self._extension_there("graph"))

    def trace(self) -> abi.TraceApi:
        return abi.TraceApi.from_address(self._extension_there("trace"))

    def origin(self) -> abi.OriginApi:
        return abi.OriginApi.from_address(self._extension_there("origin"))

    def ipc(self) -> abi.IpcApi:
        return abi.IpcApi.from_address(self._extension_there("ipc"))

    def module(self) -> abi.ModuleApi:
        return abi.ModuleApi.from_address(self._extension_there("module"))

    def collective(self) -> abi.CollectiveApi:
        return abi.CollectiveApi.from_address(self._extension_there("collective"))

    # ---- devices ----

    def count(self) -> int:
        out = c_int32()
        self._answers("device_count", byref(out))
        return out.value

    def properties(self, device: int = 0) -> abi.DeviceProperties:
        out = abi.DeviceProperties()
        self.ok(self.api.device_properties(device, byref(out)))
        return out

    def memory_info(self, device: int = 0) -> tuple[int, int]:
        free, total = c_uint64(), c_uint64()
        self.ok(self.api.device_memory_info(device, byref(free), byref(total)))
        return free.value, total.value

    def can_access_peer(self, device: int, peer: int) -> bool:
        out = c_int32()
        if not self._answers("device_can_access_peer", device, peer, byref(out)):
            return device == peer
        return bool(out.value)

    def priority_range(self, device: int = 0) -> tuple[int, int]:
        """The least and the greatest priority of a stream."""
        least, greatest = c_int32(), c_int32()
        self._answers("stream_priority_range", device, byref(least), byref(greatest))
        return least.value, greatest.value

    def _answers(self, entry: str, *arguments: Any) -> bool:
        """Call an entry that may be NULL or unsupported, unless a capability promises it."""
        if not self.has_entry(entry):
            return False
        status = getattr(self.api, entry)(*arguments)
        if status == Status.UNSUPPORTED:
            return False
        self.ok(status)
        return True

    # ---- memory ----

    def malloc(self, size: int, device: int = 0) -> int:
        out = c_void_p()
        self.ok(self.api.malloc(device, size, byref(out)))
        assert out.value, "malloc returned OK and NULL"
        return out.value

    def free(self, address: int) -> None:
        self.ok(self.api.free(address))

    def host_malloc(self, size: int) -> int:
        out = c_void_p()
        self.ok(self.api.host_malloc(size, byref(out)))
        assert out.value, "host_malloc returned OK and NULL"
        return out.value

    def attributes(self, address: int | None) -> PointerAttributes:
        out = PointerAttributes()
        self.ok(self.api.pointer_attributes(address, byref(out)))
        return out

    def copy(self, dst: int, src: int, size: int, kind: MemcpyKind, stream: int) -> None:
        self.ok(self.api.memcpy_async(dst, src, size, kind, stream))

    def write(self, dst: int, data: bytes, stream: int) -> None:
        """Queue writing `data` to device memory from ordinary host memory."""
        source = self.keep(ctypes.create_string_buffer(data, len(data)))
        self.copy(dst, ctypes.addressof(source), len(data), MemcpyKind.HOST_TO_DEVICE, stream)

    def read(self, src: int, size: int, stream: int) -> bytes:
        """Bytes of device memory once everything queued on `stream` is done. Waits."""
        target = self.keep(ctypes.create_string_buffer(size))
        self.copy(ctypes.addressof(target), src, size, MemcpyKind.DEVICE_TO_HOST, stream)
        self.synchronize(stream)
        return bytes(target.raw)

    def memset(self, dst: int, value: int, size: int, stream: int) -> None:
        self.ok(self.api.memset_async(dst, value, size, stream))

    # ---- streams ----

    def stream(self, device: int = 0, priority: int = 0) -> int:
        out = c_void_p()
        self.ok(self.api.stream_create(device, priority, byref(out)))
        assert out.value, "stream_create returned OK and NULL"
        return out.value

    def native(self, stream: int) -> int:
        """The native object behind a stream."""
        out = c_void_p()
        self.ok(self.api.stream_native_handle(stream, byref(out)))
        assert out.value, "stream_native_handle returned OK and NULL"
        return out.value

    def from_native(self, native: int, device: int = 0) -> int:
        out = c_void_p()
        self.ok(self.api.stream_from_native(device, native, byref(out)))
        assert out.value, "stream_from_native returned OK and NULL"
        return out.value

    def synchronize(self, stream: int) -> None:
        self.ok(self.api.stream_synchronize(stream))

    def query(self, stream: int) -> Status:
        return Status(self.api.stream_query(stream))

    @contextmanager
    def held(self, stream: int) -> Iterator[None]:
        """Hold `stream`: work queued inside the block stays pending until the block ends."""
        if self._runs_at_once:
            raise RunsAtOnceError  # The gate would hold the calling thread, for ever.
        gate = self.keep(Gate())
        self.ok(self.api.stream_host_func(stream, gate.function, gate.address))
        try:
            yield
        finally:
            gate.open()

    def flag(self, stream: int) -> Flag:
        """Queue raising the returned flag."""
        flag: Flag = self.keep(Flag())
        self.ok(self.api.stream_host_func(stream, flag.function, flag.address))
        return flag

    # ---- events ----

    def event(self, flags: EventFlags = EventFlags.DEFAULT, device: int = 0) -> int:
        out = c_void_p()
        self.ok(self.api.event_create(device, flags, byref(out)))
        assert out.value, "event_create returned OK and NULL"
        return out.value

    def record(self, event: int, stream: int) -> None:
        self.ok(self.api.event_record(event, stream))

    def wait(self, stream: int, event: int) -> None:
        self.ok(self.api.stream_wait_event(stream, event))

    def event_query(self, event: int) -> Status:
        return Status(self.api.event_query(event))

    def elapsed(self, start: int, end: int) -> float:
        out = c_float()
        self.ok(self.api.event_elapsed_ms(start, end, byref(out)))
        return out.value

    # ---- kernels ----

    def kernel(self, name: str) -> int:
        out = c_void_p()
        self.ok(self.api.kernel_find(name.encode(), None, byref(out)))
        assert out.value, "kernel_find returned OK and NULL"
        return out.value

    def kernel_info(self, name: str) -> abi.KernelInfo | None:
        """What the driver's kernel takes, or None if the driver lacks it."""
        info, out = abi.KernelInfo(), c_void_p()
        status = self.api.kernel_find(name.encode(), byref(info), byref(out))
        if status == Status.UNSUPPORTED:
            return None
        self.ok(status)
        return info

    def launch(self, name: str, args: ctypes.Structure, stream: int, device: int = 0) -> None:
        """Launch a kernel. Waits for it only if it asks for workspace."""
        status, message = self.try_launch(name, args, stream, device)
        assert status is Status.OK, f"{status.name}: {message}"

    def try_launch(
        self, name: str, args: ctypes.Structure, stream: int, device: int = 0
    ) -> tuple[Status, str]:
        """As launch(), but returns what kernel_launch() says, and its message if it fails."""
        kernel, size = self.kernel(name), ctypes.sizeof(args)
        with Workspace(self, device) as workspace:
            status = Status(
                self.api.kernel_launch(kernel, byref(args), size, stream, byref(workspace.context))
            )
            return status, "" if status is Status.OK else self.message()

    def delay(self, stream: int, milliseconds: float) -> None:
        self.launch("delay", kernels.delay(milliseconds), stream)
