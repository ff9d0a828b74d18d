# SPDX-License-Identifier: BSD-3-Clause
"""memcpy_async and memset_async: every kind, every refusal, and that they are queued."""

from __future__ import annotations

import ctypes
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from hal_conformance.abi import MemcpyKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver

SIZE = 4096
RANGES = [(0, 1), (0, SIZE), (1, 1), (3, 77), (255, 257), (1000, 3000), (SIZE - 1, 1)]
H2H = MemcpyKind.HOST_TO_HOST
H2D = MemcpyKind.HOST_TO_DEVICE
D2H = MemcpyKind.DEVICE_TO_HOST
D2D = MemcpyKind.DEVICE_TO_DEVICE


def pattern(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def host(hal: Driver, data: bytes) -> int:
    """Ordinary host memory with this content."""
    return ctypes.addressof(hal.keep(ctypes.create_string_buffer(data, len(data))))


def pinned(hal: Driver, data: bytes) -> int:
    address = hal.host_malloc(len(data))
    ctypes.memmove(address, data, len(data))
    return address


@covers("HAL-060")
@pytest.mark.parametrize(("offset", "size"), RANGES)
def test_a_copy_to_the_device_writes_its_range_only(hal: Driver, offset: int, size: int) -> None:
    stream, block, data = hal.stream(), hal.malloc(SIZE), pattern(size)
    hal.memset(block, 0xEE, SIZE, stream)
    hal.copy(block + offset, host(hal, data), size, H2D, stream)
    expected = b"\xee" * offset + data + b"\xee" * (SIZE - offset - size)
    assert hal.read(block, SIZE, stream) == expected


@covers("HAL-060")
@pytest.mark.parametrize(("offset", "size"), RANGES)
def test_a_copy_to_the_host_writes_its_range_only(hal: Driver, offset: int, size: int) -> None:
    stream, block, data = hal.stream(), hal.malloc(SIZE), pattern(SIZE)
    hal.write(block, data, stream)
    target = host(hal, b"\xee" * SIZE)
    hal.copy(target + offset, block + offset, size, D2H, stream)
    hal.synchronize(stream)
    expected = b"\xee" * offset + data[offset : offset + size] + b"\xee" * (SIZE - offset - size)
    assert ctypes.string_at(target, SIZE) == expected


@covers("HAL-060", patience=6)
def test_a_large_copy_arrives_whole(hal: Driver) -> None:
    size = (8 << 20) + 13
    stream, block, data = hal.stream(), hal.malloc(size), pattern(size)
    hal.write(block, data, stream)
    assert hal.read(block, size, stream) == data


@covers("HAL-060")
def test_every_device_copies(hal: Driver) -> None:
    for device in range(hal.count()):
        stream, block = hal.stream(device), hal.malloc(SIZE, device)
        data = pattern(SIZE, device)
        hal.write(block, data, stream)
        assert hal.read(block, SIZE, stream) == data


@covers("HAL-061")
@pytest.mark.parametrize(("offset", "size"), RANGES)
def test_copies_with_pinned_memory_move_their_range_only(
    hal: Driver, offset: int, size: int
) -> None:
    stream, block, data = hal.stream(), hal.malloc(SIZE), pattern(SIZE)
    source, target = pinned(hal, data), pinned(hal, b"\xee" * SIZE)
    hal.memset(block, 0xEE, SIZE, stream)
    hal.copy(block + offset, source + offset, size, H2D, stream)
    hal.copy(target, block, SIZE, D2H, stream)
    hal.synchronize(stream)
    expected = b"\xee" * offset + data[offset : offset + size] + b"\xee" * (SIZE - offset - size)
    assert ctypes.string_at(target, SIZE) == expected


@covers("HAL-062")
@pytest.mark.parametrize(("offset", "size"), RANGES)
def test_a_copy_within_a_device_moves_its_range_only(hal: Driver, offset: int, size: int) -> None:
    stream, source, target = hal.stream(), hal.malloc(SIZE), hal.malloc(SIZE)
    data = pattern(SIZE)
    hal.write(source, data, stream)
    hal.memset(target, 0xEE, SIZE, stream)
    hal.copy(target + offset, source + offset, size, D2D, stream)
    expected = b"\xee" * offset + data[offset : offset + size] + b"\xee" * (SIZE - offset - size)
    assert hal.read(target, SIZE, stream) == expected


@covers("HAL-062")
def test_a_copy_within_one_block_moves_its_range_only(hal: Driver) -> None:
    stream, block, data = hal.stream(), hal.malloc(SIZE), pattern(SIZE)
    hal.write(block, data, stream)
    hal.copy(block + 2048, block, 2048, D2D, stream)
    assert hal.read(block, SIZE, stream) == data[:2048] * 2


@covers("HAL-062")
def test_a_copy_from_host_to_host_is_ordered_by_the_stream(hal: Driver) -> None:
    stream, data = hal.stream(), pattern(SIZE)
    source, between, target = host(hal, data), host(hal, bytes(SIZE)), host(hal, bytes(SIZE))
    hal.copy(between, source, SIZE, H2H, stream)
    hal.copy(target, between, SIZE, H2H, stream)
    hal.synchronize(stream)
    assert ctypes.string_at(target, SIZE) == data


@covers("HAL-063")
@pytest.mark.parametrize("on", [0, 1])
@pytest.mark.parametrize("source_device", [0, 1])
def test_a_copy_between_devices_moves_the_bytes(hal: Driver, on: int, source_device: int) -> None:
    source, target = hal.malloc(SIZE, source_device), hal.malloc(SIZE, 1 - source_device)
    data = pattern(SIZE)
    there = hal.stream(source_device)
    hal.write(source, data, there)
    hal.synchronize(there)
    between = hal.stream(on)
    hal.copy(target + 1, source + 3, SIZE - 3, D2D, between)
    hal.synchronize(between)
    assert hal.read(target + 1, SIZE - 3, hal.stream(1 - source_device)) == data[3:]


@covers("HAL-064")
@pytest.mark.parametrize("kind", list(MemcpyKind))
def test_a_copy_of_no_bytes_is_fine(hal: Driver, kind: MemcpyKind) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    memory = host(hal, bytes(SIZE))
    dst = block if kind in (H2D, D2D) else memory
    src = block + 64 if kind in (D2H, D2D) else memory + 64
    hal.ok(hal.api.memcpy_async(dst, src, 0, kind, stream))
    hal.ok(hal.api.memcpy_async(None, None, 0, kind, stream))
    hal.synchronize(stream)


@covers("HAL-064")
def test_a_memset_of_no_bytes_is_fine(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    hal.memset(block, 1, SIZE, stream)
    hal.ok(hal.api.memset_async(block, 9, 0, stream))
    hal.ok(hal.api.memset_async(None, 9, 0, stream))
    assert hal.read(block, SIZE, stream) == b"\x01" * SIZE


@covers("HAL-065", needs=("validation",))
@pytest.mark.parametrize("kind", [H2D, D2H, D2D])
@pytest.mark.parametrize(
    ("offset", "size"),
    [(0, SIZE + 1), (1, SIZE), (SIZE, 1), (SIZE - 1, 2), (-1, 2), (0, 2**64 - 1), (8, 2**64 - 8)],
)
def test_a_copy_that_leaves_its_block_is_refused(
    hal: Driver, kind: MemcpyKind, offset: int, size: int
) -> None:
    stream, block, other = hal.stream(), hal.malloc(SIZE), hal.malloc(4 * SIZE)
    memory = host(hal, b"\xee" * 4 * SIZE)
    device = block + offset
    dst = {H2D: device, D2H: memory, D2D: other}[kind]
    src = {H2D: memory, D2H: device, D2D: device}[kind]
    assert hal.api.memcpy_async(dst, src, size, kind, stream) == Status.INVALID_ARGUMENT
    if kind is D2D:
        assert hal.api.memcpy_async(device, other, size, kind, stream) == Status.INVALID_ARGUMENT
    hal.synchronize(stream)
    assert ctypes.string_at(memory, 4 * SIZE) == b"\xee" * 4 * SIZE


@covers("HAL-065", needs=("pinned_memory", "validation"))
def test_a_copy_that_leaves_its_pinned_block_is_refused(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(2 * SIZE)
    memory = hal.host_malloc(SIZE)
    for offset, size in ((0, SIZE + 1), (SIZE - 1, 2)):
        down = hal.api.memcpy_async(memory + offset, block, size, D2H, stream)
        up = hal.api.memcpy_async(block, memory + offset, size, H2D, stream)
        assert (down, up) == (Status.INVALID_ARGUMENT, Status.INVALID_ARGUMENT)


@covers("HAL-065", needs=("validation",))
@pytest.mark.parametrize("kind", list(MemcpyKind))
def test_a_pointer_of_another_kind_is_refused(hal: Driver, kind: MemcpyKind) -> None:
    """The kind says which side is device memory; each side is tried with the other sort."""
    stream, memory = hal.stream(), host(hal, bytes(2 * SIZE))
    blocks = hal.malloc(SIZE), hal.malloc(SIZE)
    right_dst = blocks[0] if kind in (H2D, D2D) else memory
    right_src = blocks[1] if kind in (D2H, D2D) else memory + SIZE
    wrong_dst = memory if kind in (H2D, D2D) else blocks[0]
    wrong_src = memory + SIZE if kind in (D2H, D2D) else blocks[1]
    for dst, src in ((wrong_dst, right_src), (right_dst, wrong_src), (wrong_dst, wrong_src)):
        assert hal.api.memcpy_async(dst, src, 64, kind, stream) == Status.INVALID_ARGUMENT


@covers("HAL-065", needs=("validation",))
@pytest.mark.parametrize("kind", [-1, 4, 99])
def test_an_unknown_kind_is_refused(hal: Driver, kind: int) -> None:
    stream, blocks = hal.stream(), (hal.malloc(SIZE), hal.malloc(SIZE))
    status = hal.api.memcpy_async(blocks[0], blocks[1], 64, kind, stream)
    assert status == Status.INVALID_ARGUMENT


@covers("HAL-065", needs=("validation",))
def test_null_pointers_are_refused(hal: Driver) -> None:
    stream, block, memory = hal.stream(), hal.malloc(SIZE), host(hal, bytes(SIZE))
    answers = [
        hal.api.memcpy_async(None, memory, 64, H2D, stream),
        hal.api.memcpy_async(block, None, 64, H2D, stream),
        hal.api.memcpy_async(None, block, 64, D2H, stream),
        hal.api.memcpy_async(memory, None, 64, D2H, stream),
        hal.api.memset_async(None, 0, 64, stream),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)


@covers("HAL-065", needs=("validation",))
def test_a_freed_block_is_refused(hal: Driver) -> None:
    stream, block, memory = hal.stream(), hal.malloc(SIZE), host(hal, bytes(SIZE))
    hal.free(block)
    answers = [
        hal.api.memcpy_async(block, memory, 64, H2D, stream),
        hal.api.memcpy_async(memory, block, 64, D2H, stream),
        hal.api.memset_async(block, 0, 64, stream),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)


@covers("HAL-065", needs=("validation",))
@pytest.mark.parametrize("by_another_thread", [False, True])
def test_a_block_that_was_freed_after_a_copy_is_refused(
    hal: Driver, by_another_thread: bool
) -> None:
    """A driver that remembers which block it has checked must forget it with the block."""
    stream, memory = hal.stream(), host(hal, bytes(SIZE))
    block = hal.malloc(SIZE)
    assert hal.api.memcpy_async(block, memory, 64, H2D, stream) == Status.OK
    hal.synchronize(stream)
    if by_another_thread:
        with ThreadPoolExecutor(1) as other:
            other.submit(hal.free, block).result()
    else:
        hal.free(block)
    assert hal.api.memcpy_async(block, memory, 64, H2D, stream) == Status.INVALID_ARGUMENT
    smaller = hal.malloc(64)  # at the same address, perhaps
    assert hal.api.memcpy_async(smaller, memory, SIZE, H2D, stream) == Status.INVALID_ARGUMENT


@covers("HAL-065", needs=("validation",))
def test_a_memset_that_leaves_its_block_is_refused(hal: Driver) -> None:
    stream, block, memory = hal.stream(), hal.malloc(SIZE), host(hal, bytes(SIZE))
    answers = [
        hal.api.memset_async(block, 0, SIZE + 1, stream),
        hal.api.memset_async(block + SIZE - 1, 0, 2, stream),
        hal.api.memset_async(block + 8, 0, 2**64 - 8, stream),
        hal.api.memset_async(memory, 0, 64, stream),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * len(answers)


@covers("HAL-066")
def test_a_copy_from_the_device_to_pinned_memory_is_queued(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    target = pinned(hal, b"\xee" * SIZE)
    hal.memset(block, 1, SIZE, stream)
    with hal.held(stream):
        hal.copy(target, block, SIZE, D2H, stream)
        assert ctypes.string_at(target, SIZE) == b"\xee" * SIZE
        assert hal.query(stream) == Status.NOT_READY
    hal.synchronize(stream)
    assert ctypes.string_at(target, SIZE) == b"\x01" * SIZE


@covers("HAL-066")
def test_a_copy_from_pinned_memory_reads_it_when_it_runs(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    source = pinned(hal, b"\x01" * SIZE)
    with hal.held(stream):
        hal.copy(block, source, SIZE, H2D, stream)
        ctypes.memset(source, 2, SIZE)
    assert hal.read(block, SIZE, stream) == b"\x02" * SIZE


@covers("HAL-067")
@pytest.mark.parametrize(("offset", "size"), RANGES)
def test_a_memset_sets_its_range_only(hal: Driver, offset: int, size: int) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    hal.memset(block, 0, SIZE, stream)
    hal.memset(block + offset, 0xA7, size, stream)
    expected = bytes(offset) + b"\xa7" * size + bytes(SIZE - offset - size)
    assert hal.read(block, SIZE, stream) == expected


@covers("HAL-067")
@pytest.mark.parametrize("value", [0x1AB, -1, -256, 0x7FFFFF05])
def test_a_memset_takes_the_low_8_bits(hal: Driver, value: int) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    hal.memset(block, value, SIZE, stream)
    assert hal.read(block, SIZE, stream) == bytes([value & 0xFF]) * SIZE


@covers("HAL-068", needs=("validation",))
@pytest.mark.parametrize("shift", [0, 1, 64, SIZE // 2 - 1])
def test_an_overlapping_copy_is_refused(hal: Driver, shift: int) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    half = SIZE // 2
    for dst, src in ((block, block + shift), (block + shift, block)):
        assert hal.api.memcpy_async(dst, src, half, D2D, stream) == Status.INVALID_ARGUMENT
