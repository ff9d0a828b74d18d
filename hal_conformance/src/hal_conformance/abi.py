# SPDX-License-Identifier: BSD-3-Clause
"""The C contract of a driver, mirrored in ctypes: constants, structs and the table of entries.

The header `csrc/hal/hal.h` is the authority. The project's tests compile it and compare every
constant, size, offset and signature with this file.
"""

from __future__ import annotations

import ctypes
import enum
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

ABI_MAJOR = 2
ABI_MINOR = 0
GET_SYMBOL = "puone_hal_get"
NAME_MAX = 128
KERNEL_SET_VERSION = 3
FAULT_EXTENSION = b"fault"
FAULT_VERSION = 1
DLPACK_EXTENSION = b"dlpack"
DLPACK_VERSION = 1
GRAPH_EXTENSION = b"graph"
GRAPH_VERSION = 1
TRACE_EXTENSION = b"trace"
TRACE_VERSION = 1
ORIGIN_EXTENSION = b"origin"
ORIGIN_VERSION = 1
IPC_VERSION = 1
MODULE_VERSION = 1
MODULE_MAX_ERRORS = 4
COLLECTIVE_VERSION = 1


class Status(enum.IntEnum):
    OK = 0
    NOT_READY = 1
    INVALID_ARGUMENT = 2
    INVALID_DEVICE = 3
    OUT_OF_MEMORY = 4
    UNSUPPORTED = 5
    DEVICE_LOST = 6
    INTERNAL = 7


class Capability(enum.IntFlag):
    STREAMS = 1 << 0
    STREAM_PRIORITIES = 1 << 1
    HOST_FUNC = 1 << 2
    EVENTS = 1 << 3
    EVENT_TIMING = 1 << 4
    MEMORY = 1 << 5
    PINNED_MEMORY = 1 << 6
    PEER_ACCESS = 1 << 7
    KERNELS = 1 << 8
    EXTERNAL_STREAMS = 1 << 9
    VALIDATION = 1 << 10


ALL_CAPABILITIES = sum(Capability.__members__.values())


class MemoryKind(enum.IntEnum):
    UNREGISTERED = 0
    HOST = 1
    DEVICE = 2


class MemcpyKind(enum.IntEnum):
    HOST_TO_HOST = 0
    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    DEVICE_TO_DEVICE = 3


class EventFlags(enum.IntFlag):
    DEFAULT = 0
    TIMING = 1 << 0
    BLOCKING_SYNC = 1 << 1


class ModuleFlags(enum.IntFlag):
    DEFAULT = 0
    UNCONTRACTED = 1 << 0


class ModuleAccessFlags(enum.IntFlag):
    READ = 1 << 0
    WRITE = 1 << 1
    PARTIAL = 1 << 2


class TraceKind(enum.IntEnum):
    COPY = 0
    FILL = 1
    KERNEL = 2
    HOST_FUNC = 3
    GRAPH = 4


class Sized(ctypes.Structure):
    """A struct that a driver fills: it begins with its size, which the caller sets."""

    struct_size: int

    def __init__(self, **values: Any) -> None:
        super().__init__(**{"struct_size": ctypes.sizeof(self), **values})


class DriverInfo(Sized):
    kernel_set_version: int
    name: bytes | None
    vendor: bytes | None
    version: bytes | None
    capabilities: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("kernel_set_version", c_uint32),
        ("name", c_char_p),
        ("vendor", c_char_p),
        ("version", c_char_p),
        ("capabilities", c_uint64),
    ]


class DeviceProperties(Sized):
    memory_alignment: int
    name: bytes
    total_memory: int
    major: int
    minor: int
    multiprocessor_count: int
    warp_size: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("memory_alignment", c_int32),
        ("name", c_char * NAME_MAX),
        ("total_memory", c_uint64),
        ("major", c_int32),
        ("minor", c_int32),
        ("multiprocessor_count", c_int32),
        ("warp_size", c_int32),
    ]


class PointerAttributes(Sized):
    kind: int
    device: int
    base: int | None
    size: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_int32),
        ("device", c_int32),
        ("reserved", c_int32),
        ("base", c_void_p),
        ("size", c_size_t),
    ]


class KernelInfo(Sized):
    version: int
    element_types: int
    args_size: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        ("element_types", c_uint64),
        ("args_size", c_uint64),
    ]


Allocate = ctypes.CFUNCTYPE(c_int32, c_void_p, c_size_t, POINTER(c_void_p))


class LaunchContext(Sized):
    """What a launch may ask of its caller: workspace."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("allocate", Allocate),
        ("user", c_void_p),
    ]


# ctypes releases the GIL around a call through CFUNCTYPE, so a blocked entry blocks one thread.
HostFunc = ctypes.CFUNCTYPE(None, c_void_p)

# Every entry of puone_hal_api after the header, in table order: argument types. All of them return
# a puone_status but for last_error_message. Handles are plain addresses.
ENTRIES: dict[str, tuple[type, ...]] = {
    "init": (),
    "shutdown": (),
    "describe": (POINTER(DriverInfo),),
    "last_error_message": (),
    "device_count": (POINTER(c_int32),),
    "device_properties": (c_int32, POINTER(DeviceProperties)),
    "device_memory_info": (c_int32, POINTER(c_uint64), POINTER(c_uint64)),
    "device_synchronize": (c_int32,),
    "stream_priority_range": (c_int32, POINTER(c_int32), POINTER(c_int32)),
    "device_can_access_peer": (c_int32, c_int32, POINTER(c_int32)),
    "malloc": (c_int32, c_size_t, POINTER(c_void_p)),
    "free": (c_void_p,),
    "host_malloc": (c_size_t, POINTER(c_void_p)),
    "host_free": (c_void_p,),
    "pointer_attributes": (c_void_p, POINTER(PointerAttributes)),
    "memcpy_async": (c_void_p, c_void_p, c_size_t, c_int32, c_void_p),
    "memset_async": (c_void_p, c_int32, c_size_t, c_void_p),
    "stream_create": (c_int32, c_int32, POINTER(c_void_p)),
    "stream_from_native": (c_int32, c_void_p, POINTER(c_void_p)),
    "stream_destroy": (c_void_p,),
    "stream_query": (c_void_p,),
    "stream_synchronize": (c_void_p,),
    "stream_wait_event": (c_void_p, c_void_p),
    "stream_host_func": (c_void_p, HostFunc, c_void_p),
    "stream_native_handle": (c_void_p, POINTER(c_void_p)),
    "event_create": (c_int32, c_uint32, POINTER(c_void_p)),
    "event_destroy": (c_void_p,),
    "event_record": (c_void_p, c_void_p),
    "event_query": (c_void_p,),
    "event_synchronize": (c_void_p,),
    "event_elapsed_ms": (c_void_p, c_void_p, POINTER(c_float)),
    "kernel_find": (c_char_p, POINTER(KernelInfo), POINTER(c_void_p)),
    "kernel_launch": (c_void_p, c_void_p, c_size_t, c_void_p, POINTER(LaunchContext)),
    "get_extension": (c_char_p, c_uint32, POINTER(c_void_p)),
}

# Which entries a capability bit promises; validation, which says how misuse is answered, none.
ENTRIES_OF: dict[Capability, tuple[str, ...]] = {
    Capability.STREAMS: (
        "device_synchronize",
        "stream_create",
        "stream_destroy",
        "stream_query",
        "stream_synchronize",
        "stream_native_handle",
    ),
    Capability.STREAM_PRIORITIES: ("stream_priority_range",),
    Capability.HOST_FUNC: ("stream_host_func",),
    Capability.EVENTS: (
        "event_create",
        "event_destroy",
        "event_record",
        "event_query",
        "event_synchronize",
        "stream_wait_event",
    ),
    Capability.EVENT_TIMING: ("event_elapsed_ms",),
    Capability.MEMORY: (
        "malloc",
        "free",
        "pointer_attributes",
        "memcpy_async",
        "memset_async",
        "device_properties",
        "device_memory_info",
    ),
    Capability.PINNED_MEMORY: ("host_malloc", "host_free"),
    Capability.PEER_ACCESS: ("device_can_access_peer",),
    Capability.KERNELS: ("kernel_find", "kernel_launch"),
    Capability.EXTERNAL_STREAMS: ("stream_from_native",),
}

# The entries of the section "device": they may work without the bit that promises them.
OF_DEVICE = frozenset(
    {
        "device_properties",
        "device_memory_info",
        "device_synchronize",
        "stream_priority_range",
        "device_can_access_peer",
    }
)

# Entries that every driver has.
MANDATORY = ("init", "shutdown", "describe", "last_error_message", "device_count")
# NULL in a driver without extensions.
OPTIONAL = ("get_extension",)


def _function(name: str, arguments: tuple[type, ...]) -> type:
    result = c_char_p if name == "last_error_message" else c_int32
    return ctypes.CFUNCTYPE(result, *arguments)


class HalApi(ctypes.Structure):
    """puone_hal_api: the table a driver returns."""

    struct_size: int
    abi_major: int
    abi_minor: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi_major", c_uint16),
        ("abi_minor", c_uint16),
        *((name, _function(name, arguments)) for name, arguments in ENTRIES.items()),
    ]


FAULT_ENTRIES: dict[str, tuple[type, ...]] = {
    "out_of_memory_at": (c_uint64,),
    "kernel_error_at": (c_uint64,),
    "device_lost": (c_int32,),
    "latency_ns": (c_uint64,),
    "reset": (),
}


class FaultApi(ctypes.Structure):
    """puone_fault_api: the optional table of injected faults."""

    struct_size: int
    version: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, _function(name, arguments)) for name, arguments in FAULT_ENTRIES.items()),
    ]


DLPACK_ENTRIES: dict[str, tuple[type, ...]] = {
    "device_id": (c_int32, POINTER(c_int32)),
    "native_stream_wait_event": (c_void_p, c_void_p),
}


class DlpackApi(ctypes.Structure):
    """puone_dlpack_api: the optional table for exchange with libraries on the same runtime."""

    struct_size: int
    version: int
    device_type: int
    default_stream: int | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        ("device_type", c_int32),
        ("reserved", c_int32),
        ("default_stream", c_void_p),
        *((name, _function(name, arguments)) for name, arguments in DLPACK_ENTRIES.items()),
    ]


GRAPH_ENTRIES: dict[str, tuple[type, ...]] = {
    "capture_begin": (c_void_p,),
    "capture_end": (c_void_p, POINTER(c_void_p)),
    "is_capturing": (c_void_p, POINTER(c_int32)),
    "instantiate": (c_void_p,),
    "launch": (c_void_p, c_void_p),
    "destroy": (c_void_p,),
}


class GraphApi(ctypes.Structure):
    """puone_graph_api: the optional table for work that is captured and launched again."""

    struct_size: int
    version: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, _function(name, arguments)) for name, arguments in GRAPH_ENTRIES.items()),
    ]


class TraceRecord(ctypes.Structure):
    name: bytes
    stream: int | None
    begin_ns: int
    end_ns: int
    bytes: int
    correlation: int
    kind: int
    device: int
    _fields_ = [
        ("name", c_char_p),
        ("stream", c_void_p),
        ("begin_ns", c_uint64),
        ("end_ns", c_uint64),
        ("bytes", c_uint64),
        ("correlation", c_uint64),
        ("kind", c_int32),
        ("device", c_int32),
    ]


TRACE_ENTRIES: dict[str, tuple[type, ...]] = {
    "start": (),
    "stop": (POINTER(POINTER(TraceRecord)), POINTER(c_uint64)),
    "correlation": (POINTER(c_uint64),),
}


class TraceApi(ctypes.Structure):
    """puone_trace_api: the optional table that records what the device did, and when."""

    struct_size: int
    version: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, _function(name, arguments)) for name, arguments in TRACE_ENTRIES.items()),
    ]


ORIGIN_ENTRIES: dict[str, tuple[type, ...]] = {
    "set": (c_uint64,),
    "failed": (POINTER(c_uint64),),
}


class OriginApi(ctypes.Structure):
    """puone_origin_api of hal/origin.h: the optional table that tells which work failed late."""

    struct_size: int
    version: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, _function(name, arguments)) for name, arguments in ORIGIN_ENTRIES.items()),
    ]


class IpcMemoryHandle(ctypes.Structure):
    """puone_ipc_memory_handle: plain bytes that name a block to other processes."""

    _fields_ = [("bytes", c_uint8 * 64)]


IPC_ENTRIES: dict[str, tuple[type, ...]] = {
    "export_memory": (c_void_p, POINTER(IpcMemoryHandle)),
    "open_memory": (c_int32, POINTER(IpcMemoryHandle), POINTER(c_void_p)),
    "close_memory": (c_void_p,),
}


class IpcApi(ctypes.Structure):
    """puone_ipc_api of hal/ipc.h: the optional table for memory that processes share."""

    struct_size: int
    version: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, _function(name, arguments)) for name, arguments in IPC_ENTRIES.items()),
    ]


class ModuleTarget(Sized):
    """puone_module_target of hal/module.h: what images are compiled for."""

    name: bytes
    flavour: bytes
    identity: bytes
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char * NAME_MAX),
        ("flavour", c_char * NAME_MAX),
        ("identity", c_char * NAME_MAX),
    ]


class ModuleOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("target", c_char_p)]


class ModuleArguments(ctypes.Structure):
    """puone_module_arguments: the first member of the argument struct of each kernel."""

    _fields_ = [
        ("error", c_void_p),
        ("count", c_int64),
        ("work", c_int64),
        ("codes", c_uint32 * MODULE_MAX_ERRORS),
    ]


class ModuleNumber(ctypes.Structure):
    _fields_ = [("value", c_int64), ("argument", c_uint64)]


class ModuleStep(ctypes.Structure):
    _fields_ = [("size", ModuleNumber), ("stride", ModuleNumber)]


class ModuleAccess(ctypes.Structure):
    """puone_module_access: what a kernel does with one address among its arguments."""

    name: bytes
    pointer: int
    flags: int
    element: int
    step_count: int
    _fields_ = [
        ("name", c_char_p),
        ("pointer", c_uint64),
        ("flags", c_uint32),
        ("element", c_uint32),
        ("step_count", c_uint64),
        ("steps", POINTER(ModuleStep)),
    ]


class ModuleKernel(Sized):
    """puone_module_kernel: what the caller says of a kernel."""

    name: bytes
    args_size: int
    access_count: int
    error_count: int
    accesses: Any
    errors: Any
    _fields_ = [
        ("struct_size", c_uint32),
        ("error_count", c_uint32),
        ("name", c_char_p),
        ("args_size", c_uint64),
        ("access_count", c_uint64),
        ("accesses", POINTER(ModuleAccess)),
        ("errors", POINTER(c_char_p)),
    ]


MODULE_ENTRIES: dict[str, tuple[type, ...]] = {
    "target": (c_int32, POINTER(ModuleTarget)),
    "compile": (c_char_p, POINTER(ModuleOptions), POINTER(c_void_p), POINTER(c_size_t)),
    "free_image": (c_void_p,),
    "load": (c_int32, c_void_p, c_size_t, POINTER(c_void_p)),
    "find": (c_void_p, POINTER(ModuleKernel), POINTER(c_void_p)),
    "declaration": (c_void_p, POINTER(POINTER(ModuleKernel))),
    "unload": (c_void_p,),
}


class ModuleApi(ctypes.Structure):
    """puone_module_api of hal/module.h: the optional table of kernels compiled at run time."""

    struct_size: int
    version: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, _function(name, arguments)) for name, arguments in MODULE_ENTRIES.items()),
    ]


class Reduction(enum.IntEnum):
    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    AVERAGE = 4


class CollectiveId(ctypes.Structure):
    """puone_collective_id: plain bytes that name one communicator to all of its ranks."""

    _fields_ = [("bytes", c_uint8 * 128)]


class DeviceIdentity(ctypes.Structure):
    """puone_device_identity: names a device to all processes of all machines."""

    _fields_ = [("bytes", c_uint8 * 16)]


COLLECTIVE_ENTRIES: dict[str, tuple[type, ...]] = {
    "identify": (c_int32, POINTER(DeviceIdentity)),
    "create_id": (POINTER(CollectiveId),),
    "init": (c_int32, POINTER(CollectiveId), c_int32, c_int32, c_uint32, POINTER(c_void_p)),
    "destroy": (c_void_p,),
    "abort": (c_void_p,),
    "query": (c_void_p,),
    "all_reduce": (c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_int32, c_void_p),
    "broadcast": (c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_int32, c_void_p),
    "reduce": (c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_int32, c_int32, c_void_p),
    "all_gather": (c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_void_p),
    "reduce_scatter": (c_void_p, c_void_p, c_void_p, c_uint64, c_int32, c_int32, c_void_p),
    "send": (c_void_p, c_void_p, c_uint64, c_int32, c_int32, c_void_p),
    "recv": (c_void_p, c_void_p, c_uint64, c_int32, c_int32, c_void_p),
    "group_begin": (c_void_p,),
    "group_end": (c_void_p,),
}


class CollectiveApi(ctypes.Structure):
    """puone_collective_api of hal/collective.h: the optional table for exchange among processes."""

    struct_size: int
    version: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, _function(name, arguments)) for name, arguments in COLLECTIVE_ENTRIES.items()),
    ]


Get = ctypes.CFUNCTYPE(c_int32, c_uint32, POINTER(POINTER(HalApi)))
