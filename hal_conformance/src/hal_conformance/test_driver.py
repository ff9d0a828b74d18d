# SPDX-License-Identifier: BSD-3-Clause
"""init, shutdown, fork and error messages."""

from __future__ import annotations

import ctypes
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_int32, c_void_p
from functools import partial
from pathlib import Path

import pytest

from hal_conformance import abi
from hal_conformance.abi import Status
from hal_conformance.covers import covers
from hal_conformance.driver import CONDITIONS, Driver
from hal_conformance.process import run_in_child
from hal_conformance.test_stream import wait_until

OUT_OF_RANGE = 1 << 20  # a device index no machine has


# How the names of threads begin that a vendor's runtime starts with a device's context and keeps
# until the process ends: they are not the driver's to join.
RUNTIMES = ("cuda",)


def threads() -> int:
    """The number of threads of this process, without those of a vendor's runtime."""
    return len([thread for thread in Path("/proc/self/task").iterdir() if not _of_runtime(thread)])


def _of_runtime(thread: Path) -> bool:
    try:
        return (thread / "comm").read_text().startswith(RUNTIMES)
    except OSError:  # it has just ended
        return False


def _initialised(library: Driver) -> Driver:
    if library.api.init() == Status.UNSUPPORTED:
        pytest.skip("not there: init")
    return library


@covers("HAL-010")
def test_init_is_idempotent_and_starts_no_thread(library: Driver) -> None:
    before = threads()
    statuses = [library.api.init() for _ in range(5)]
    assert statuses == [Status.OK] * 5
    library.count()
    assert threads() == before


@covers("HAL-010")
def test_init_may_run_on_many_threads_at_once(library: Driver) -> None:
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: library.api.init(), range(64)))
    assert statuses == [Status.OK] * 64


@covers("HAL-010")
def test_no_thread_is_there_before_a_stream_has_work(hal: Driver) -> None:
    before = threads()
    for device in range(hal.count()):
        hal.properties(device)
        hal.memory_info(device)
    assert threads() == before


def _use_every_device(hal: Driver) -> bytes:
    for device in range(hal.count()):
        stream, block = hal.stream(device), hal.malloc(256, device)
        hal.memset(block, 7, 256, stream)
        assert hal.read(block, 256, stream) == b"\x07" * 256
    hal.ok(hal.api.shutdown())
    return b"used"


@covers("HAL-011")
def test_a_child_forked_after_init_uses_every_device(hal: Driver) -> None:
    hal.count()
    ending = run_in_child(lambda: _use_every_device(hal), 10)
    assert (str(ending), ending.payload) == ("exit status 0", b"used")
    _use_every_device_here(hal)


def _use_every_device_here(hal: Driver) -> None:
    for device in range(hal.count()):
        hal.read(hal.malloc(256, device), 256, hal.stream(device))


@covers("HAL-012", patience=3)
def test_shutdown_finishes_queued_work_and_joins_every_thread(
    library: Driver, request: pytest.FixtureRequest
) -> None:
    """A native runtime that other libraries use, too, may keep a thread: it is not the driver's."""
    left = [_left_by_streams(library, count, request) for count in (1, 8)]
    assert left[1] <= left[0], f"more threads are left after more streams: {left}"
    assert left[0] == 0 or library.is_on_shared_runtime(), "a thread of the driver is left"


def _left_by_streams(library: Driver, count: int, request: pytest.FixtureRequest) -> int:
    seconds = request.config.getoption("driver_deadline")
    ending = run_in_child(partial(_use_streams, library, count), seconds)
    assert str(ending) == "exit status 0", ending
    if not ending.payload:
        pytest.skip(f"not there: {CONDITIONS['device']}")  # no stream can be used
    return int(ending.payload)


def _use_streams(driver: Driver, count: int) -> bytes:
    """How many threads are left when `count` streams of each device have worked."""
    driver.ok(driver.api.init())
    if not driver.count():
        return b""
    before = threads()
    streams = [driver.stream(device) for device in range(driver.count()) for _ in range(count)]
    flags = [driver.flag(stream) for stream in streams for _ in range(50)]
    driver.ok(driver.api.shutdown())
    assert [flag.times() for flag in flags] == [1] * len(flags)
    wait_until(lambda: threads() <= before, 1.0)
    return b"%d" % (threads() - before)


@covers("HAL-012")
def test_shutdown_waits_for_work_in_flight(running: Driver) -> None:
    stream = running.stream()
    with ThreadPoolExecutor(1) as pool:
        with running.held(stream):
            flag = running.flag(stream)
            ending = pool.submit(running.api.shutdown)
            time.sleep(0.05)
            assert not ending.done(), "shutdown returned while work was held"
        assert ending.result() == Status.OK
    assert flag.times() == 1


@covers("HAL-013")
def test_shutdown_in_a_forked_child_returns_at_once(hal: Driver) -> None:
    stream = hal.stream()
    hal.flag(stream)
    hal.synchronize(stream)

    def child() -> bytes:
        started = time.monotonic()
        hal.api.shutdown()
        return b"soon" if time.monotonic() - started < 1.0 else b"late"

    with hal.held(stream):
        hal.flag(stream)
        ending = run_in_child(child, 10)
    assert (str(ending), ending.payload) == ("exit status 0", b"soon")


@covers("HAL-014")
def test_the_message_is_empty_until_a_call_fails(library: Driver) -> None:
    assert library.message() == ""
    _initialised(library)
    assert library.message() == ""


def _ask_for_nothing(hal: Driver) -> int:
    """A call that every driver fails."""
    if not hal.has_entry("get_extension"):
        pytest.skip("not there: get_extension")
    return int(hal.api.get_extension(b"puone_nothing", 1, byref(c_void_p())))


@covers("HAL-014")
def test_the_message_names_the_entry_that_failed(hal: Driver) -> None:
    assert _ask_for_nothing(hal) == Status.UNSUPPORTED
    message = hal.message()
    assert message.startswith("get_extension: ")
    assert "puone_nothing" in message, "the message does not say which extension was asked for"


@covers("HAL-014", needs=("device", "validation"))
def test_the_message_says_what_was_refused(hal: Driver) -> None:
    assert hal.api.device_synchronize(OUT_OF_RANGE) == Status.INVALID_DEVICE
    message = hal.message()
    assert message.startswith("device_synchronize: ")
    assert str(OUT_OF_RANGE) in message, "the message does not say which index was refused"


@covers("HAL-014", needs=("validation",))
def test_the_message_is_of_the_last_failure(hal: Driver) -> None:
    """Whether the layer around a driver refused the call, or the driver itself."""
    for _ in range(2):
        hal.api.device_synchronize(OUT_OF_RANGE)
        assert hal.message().startswith("device_synchronize: ")
        _ask_for_nothing(hal)
        assert hal.message().startswith("get_extension: ")


@covers("HAL-014")
def test_the_message_belongs_to_the_calling_thread(hal: Driver) -> None:
    assert _ask_for_nothing(hal) == Status.UNSUPPORTED
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(hal.message()))
    thread.start()
    thread.join()
    assert elsewhere == [""]
    assert "get_extension" in hal.message()


@covers("HAL-015", needs=("validation",))
def test_a_refused_index_leaves_the_outputs_untouched(hal: Driver) -> None:
    out = c_int32(-77)
    assert hal.api.device_can_access_peer(OUT_OF_RANGE, 0, byref(out)) == Status.INVALID_DEVICE
    assert out.value == -77


@covers("HAL-015", needs=("device", "memory", "validation"))
def test_a_refused_allocation_leaves_the_output_untouched(hal: Driver) -> None:
    out = c_void_p(0x5A5A)
    assert hal.api.malloc(0, 0, byref(out)) == Status.INVALID_ARGUMENT
    assert hal.api.malloc(0, 1 << 62, byref(out)) == Status.OUT_OF_MEMORY
    assert out.value == 0x5A5A


@covers("HAL-015", needs=("device", "events", "validation"))
def test_a_refused_event_leaves_the_output_untouched(hal: Driver) -> None:
    out = c_void_p(0x5A5A)
    assert hal.api.event_create(0, 1 << 30, byref(out)) == Status.INVALID_ARGUMENT
    assert out.value == 0x5A5A


NULL_OUT = {
    "device_count": (),
    "device_properties": (0,),
    "device_can_access_peer": (0, 0),
    "malloc": (0, 256),
    "host_malloc": (256,),
    "pointer_attributes": (0x1000,),
    "stream_create": (0, 0),
    "event_create": (0, 0),
    "kernel_find": (b"delay", None),
    "get_extension": (b"fault", 1),
}


@covers("HAL-016", needs=("device", "validation"))
@pytest.mark.parametrize("entry", NULL_OUT)
def test_a_null_output_is_refused(hal: Driver, entry: str) -> None:
    status = getattr(hal.api, entry)(*NULL_OUT[entry], None) if hal.has_entry(entry) else None
    if status in (None, Status.UNSUPPORTED):
        pytest.skip(f"not there: {entry}")
    assert status == Status.INVALID_ARGUMENT


@covers("HAL-016", needs=("device", "validation"))
@pytest.mark.parametrize("entry", ["device_memory_info", "stream_priority_range"])
def test_either_of_two_null_outputs_is_refused(hal: Driver, entry: str) -> None:
    if not hal.has_entry(entry):  # no capability need promise it, and then it may be NULL
        pytest.skip(f"not there: {entry}")
    call = getattr(hal.api, entry)
    kind = call.argtypes[-1]._type_
    assert call(0, None, byref(kind())) == Status.INVALID_ARGUMENT
    assert call(0, byref(kind()), None) == Status.INVALID_ARGUMENT


@covers("HAL-016", needs=("device", "streams", "validation"))
def test_a_null_native_handle_is_refused(hal: Driver) -> None:
    assert hal.api.stream_native_handle(hal.stream(), None) == Status.INVALID_ARGUMENT


def _filled(hal: Driver, struct: abi.Sized) -> int:
    """Have a struct of the suite's filled; the status."""
    if isinstance(struct, abi.DriverInfo):
        return int(hal.api.describe(byref(struct)))
    if isinstance(struct, abi.DeviceProperties):
        return int(hal.api.device_properties(0, byref(struct)))
    return int(hal.api.pointer_attributes(None, byref(struct)))


class Longer(ctypes.Union):
    """A struct as a later minor of the ABI may have it."""

    _fields_ = [
        ("info", abi.DriverInfo),
        ("properties", abi.DeviceProperties),
        ("attributes", abi.PointerAttributes),
        ("bytes", ctypes.c_ubyte * 512),
    ]


FILLED = {"info": "describe", "properties": "device_properties", "attributes": "pointer_attributes"}


@covers("HAL-017", needs=("device", "memory"))
@pytest.mark.parametrize("member", FILLED)
def test_a_longer_struct_is_filled_as_far_as_it_is_known(hal: Driver, member: str) -> None:
    known = getattr(Longer(), member)
    known.struct_size = ctypes.sizeof(known)
    hal.ok(_filled(hal, known))
    longer = Longer()
    ctypes.memset(longer.bytes, 0xEE, 512)
    struct = getattr(longer, member)
    struct.struct_size = 512
    hal.ok(_filled(hal, struct))
    assert struct.struct_size == 512, "struct_size is the caller's"
    size = ctypes.sizeof(struct)
    assert bytes(longer.bytes)[4:size] == bytes(known)[4:]
    assert bytes(longer.bytes)[size:] == b"\xee" * (512 - size)


@covers("HAL-017", needs=("device", "memory", "validation"))
@pytest.mark.parametrize("member", FILLED)
@pytest.mark.parametrize("short_by", [1, None])
def test_a_struct_that_is_too_short_is_refused(
    hal: Driver, member: str, short_by: int | None
) -> None:
    longer = Longer()
    struct = getattr(longer, member)
    struct.struct_size = ctypes.sizeof(struct) - short_by if short_by else 0
    before = bytes(longer.bytes)
    assert _filled(hal, struct) == Status.INVALID_ARGUMENT
    assert bytes(longer.bytes) == before
