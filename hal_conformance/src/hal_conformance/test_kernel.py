# SPDX-License-Identifier: BSD-3-Clause
"""Kernels: finding, launching, and the four that every driver with kernels is measured by."""

from __future__ import annotations

import ctypes
import itertools
import struct
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_void_p

import pytest

from hal_conformance import kernels
from hal_conformance.abi import KernelInfo, LaunchContext, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver
from hal_conformance.kernels import DType
from hal_conformance.test_copy import pattern

SIZE = 4096
ELEMENT_SIZES = (1, 2, 4, 8, 16)


@covers("HAL-120")
@pytest.mark.parametrize("name", ["", "no_such_kernel", "COPY", "copy ", "copy_bit"])
def test_an_unknown_kernel_is_unsupported(hal: Driver, name: str) -> None:
    out = c_void_p(0x5A5A)
    assert hal.api.kernel_find(name.encode(), None, byref(out)) == Status.UNSUPPORTED
    assert out.value == 0x5A5A


@covers("HAL-120", needs=("validation",))
def test_a_null_name_is_refused(hal: Driver) -> None:
    assert hal.api.kernel_find(None, None, byref(c_void_p())) == Status.INVALID_ARGUMENT


@covers("HAL-128", needs=("kernel_delay",))
def test_a_kernel_is_described(hal: Driver) -> None:
    """ "delay" has no element type: all bits are set."""
    info = KernelInfo(version=0x5A5A)
    assert hal.api.kernel_find(b"delay", byref(info), byref(c_void_p())) == Status.OK
    assert (info.version, info.element_types) == (1, (1 << 64) - 1)
    assert info.struct_size == ctypes.sizeof(info)
    assert info.args_size == ctypes.sizeof(kernels.delay(0))


@covers("HAL-128", needs=("kernel_delay", "validation"))
def test_too_small_a_description_is_refused(hal: Driver) -> None:
    info, out = KernelInfo(struct_size=8, version=0x5A5A, element_types=0x5A5A), c_void_p(0x5A5A)
    assert hal.api.kernel_find(b"delay", byref(info), byref(out)) == Status.INVALID_ARGUMENT
    assert (info.version, info.element_types, out.value) == (0x5A5A, 0x5A5A, 0x5A5A)


@covers("HAL-128")
def test_an_unknown_kernel_is_not_described(hal: Driver) -> None:
    info = KernelInfo(version=0x5A5A, element_types=0x5A5A)
    found = hal.api.kernel_find(b"no_such_kernel", byref(info), byref(c_void_p()))
    assert (found, info.version, info.element_types) == (Status.UNSUPPORTED, 0x5A5A, 0x5A5A)


@covers("HAL-120", needs=("kernel_delay",))
def test_every_thread_finds_the_same_kernel(hal: Driver) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: hal.kernel("delay"), range(16)))
    assert found == {hal.kernel("delay")}


@covers("HAL-121", needs=("validation",))
@pytest.mark.parametrize("size", [0, 7, 9, 4096])
def test_arguments_of_the_wrong_size_are_refused(hal: Driver, size: int) -> None:
    stream, memory = hal.stream(), ctypes.create_string_buffer(4096)
    status = hal.api.kernel_launch(hal.kernel("delay"), memory, size, stream, None)
    assert status == Status.INVALID_ARGUMENT


@covers("HAL-121", needs=("validation",))
def test_a_launch_context_without_a_size_or_a_callback_is_refused(hal: Driver) -> None:
    stream, args, kernel = hal.stream(), kernels.delay(0), hal.kernel("delay")
    for context in (LaunchContext(struct_size=8), LaunchContext()):
        status = hal.api.kernel_launch(kernel, byref(args), 8, stream, byref(context))
        assert status == Status.INVALID_ARGUMENT


@covers("HAL-121", needs=("validation",))
def test_null_arguments_are_refused(hal: Driver) -> None:
    stream, args, kernel = hal.stream(), kernels.delay(0), hal.kernel("delay")
    answers = [
        hal.api.kernel_launch(None, byref(args), 8, stream, None),
        hal.api.kernel_launch(kernel, None, 8, stream, None),
        hal.api.kernel_launch(kernel, byref(args), 8, None, None),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * 3


@covers("HAL-122")
def test_arguments_are_copied_before_the_launch_returns(hal: Driver) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    args = kernels.fill([SIZE], (block, [1]), b"\x11")
    with hal.held(stream):
        hal.launch("fill", args, stream)
        ctypes.memset(byref(args), 0xFF, ctypes.sizeof(args))
    assert hal.read(block, SIZE, stream) == b"\x11" * SIZE


@covers("HAL-048", needs=("pinned_memory",))
def test_kernels_of_every_device_write_host_memory(hal: Driver) -> None:
    pinned = hal.host_malloc(SIZE)
    for device in range(hal.count()):
        stream = hal.stream(device)
        ctypes.memset(pinned, 0, SIZE)
        args = kernels.fill([SIZE // 2], (pinned + 64, [1]), bytes([0x21 + device]))
        hal.launch("fill", args, stream)
        hal.synchronize(stream)
        expected = bytes(64) + bytes([0x21 + device]) * (SIZE // 2) + bytes(SIZE // 2 - 64)
        assert ctypes.string_at(pinned, SIZE) == expected


def contiguous(sizes: Sequence[int], element_size: int) -> list[int]:
    """Byte strides of a dense block, innermost dimension first."""
    return [element_size * step for step in itertools.accumulate([1, *sizes[:-1]], int.__mul__)]


def elements(sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Byte offset of every element, innermost dimension first."""
    ranges = [range(size) for size in reversed(sizes)]
    steps = list(reversed(strides))
    return [
        sum(place * step for place, step in zip(index, steps, strict=True))
        for index in itertools.product(*ranges)
    ]


@covers("HAL-123")
@pytest.mark.parametrize("element_size", ELEMENT_SIZES)
def test_fill_writes_every_element_size(hal: Driver, element_size: int) -> None:
    stream, block, value = hal.stream(), hal.malloc(SIZE), pattern(element_size)
    hal.memset(block, 0xEE, SIZE, stream)
    count = 100
    hal.launch("fill", kernels.fill([count], (block, [element_size]), value), stream)
    expected = value * count + b"\xee" * (SIZE - element_size * count)
    assert hal.read(block, SIZE, stream) == expected


@covers("HAL-123")
@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ([], []),
        ([1], [4]),
        ([10], [12]),
        ([3, 4], [16, 64]),
        ([4, 3, 2], [4, 16, 48]),
        ([5, 5], [100, 4]),
        ([10, 10], [4, 0]),
        ([2] * 8, contiguous([2] * 8, 4)),
    ],
    ids=str,
)
def test_fill_writes_every_shape(hal: Driver, sizes: list[int], strides: list[int]) -> None:
    stream, block, value = hal.stream(), hal.malloc(SIZE), b"ABCD"
    hal.memset(block, 0xEE, SIZE, stream)
    hal.launch("fill", kernels.fill(sizes, (block, strides), value), stream)
    expected = bytearray(b"\xee" * SIZE)
    for offset in elements(sizes, strides):
        expected[offset : offset + 4] = value
    assert hal.read(block, SIZE, stream) == bytes(expected)


@covers("HAL-123")
@pytest.mark.parametrize("sizes", [[0], [0, 5], [5, 0], [3, 0, 3]], ids=str)
def test_fill_of_nothing_writes_nothing(hal: Driver, sizes: list[int]) -> None:
    stream, block = hal.stream(), hal.malloc(SIZE)
    hal.memset(block, 0xEE, SIZE, stream)
    hal.launch("fill", kernels.fill(sizes, (block, [4] * len(sizes)), b"ABCD"), stream)
    assert hal.read(block, SIZE, stream) == b"\xee" * SIZE


@covers("HAL-123")
def test_fill_writes_a_large_block_whole(hal: Driver) -> None:
    count = (1 << 20) + 7
    stream, block = hal.stream(), hal.malloc(4 * count)
    hal.launch("fill", kernels.fill([count], (block, [4]), b"ABCD"), stream)
    assert hal.read(block, 4 * count, stream) == b"ABCD" * count


@covers("HAL-124")
@pytest.mark.parametrize("element_size", ELEMENT_SIZES)
def test_copy_bits_moves_every_element_size(hal: Driver, element_size: int) -> None:
    stream, source, target = hal.stream(), hal.malloc(SIZE), hal.malloc(SIZE)
    data, count = pattern(SIZE), 100
    hal.write(source, data, stream)
    hal.memset(target, 0xEE, SIZE, stream)
    sides = (target, [element_size]), (source, [element_size])
    hal.launch("copy_bits", kernels.copy_bits([count], element_size, *sides), stream)
    moved = element_size * count
    assert hal.read(target, SIZE, stream) == data[:moved] + b"\xee" * (SIZE - moved)


@covers("HAL-124")
@pytest.mark.parametrize(
    ("sizes", "out", "src", "start"),
    [
        ([], [], [], 0),
        ([6, 5], [4, 24], [20, 4], 0),  # transposed
        ([10], [4], [-4], 36),  # flipped
        ([6, 5], [4, 24], [-4, -24], 116),  # flipped in both
        ([6, 5], [4, 24], [0, 4], 0),  # expanded along the innermost dimension
        ([6, 5], [4, 24], [4, 0], 0),  # expanded along the outermost
        ([3, 4, 5], [4, 24, 120], [80, 20, 4], 8),
        ([2] * 10, contiguous([2] * 10, 4), list(reversed(contiguous([2] * 10, 4))), 0),
    ],
    ids=["scalar", "transposed", "flipped", "flipped2", "inner", "outer", "strided", "ten_dims"],
)
def test_copy_bits_follows_strides(
    hal: Driver, sizes: list[int], out: list[int], src: list[int], start: int
) -> None:
    stream, source, target = hal.stream(), hal.malloc(SIZE), hal.malloc(SIZE)
    data = pattern(SIZE)
    hal.write(source, data, stream)
    hal.memset(target, 0xEE, SIZE, stream)
    args = kernels.copy_bits(sizes, 4, (target, out), (source + start, src))
    hal.launch("copy_bits", args, stream)
    expected = bytearray(b"\xee" * SIZE)
    for to, away in zip(elements(sizes, out), elements(sizes, src), strict=True):
        expected[to : to + 4] = data[start + away : start + away + 4]
    assert hal.read(target, SIZE, stream) == bytes(expected)


F32, F64, I32, I64 = DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64
C64, C128 = DType.COMPLEX64, DType.COMPLEX128

HALF, BF16, BOOL = DType.FLOAT16, DType.BFLOAT16, DType.BOOL
INF = float("inf")

# Of three elements: dtype, struct format and values before, then after. Complex numbers are pairs.
# bfloat16 has no format: its bits.
CASTS = {
    "float32_to_float64": (F32, "3f", (1.5, -2.25, 0.0), F64, "3d", (1.5, -2.25, 0.0)),
    "float64_to_float32": (F64, "3d", (0.1, 1e300, -3.0), F32, "3f", (0.1, INF, -3.0)),
    "float32_to_int32": (F32, "3f", (1.9, -1.9, 100.0), I32, "3i", (1, -1, 100)),
    "int64_to_float32": (I64, "3q", (-1, 0, 1 << 20), F32, "3f", (-1.0, 0.0, 1048576.0)),
    "int64_to_int32": (I64, "3q", (-1, 5, (1 << 32) + 7), I32, "3i", (-1, 5, 7)),
    "int32_to_uint8": (I32, "3i", (-1, 255, 256), DType.UINT8, "3B", (255, 255, 0)),
    "int8_to_int64": (DType.INT8, "3b", (-128, -1, 127), I64, "3q", (-128, -1, 127)),
    "float32_to_bool": (F32, "3f", (0.0, 0.5, -3.0), BOOL, "3?", (False, True, True)),
    "bool_to_float32": (BOOL, "3?", (False, True, True), F32, "3f", (0.0, 1.0, 1.0)),
    "float32_to_float16": (F32, "3f", (1.5, 65504.0, 1e6), HALF, "3e", (1.5, 65504.0, INF)),
    "float16_to_float32": (HALF, "3e", (0.5, -2.0, 65504.0), F32, "3f", (0.5, -2.0, 65504.0)),
    "float32_to_bfloat16": (F32, "3f", (1, -2, 3.140625), BF16, "3H", (0x3F80, 0xC000, 0x4049)),
    "bfloat16_to_float32": (BF16, "3H", (0x3F80, 0xC000, 0x4049), F32, "3f", (1, -2, 3.140625)),
    "complex64_to_float32": (C64, "6f", (1, 2, 3, 4, -5, 6), F32, "3f", (1.0, 3.0, -5.0)),
    "float32_to_complex64": (F32, "3f", (1, 2, -3), C64, "6f", (1, 0, 2, 0, -3, 0)),
    "complex64_to_complex128": (C64, "6f", (1, 2, 3, 4, 5, 6), C128, "6d", (1, 2, 3, 4, 5, 6)),
    "complex64_to_bool": (C64, "6f", (0, 0, 0, 2, 1, 0), BOOL, "3?", (False, True, True)),
}


def _run_copy(
    hal: Driver, src_type: DType, data: bytes, out_type: DType, size: int, **options: bool
) -> bytes:
    """Copy three dense elements from `data`, casting; the bytes of the three results."""
    stream, source, target = hal.stream(), hal.malloc(SIZE), hal.malloc(SIZE)
    hal.write(source, data, stream)
    hal.memset(target, 0xEE, SIZE, stream)
    out = (target, [size // 3], out_type)
    src = (source, [len(data) // 3], src_type)
    hal.launch("copy", kernels.copy([3], out, src, **options), stream)
    result = hal.read(target, SIZE, stream)
    assert result[size:] == b"\xee" * (SIZE - size), "bytes past the last element were written"
    return result[:size]


@covers("HAL-125")
@pytest.mark.parametrize("case", CASTS)
def test_copy_casts(hal: Driver, case: str) -> None:
    src_type, src_format, values, out_type, out_format, expected = CASTS[case]
    size = struct.calcsize("<" + out_format)
    result = _run_copy(hal, src_type, struct.pack("<" + src_format, *values), out_type, size)
    found = struct.unpack("<" + out_format, result)
    # 0.1 is another number in float32.
    wanted = struct.unpack("<3f", struct.pack("<3f", *expected)) if out_type is F32 else expected
    assert found == wanted


@covers("HAL-125")
def test_copy_conjugates_and_negates(hal: Driver) -> None:
    data = struct.pack("<6f", 1, 2, -3, 4, 5, -6)

    def run(**options: bool) -> tuple[float, ...]:
        return struct.unpack("<6f", _run_copy(hal, C64, data, C64, 24, **options))

    assert run() == (1, 2, -3, 4, 5, -6)
    assert run(conj=True) == (1, -2, -3, -4, 5, 6)
    assert run(neg=True) == (-1, -2, 3, -4, -5, 6)
    assert run(conj=True, neg=True) == (-1, 2, 3, 4, -5, -6)


@covers("HAL-125")
def test_copy_negates_real_numbers(hal: Driver) -> None:
    floats = _run_copy(hal, F32, struct.pack("<3f", 1, -2, 0), F32, 12, neg=True)
    assert struct.unpack("<3f", floats) == (-1, 2, 0)
    integers = _run_copy(hal, I64, struct.pack("<3q", 1, -2, 0), I64, 24, neg=True)
    assert struct.unpack("<3q", integers) == (-1, 2, 0)


@covers("HAL-125")
def test_copy_transposes_while_it_casts(hal: Driver) -> None:
    stream, source, target = hal.stream(), hal.malloc(SIZE), hal.malloc(SIZE)
    hal.write(source, struct.pack("<12f", *range(12)), stream)
    args = kernels.copy([3, 4], (target, [8, 24], I64), (source, [16, 4], F32))
    hal.launch("copy", args, stream)
    found = struct.unpack("<12q", hal.read(target, 96, stream))
    assert found == tuple(4 * row + column for column in range(4) for row in range(3))


@covers("HAL-126")
@pytest.mark.parametrize("milliseconds", [1, 20, 250])
def test_delay_keeps_its_stream_busy(hal: Driver, milliseconds: int) -> None:
    stream = hal.stream()
    hal.delay(stream, 0)
    hal.synchronize(stream)
    started = time.monotonic()
    hal.delay(stream, milliseconds)
    if milliseconds >= 250:  # so long that the host gets to ask in time
        assert hal.query(stream) == Status.NOT_READY
    hal.synchronize(stream)
    assert time.monotonic() - started >= milliseconds * 0.99e-3


@covers("HAL-127")
@pytest.mark.parametrize("on", [0, 1])
def test_a_kernel_reads_a_peers_memory(hal: Driver, on: int) -> None:
    there, here = hal.stream(1 - on), hal.stream(on)
    source, target, data = hal.malloc(SIZE, 1 - on), hal.malloc(SIZE, on), pattern(SIZE)
    hal.write(source, data, there)
    hal.synchronize(there)
    args = kernels.copy_bits([SIZE // 4], 4, (target, [4]), (source, [4]))
    hal.launch("copy_bits", args, here)
    assert hal.read(target, SIZE, here) == data
