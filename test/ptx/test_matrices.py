# SPDX-License-Identifier: BSD-3-Clause
"""mma.sync and ldmatrix give what the PTX document says; the layouts are its formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_executor import DeviceCodeError, Memory, Module, kernel, needs_ptx

from hal_conformance.answers import encode
from hal_conformance.kernels import DType

pytestmark = needs_ptx

LANES = np.arange(32)
GROUP, IN_GROUP = LANES // 4, LANES % 4


#: type: shape, how its numbers are stored.
TYPES = {
    "f16": ("m16n8k16", DType.FLOAT16),
    "bf16": ("m16n8k16", DType.BFLOAT16),
    "tf32": ("m16n8k8", DType.FLOAT32),
}


def places(type: str) -> tuple[list[Any], list[Any]]:
    """By element of a lane's registers: (row, column) of a and (row, column) of b."""
    a, b = [], []
    if type == "tf32":  # 9.7.14.5.5, m16n8k8 with .tf32
        for i in range(4):
            a.append((GROUP + 8 * (i in (1, 3)), IN_GROUP + 4 * (i >= 2)))
        for i in range(2):
            b.append((IN_GROUP + 4 * i, GROUP))
    else:  # 9.7.14.5.8, m16n8k16 with floating-point types
        for i in range(8):
            row = GROUP if i in (0, 1, 4, 5) else GROUP + 8
            a.append((row, IN_GROUP * 2 + (i & 1) + 8 * (i >= 4)))
        for i in range(4):
            b.append((IN_GROUP * 2 + (i & 1) + 8 * (i >= 2), GROUP))
    return a, b


#: (row, column) of a lane's elements of c and d.
SUMS = [(GROUP + 8 * (i >= 2), IN_GROUP * 2 + (i & 1)) for i in range(4)]


def words(matrix: Any, where: list[Any]) -> Any:
    """By register and lane."""
    elements = np.stack([matrix[at] for at in where], axis=-1)
    return np.ascontiguousarray(elements).view(np.uint32).T


def multiplied(type: str, a: Any, b: Any, c: Any) -> Any:
    shape, stored = TYPES[type]
    of_a, of_b = places(type)
    factors = [words(encode(a, stored), of_a), words(encode(b, stored), of_b)]
    given = [*factors, words(encode(c, DType.FLOAT32), SUMS)]
    registers = np.concatenate(given)
    assert registers.shape == (10, 32)
    loads = "\n".join(f"ld.global.b32 %r{10 + i}, [%rd4+{128 * i}];" for i in range(10))
    stores = "\n".join(f"st.global.f32 [%rd5+{128 * i}], %f{i};" for i in range(4))
    moves = "\n".join(f"mov.b32 %f{i}, %r{16 + i};" for i in range(4))
    body = f"""mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd4, %rd0, %rd3;
add.s64 %rd5, %rd1, %rd3;
{loads}
{moves}
mma.sync.aligned.{shape}.row.col.f32.{type}.{type}.f32
  {{%f0, %f1, %f2, %f3}}, {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}}, {{%f0, %f1, %f2, %f3}};
{stores}"""
    out = Memory(np.zeros((4, 32), np.float32))
    Module(kernel(body, 2)).run(Memory(registers), out, threads=(32, 1, 1))
    result = np.zeros((16, 8), np.float32)
    for i, at in enumerate(SUMS):
        result[at] = out.array[i]
    return result


@pytest.mark.parametrize("type", TYPES)
def test_a_warp_multiplies_matrices(type: str) -> None:
    draw = np.random.default_rng(1)
    depth = 8 if type == "tf32" else 16
    a = draw.integers(-99, 99, (16, depth)) / 8.0
    b = draw.integers(-99, 99, (depth, 8)) / 8.0
    c = draw.integers(-99, 99, (16, 8)) / 4.0
    assert (multiplied(type, a, b, c) == a @ b + c).all()


@pytest.mark.parametrize("type", TYPES)
def test_numbers_that_are_not_finite_reach_their_row_or_column_alone(type: str) -> None:
    depth = 8 if type == "tf32" else 16
    a, b, c = np.ones((16, depth)), np.ones((depth, 8)), np.zeros((16, 8))
    a[3, 5], b[2, 6] = np.inf, np.nan
    found = multiplied(type, a, b, c)
    assert np.isnan(found[:, 6]).all()
    assert np.isposinf(np.delete(found[3], 6)).all()
    rest = np.delete(np.delete(found, 3, axis=0), 6, axis=1)
    assert (rest == depth).all()


def test_tf32_has_the_upper_19_bits_of_a_number() -> None:
    a, b, c = np.zeros((16, 8)), np.zeros((8, 8)), np.zeros((16, 8))
    a[0, 0], b[0, 0] = 1 + 2.0**-10 + 2.0**-11, 1
    assert multiplied("tf32", a, b, c)[0, 0] == 1 + 2.0**-10


def loaded(count: int, transposed: bool, rows: int = 32, offset: int = 0) -> Any:
    """By register and lane: what ldmatrix gives of `rows` rows of 8 elements, which count up."""
    registers = ", ".join(f"%r{10 + i}" for i in range(count))
    stores = "\n".join(f"st.global.b32 [%rd5+{128 * i}], %r{10 + i};" for i in range(count))
    trans = ".trans" if transposed else ""
    body = f"""mul.wide.u32 %rd3, %r0, 16;
add.s64 %rd4, %rd0, %rd3;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd5, %rd1, %rd3;
mov.u32 %r2, buffer;
shl.b32 %r3, %r0, 4;
add.s32 %r3, %r2, %r3;
setp.ge.u32 %p0, %r0, {rows};
@%p0 bra $L_written;
ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd4];
st.shared.v4.b32 [%r3], {{%r4, %r5, %r6, %r7}};
$L_written:
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%r3+{offset}];
{stores}"""
    given = Memory(np.arange(256, dtype=np.uint16))
    out = Memory(np.zeros((count, 32), np.uint32))
    text = kernel(body, 2, ".shared .align 16 .b8 buffer[512];")
    Module(text).run(given, out, threads=(32, 1, 1))
    return out.array


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_two_neighbours(count: int, transposed: bool) -> None:
    matrices = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    expected = [
        matrix[GROUP, 2 * IN_GROUP] | matrix[GROUP, 2 * IN_GROUP + 1].astype(np.uint32) << 16
        for matrix in matrices[:count]
    ]
    assert (loaded(count, transposed, rows=8 * count) == expected).all()


@pytest.mark.parametrize(
    ("rows", "offset", "kind"), [(31, 0, "uninitialised"), (32, 8, "misaligned"), (32, 16, "out")]
)
def test_ldmatrix_reads_as_strictly_as_a_load(rows: int, offset: int, kind: str) -> None:
    with pytest.raises(DeviceCodeError) as caught:
        loaded(4, False, rows, offset)
    assert caught.value.kind.startswith(kind), caught.value
    assert "thread (31, 0, 0)" in str(caught.value) or kind == "misaligned"


@pytest.mark.parametrize("threads", [31, 16])
def test_a_warp_that_is_not_whole_multiplies_nothing(threads: int) -> None:
    body = """mov.f32 %f0, 0f00000000;
mov.b32 %r1, 0;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  {%f0, %f0, %f0, %f0}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f0, %f0, %f0, %f0};"""
    with pytest.raises(DeviceCodeError) as caught:
        Module(kernel(body, 0)).run(threads=(threads, 1, 1))
    assert caught.value.kind == "barrier"
