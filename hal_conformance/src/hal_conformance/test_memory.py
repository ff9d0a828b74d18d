# SPDX-License-Identifier: BSD-3-Clause
"""Device memory, pinned host memory and what is known of a pointer."""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_void_p
from functools import partial

import pytest

from hal_conformance.abi import MemcpyKind, MemoryKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver
from hal_conformance.process import run_in_child

SIZES = (1, 2, 255, 256, 257, 4095, 4096, 4097, 65536, (1 << 20) + 3)


@covers("HAL-040")
def test_blocks_are_aligned(hal: Driver) -> None:
    for device in range(hal.count()):
        alignment = hal.properties(device).memory_alignment
        for size in SIZES:
            assert hal.malloc(size, device) % alignment == 0


@covers("HAL-040")
def test_blocks_do_not_overlap(hal: Driver) -> None:
    """Also not with blocks of another device: an address belongs to one device."""
    blocks = []
    for device in range(hal.count()):
        blocks += [(hal.malloc(size, device), size) for size in SIZES for _ in range(5)]
    blocks.sort()
    for (address, size), (following, _) in itertools.pairwise(blocks):
        assert address + size <= following


@covers("HAL-040")
def test_a_block_holds_every_byte(hal: Driver) -> None:
    stream = hal.stream()
    blocks = [(hal.malloc(size), size, 1 + index) for index, size in enumerate(SIZES)]
    for block, size, mark in blocks:
        hal.memset(block, mark, size, stream)
    for block, size, mark in blocks:
        assert hal.read(block, size, stream) == bytes([mark]) * size


@covers("HAL-040")
def test_reused_memory_holds_what_is_written_now(hal: Driver) -> None:
    stream = hal.stream()
    for mark in range(1, 20):
        block = hal.malloc(4096)
        hal.memset(block, mark, 4096, stream)
        assert hal.read(block, 4096, stream) == bytes([mark]) * 4096
        hal.free(block)


@covers("HAL-041")
def test_a_block_belongs_to_the_device_it_was_asked_of(hal: Driver) -> None:
    for device in (1, 0, 1):
        attributes = hal.attributes(hal.malloc(4096, device))
        assert (attributes.kind, attributes.device) == (MemoryKind.DEVICE, device)


@covers("HAL-042", needs=("validation",))
def test_zero_bytes_are_refused(hal: Driver) -> None:
    out = c_void_p()
    assert hal.api.malloc(0, 0, byref(out)) == Status.INVALID_ARGUMENT


@covers("HAL-042", needs=("pinned_memory", "validation"))
def test_zero_bytes_of_host_memory_are_refused(hal: Driver) -> None:
    out = c_void_p()
    assert hal.api.host_malloc(0, byref(out)) == Status.INVALID_ARGUMENT


def _assert_usable(hal: Driver) -> None:
    block, stream = hal.malloc(4096), hal.stream()
    hal.memset(block, 3, 4096, stream)
    assert hal.read(block, 4096, stream) == b"\x03" * 4096
    hal.free(block)
    hal.ok(hal.api.stream_destroy(stream))


@covers("HAL-043")
@pytest.mark.parametrize("size", ["total_plus_1", "64_tib", "size_max"])
def test_an_impossible_size_is_out_of_memory(hal: Driver, size: str) -> None:
    _, total = hal.memory_info()
    bytes_ = {"total_plus_1": total + 1, "64_tib": 1 << 46, "size_max": 2**64 - 1}[size]
    out = c_void_p()
    assert hal.api.malloc(0, bytes_, byref(out)) == Status.OUT_OF_MEMORY
    assert "malloc" in hal.message()
    _assert_usable(hal)


def _fill_device(hal: Driver, size: int) -> list[int]:
    """Allocate until there is no more."""
    blocks: list[int] = []
    while True:
        out = c_void_p()
        status = hal.api.malloc(0, size, byref(out))
        if status != Status.OK:
            assert status == Status.OUT_OF_MEMORY, hal.message()
            return blocks
        blocks.append(out.value or 0)
        assert len(blocks) < 1000, "the device never runs out of memory"


@covers("HAL-043", "HAL-046", patience=6)
def test_a_full_device_recovers_when_memory_is_freed(hal: Driver) -> None:
    free, total = hal.memory_info()
    size = total // 16
    blocks = _fill_device(hal, size)
    assert blocks, f"no block of {size} bytes fits, though {free} are free"
    hal.free(blocks.pop())
    blocks.append(hal.malloc(size))
    for block in blocks:
        hal.free(block)
    assert hal.memory_info()[0] >= free
    _assert_usable(hal)


@covers("HAL-044")
def test_free_takes_null(hal: Driver) -> None:
    hal.ok(hal.api.free(None))


@covers("HAL-044", needs=("multi_device",))
def test_free_takes_a_block_of_any_device(hal: Driver) -> None:
    block = hal.malloc(4096, device=1)
    hal.free(block)
    assert hal.attributes(block).kind == MemoryKind.UNREGISTERED


@covers("HAL-044", needs=("validation",))
def test_a_double_free_is_refused(hal: Driver) -> None:
    block = hal.malloc(4096)
    hal.free(block)
    assert hal.api.free(block) == Status.INVALID_ARGUMENT


@covers("HAL-044", needs=("validation",))
@pytest.mark.parametrize("offset", [1, 256, 4095])
def test_freeing_an_interior_pointer_is_refused(hal: Driver, offset: int) -> None:
    block = hal.malloc(4096)
    assert hal.api.free(block + offset) == Status.INVALID_ARGUMENT
    assert hal.attributes(block).kind == MemoryKind.DEVICE
    hal.free(block)


@covers("HAL-044", needs=("validation",))
def test_freeing_host_memory_is_refused(hal: Driver) -> None:
    buffer = ctypes.create_string_buffer(64)
    assert hal.api.free(ctypes.addressof(buffer)) == Status.INVALID_ARGUMENT


@covers("HAL-044", "HAL-049", needs=("pinned_memory", "validation"))
def test_each_free_takes_only_its_own_memory(hal: Driver) -> None:
    block, pinned = hal.malloc(4096), hal.host_malloc(4096)
    assert hal.api.free(pinned) == Status.INVALID_ARGUMENT
    assert hal.api.host_free(block) == Status.INVALID_ARGUMENT
    assert hal.attributes(block).kind == MemoryKind.DEVICE
    assert hal.attributes(pinned).kind == MemoryKind.HOST


def _assert_waits(hal: Driver, stream: int, call: Callable[[], int]) -> None:
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            flag = hal.flag(stream)
            ending = pool.submit(call)
            time.sleep(0.03)
            assert not ending.done(), "memory was released while work was held"
        assert ending.result() == Status.OK
    assert flag.times() == 1


@covers("HAL-045")
def test_free_waits_for_the_owning_device(hal: Driver) -> None:
    block = hal.malloc(4096)
    _assert_waits(hal, hal.stream(), lambda: hal.api.free(block))


@covers("HAL-045")
def test_free_waits_for_any_device(hal: Driver) -> None:
    last = hal.count() - 1
    block = hal.malloc(4096, last)
    _assert_waits(hal, hal.stream(last), lambda: hal.api.free(block))


@covers("HAL-050")
def test_host_free_waits_for_every_device(hal: Driver) -> None:
    for device in range(hal.count()):
        pinned = hal.host_malloc(4096)
        _assert_waits(hal, hal.stream(device), partial(hal.api.host_free, pinned))


@covers("HAL-046")
def test_freed_memory_is_unknown(hal: Driver) -> None:
    block = hal.malloc(4096)
    hal.free(block)
    for address in (block, block + 17, block + 4095):
        assert hal.attributes(address).kind == MemoryKind.UNREGISTERED


@covers("HAL-046")
def test_memory_can_be_allocated_and_freed_without_end(hal: Driver) -> None:
    free, total = hal.memory_info()
    for _ in range(40):
        hal.free(hal.malloc(total // 4))
    assert hal.memory_info()[0] >= free


@covers("HAL-046")
def test_small_blocks_come_and_go_by_the_thousand(hal: Driver) -> None:
    free, _ = hal.memory_info()
    for _ in range(10):
        blocks = [hal.malloc(512) for _ in range(500)]
        for block in blocks:
            hal.free(block)
    assert hal.memory_info()[0] >= free


@covers("HAL-047")
@pytest.mark.parametrize("access", ["read", "write"])
def test_a_host_access_to_device_memory_faults(hal: Driver, access: str) -> None:
    block, stream = hal.malloc(8192), hal.stream()
    hal.memset(block, 1, 8192, stream)
    hal.synchronize(stream)

    def touch() -> bytes:
        faulthandler.disable()
        if access == "read":
            return ctypes.string_at(block, 1)
        ctypes.memset(block, 1, 1)
        return b"written"

    ending = run_in_child(touch, 10)
    assert ending.code in (-signal.SIGSEGV, -signal.SIGBUS), f"{access}: {ending}"


@covers("HAL-048")
def test_host_memory_is_aligned_and_the_hosts(hal: Driver) -> None:
    for size in SIZES:
        pinned = hal.host_malloc(size)
        assert pinned % 64 == 0
        ctypes.memset(pinned, 0x5C, size)
        assert ctypes.string_at(pinned, size) == b"\x5c" * size


@covers("HAL-048")
def test_host_memory_is_known_as_such(hal: Driver) -> None:
    pinned = hal.host_malloc(4096)
    for address in (pinned, pinned + 1, pinned + 4095):
        found = hal.attributes(address)
        assert (found.kind, found.device) == (MemoryKind.HOST, -1)
        assert (found.base, found.size) == (pinned, 4096)
    hal.ok(hal.api.host_free(pinned))
    assert hal.attributes(pinned).kind == MemoryKind.UNREGISTERED


@covers("HAL-049")
def test_host_free_takes_null(hal: Driver) -> None:
    hal.ok(hal.api.host_free(None))


@covers("HAL-049", needs=("validation",))
def test_host_free_refuses_what_is_not_a_live_block(hal: Driver) -> None:
    pinned = hal.host_malloc(4096)
    assert hal.api.host_free(pinned + 64) == Status.INVALID_ARGUMENT
    hal.ok(hal.api.host_free(pinned))
    assert hal.api.host_free(pinned) == Status.INVALID_ARGUMENT
    buffer = ctypes.create_string_buffer(64)
    assert hal.api.host_free(ctypes.addressof(buffer)) == Status.INVALID_ARGUMENT


@covers("HAL-051")
def test_a_pointer_leads_to_its_block(hal: Driver) -> None:
    for device in range(hal.count()):
        for size in (1, 100, 4096, 1 << 20):
            block = hal.malloc(size, device)
            for address in (block, block + size // 2, block + size - 1):
                found = hal.attributes(address)
                assert (found.kind, found.device) == (MemoryKind.DEVICE, device)
                assert (found.base, found.size) == (block, size)


@covers("HAL-051")
@pytest.mark.parametrize("where", ["null", "heap", "code", "one", "all_ones"])
def test_foreign_addresses_are_unregistered(hal: Driver, where: str) -> None:
    buffer = ctypes.create_string_buffer(64)
    code = ctypes.cast(hal.api.malloc, c_void_p).value
    address = {"null": None, "heap": ctypes.addressof(buffer), "code": code}
    address |= {"one": 1, "all_ones": 2**64 - 1}
    found = hal.attributes(address[where])
    assert (found.kind, found.device) == (MemoryKind.UNREGISTERED, -1)
    assert (found.base, found.size) == (None, 0)


@covers("HAL-051")
def test_the_address_past_the_end_is_not_inside(hal: Driver) -> None:
    size = 4096
    block = hal.malloc(size)
    found = hal.attributes(block + size)
    assert found.base != block


@covers("HAL-051")
def test_every_thread_knows_every_pointer(hal: Driver) -> None:
    block = hal.malloc(4096)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(hal.attributes, block).result().base == block


@covers("HAL-048", needs=("streams",))
def test_every_device_reaches_host_memory(hal: Driver) -> None:
    pinned = hal.host_malloc(4096)
    for device in range(hal.count()):
        stream, block = hal.stream(device), hal.malloc(4096, device)
        ctypes.memset(pinned, 10 + device, 4096)
        hal.copy(block, pinned, 4096, MemcpyKind.HOST_TO_DEVICE, stream)
        hal.synchronize(stream)
        ctypes.memset(pinned, 0, 4096)
        hal.copy(pinned, block, 4096, MemcpyKind.DEVICE_TO_HOST, stream)
        hal.synchronize(stream)
        assert ctypes.string_at(pinned, 4096) == bytes([10 + device]) * 4096
