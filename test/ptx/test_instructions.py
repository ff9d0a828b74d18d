# SPDX-License-Identifier: BSD-3-Clause
"""Instructions give the answers that the PTX document says."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from ptx_executor import Memory, Module, kernel, needs_ptx

pytestmark = needs_ptx

HERE = Path(__file__).parent
LETTERS = "abcef"


def entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for section in yaml.load((HERE / "instructions.yaml").read_text(), yaml.CSafeLoader):
        for name, entry in section["instructions"].items():
            yield section["section"], name, entry


ENTRIES = {name: entry for _, name, entry in entries()}


def width(type: str) -> int:
    return 0 if type == "pred" else int(type[1:])


def bits(value: Any, type: str) -> int:
    """The bits of a value of instructions.yaml."""
    if isinstance(value, str):
        assert value.startswith("0x"), value
        return int(value, 16)
    if type in ("f32", "f64"):
        with np.errstate(over="ignore"):
            number = np.float32(value) if type == "f32" else np.float64(value)
        return int.from_bytes(number.tobytes(), "little")
    assert isinstance(value, int), (value, type)
    return value % 2 ** (width(type) or 1)


def number(pattern: int, type: str) -> float:
    if type == "f32":
        return float(struct.unpack("<f", struct.pack("<I", pattern))[0])
    assert type == "f64", type
    return float(struct.unpack("<d", struct.pack("<Q", pattern))[0])


def register(letter: str, type: str) -> str:
    return f"%{letter}{'p' if type == 'pred' else width(type)}"


def program(name: str, types: list[str], code: str | None) -> str:
    """Thread i takes case i: operand j of 64 bits is at p0 + 8 * (32 * j + i), the result at p1."""
    letters = ["d", *LETTERS[: len(types) - 1]]
    declared, before = [], []
    for letter, type in zip(letters, types, strict=True):
        kind = "pred" if type == "pred" else f"b{width(type)}"
        declared.append(f".reg .{kind} {register(letter, type)};")
    for j, (letter, type) in enumerate(zip(letters[1:], types[1:], strict=True)):
        to = register(letter, type)
        before.append(f"ld.global.b64 %rd5, [%rd4+{256 * j}];")
        if type == "pred":
            before.append(f"setp.ne.s64 {to}, %rd5, 0;")
        elif width(type) == 64:
            before.append(f"mov.b64 {to}, %rd5;")
        else:
            before.append(f"cvt.u{width(type)}.u64 {to}, %rd5;")
    if code is None:
        code = f"{name} ${', $'.join(letters)};"
    for letter, type in zip(letters, types, strict=True):
        code = re.sub(rf"\${letter}\b", register(letter, type), code)
    result = register("d", types[0])
    if types[0] == "pred":
        after = [f"selp.u64 %rd6, 1, 0, {result};"]
    elif width(types[0]) == 64:
        after = [f"mov.b64 %rd6, {result};"]
    else:
        after = [f"cvt.u64.u{width(types[0])} %rd6, {result};"]
    address = "mul.wide.u32 %rd3, %r0, 8;\nadd.s64 %rd4, %rd0, %rd3;\nadd.s64 %rd7, %rd1, %rd3;"
    return kernel(
        "\n".join([*declared, address, *before, code, *after, "st.global.u64 [%rd7], %rd6;"]), 2
    )


def results(name: str, entry: dict[str, Any]) -> list[int]:
    types, cases = entry["types"], entry["cases"]
    given = np.zeros((len(types) - 1, 32), np.uint64)
    for i, case in enumerate(cases):
        for j, value in enumerate(case[:-1]):
            given[j, i] = bits(value, types[1 + j])
    out = Memory(np.zeros(32, np.uint64))
    module = Module(program(name, types, entry.get("code")))
    module.run(Memory(given), out, threads=(len(cases), 1, 1))
    return [int(value) for value in out.array[: len(cases)]]


def is_right(found: int, expected: Any, type: str) -> bool:
    if isinstance(expected, list):
        least, greatest = (number(bits(bound, type), type) for bound in expected)
        return least <= number(found, type) <= greatest
    if expected == "nan":
        return number(found, type) != number(found, type)
    return found == bits(expected, type)


def wrong(name: str, entry: dict[str, Any]) -> list[str]:
    return [
        f"{name} {case[:-1]} is {found:#x}, not {case[-1]}"
        for case, found in zip(entry["cases"], results(name, entry), strict=True)
        if not is_right(found, case[-1], entry["types"][0])
    ]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_instruction_gives_the_known_answers(name: str) -> None:
    assert wrong(name, ENTRIES[name]) == []


def test_names_stand_for_one_entry_each() -> None:
    names = [name for _, name, _ in entries()]
    assert len(names) == len(set(names))


APPROXIMATE = [name for name in ENTRIES if ".approx" in name or ".full" in name]


@pytest.mark.parametrize("direction", [-1, 1])
def test_approximations_reach_their_bounds_and_keep_them(direction: int) -> None:
    """The direction is read once in a process."""
    script = """
import test_instructions as t
for name in t.APPROXIMATE:
    print(t.wrong(name, t.ENTRIES[name]), t.results(name, t.ENTRIES[name]))
"""

    def run(chosen: int) -> list[str]:
        environment = {
            **os.environ,
            "PUONE_PTX_APPROXIMATE": str(chosen),
            "PYTHONPATH": f"{HERE}:{HERE.parent}",
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    there, exact = run(direction), run(0)
    assert all(line.startswith("[] ") for line in there), there
    assert there != exact


def test_loads_extend_by_the_sign_of_their_type() -> None:
    body = """
ld.global.s8 %r1, [%rd0];
ld.global.u8 %r2, [%rd0];
ld.global.s16 %rd2, [%rd0];
ld.global.u16 %rd3, [%rd0];
ld.global.s32 %rd4, [%rd0];
ld.global.u32 %rd5, [%rd0];
ld.global.s8 %rs1, [%rd0];
cvt.u64.u16 %rd6, %rs1;
st.global.u32 [%rd1], %r1;
st.global.u32 [%rd1+4], %r2;
st.global.v2.u64 [%rd1+16], {%rd2, %rd3};
st.global.v2.u64 [%rd1+32], {%rd4, %rd5};
st.global.u64 [%rd1+48], %rd6;
"""
    out = Memory(np.zeros(8, np.int64).view(np.int64))
    Module(kernel(body, 2)).run(Memory(np.array([-2], np.int64)), out)
    assert out.array[0] == 0xFE_FFFFFFFE and list(out.array[2:]) == [
        -2,
        0xFFFE,
        -2,
        0xFFFFFFFE,
        0xFFFE,
        0,
    ]


def test_stores_keep_the_low_part() -> None:
    out = Memory(np.zeros(2, np.uint64))
    body = "mov.u64 %rd2, 0x1122334455667788;\nst.global.u8 [%rd0], %rd2;\n"
    body += "st.global.u16 [%rd0+2], %rd2;\nst.global.u32 [%rd0+4], %rd2;"
    Module(kernel(body)).run(out)
    assert out.array[0] == 0x5566778877880088


SHUFFLES = {
    # 9.7.9.6 shfl.sync: b, c -> the lane that lane i reads.
    ("up", 1, 0): lambda i: max(i - 1, 0),
    ("up", 4, 0): lambda i: i - 4 if i >= 4 else i,
    ("up", 2, 0x1800): lambda i: i - 2 if i % 8 >= 2 else i,
    ("down", 1, 31): lambda i: min(i + 1, 31),
    ("down", 3, 0x181F): lambda i: i + 3 if i % 8 + 3 < 8 else i,
    ("bfly", 1, 31): lambda i: i ^ 1,
    ("bfly", 16, 31): lambda i: i ^ 16,
    ("bfly", 16, 0x100F): lambda i: i ^ 16 if i >= 16 else i,
    ("idx", 5, 31): lambda i: 5,
    ("idx", 3, 0x181F): lambda i: i // 8 * 8 + 3,
}


@pytest.mark.parametrize("case", SHUFFLES, ids=str)
def test_shuffles_read_the_lane_that_they_should(case: tuple[str, int, int]) -> None:
    mode, b, c = case
    body = f"""
mul.wide.u32 %rd2, %r0, 4;
add.s64 %rd3, %rd0, %rd2;
shfl.sync.{mode}.b32 %r1|%p1, %r0, {b}, {c}, -1;
st.global.u32 [%rd3], %r1;
"""
    out = Memory(np.zeros(32, np.int32))
    Module(kernel(body)).run(out, threads=(32, 1, 1))
    assert list(out.array) == [SHUFFLES[case](i) for i in range(32)]


def test_a_shuffle_says_which_lanes_read_another() -> None:
    body = """
mul.wide.u32 %rd2, %r0, 4;
add.s64 %rd3, %rd0, %rd2;
shfl.sync.up.b32 %r1|%p1, %r0, 3, 0, -1;
selp.u32 %r2, 1, 0, %p1;
st.global.u32 [%rd3], %r2;
"""
    out = Memory(np.zeros(32, np.int32))
    Module(kernel(body)).run(out, threads=(32, 1, 1))
    assert list(out.array) == [0, 0, 0, *[1] * 29]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("vote.sync.ballot.b32 %r1, %p1, -1;", 0x7F),
        ("vote.sync.all.pred %p2, %p1, -1;\nselp.u32 %r1, 1, 0, %p2;", 0),
        ("vote.sync.any.pred %p2, %p1, -1;\nselp.u32 %r1, 1, 0, %p2;", 1),
        ("vote.sync.uni.pred %p2, %p1, -1;\nselp.u32 %r1, 1, 0, %p2;", 0),
        ("redux.sync.add.s32 %r1, %r0, -1;", 496),
        ("redux.sync.max.u32 %r1, %r0, -1;", 31),
        ("redux.sync.xor.b32 %r1, %r0, -1;", 0),
        ("activemask.b32 %r1;", -1),
    ],
)
def test_lanes_decide_together(instruction: str, expected: int) -> None:
    body = f"""
mul.wide.u32 %rd2, %r0, 4;
add.s64 %rd3, %rd0, %rd2;
setp.lt.u32 %p1, %r0, 7;
{instruction}
st.global.u32 [%rd3], %r1;
"""
    out = Memory(np.zeros(32, np.int32))
    Module(kernel(body)).run(out, threads=(32, 1, 1))
    assert list(out.array) == [expected] * 32


ATOMICS = {
    # 9.7.13.5 atom: before, operands -> after.
    "add.u32": (5, (7,), 12),
    "exch.b32": (5, (7,), 7),
    "cas.b32": (5, (5, 9), 9),
    "min.s32": (5, (-1,), -1),
    "max.s32": (5, (-1,), 5),
    "and.b32": (6, (3,), 2),
    "or.b32": (6, (3,), 7),
    "xor.b32": (6, (3,), 5),
    "inc.u32": (5, (5,), 0),
    "dec.u32": (0, (5,), 5),
}


@pytest.mark.parametrize("name", ATOMICS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomic_operations_give_what_was_there(name: str, space: str) -> None:
    before, operands, after = ATOMICS[name]
    given = ", ".join(map(str, operands))
    address = "%rd0" if space == "global" else "word"
    body = f"""
st.{space}.u32 [{address}], {before};
atom.{space}.{name} %r1, [{address}], {given};
ld.{space}.u32 %r2, [{address}];
st.global.v2.u32 [%rd1], {{%r1, %r2}};
"""
    out = Memory(np.zeros(2, np.int32).view(np.int64))
    Module(kernel(body, 2, ".shared .align 4 .b8 word[4];")).run(Memory(np.zeros(1, np.int32)), out)
    assert list(out.array.view(np.int32)) == [before, after]


def test_a_failed_exchange_changes_nothing() -> None:
    out = Memory(np.array([5], np.int64))
    Module(kernel("atom.global.cas.b64 %rd1, [%rd0], 6, 9;")).run(out)
    assert out.array[0] == 5


def test_threads_know_where_they_are() -> None:
    names = [f"%{kind}.{axis}" for kind in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
    reads = "\n".join(f"mov.u32 %r{10 + i}, {name};" for i, name in enumerate(names))
    writes = "\n".join(f"st.global.u32 [%rd3+{4 * i}], %r{10 + i};" for i in range(12))
    body = f"""{reads}
mad.lo.s32 %r1, %r12, 3, %r11;
mad.lo.s32 %r1, %r1, 2, %r10;
mad.lo.s32 %r2, %r18, 2, %r17;
mad.lo.s32 %r2, %r2, 2, %r16;
mad.lo.s32 %r1, %r2, 24, %r1;
mul.wide.u32 %rd2, %r1, 48;
add.s64 %rd3, %rd0, %rd2;
{writes}"""
    out = Memory(np.full((8, 24, 12), -1, np.int32))
    Module(kernel(body)).run(out, blocks=(2, 2, 2), threads=(2, 3, 4))
    assert list(out.array[0, 0]) == [0, 0, 0, 2, 3, 4, 0, 0, 0, 2, 2, 2]
    assert list(out.array[5, 23]) == [1, 2, 3, 2, 3, 4, 1, 0, 1, 2, 2, 2]


def test_lanes_go_their_ways_and_meet_again() -> None:
    """Each lane loops as often as its number says; they meet behind the loop."""
    body = """
mul.wide.u32 %rd2, %r0, 4;
add.s64 %rd3, %rd0, %rd2;
mov.u32 %r1, 0;
mov.u32 %r2, 0;
LOOP:
setp.ge.u32 %p1, %r1, %r0;
@%p1 bra DONE;
add.s32 %r1, %r1, 1;
and.b32 %r3, %r1, 1;
setp.eq.u32 %p2, %r3, 0;
@%p2 bra LOOP;
add.s32 %r2, %r2, %r1;
bra.uni LOOP;
DONE:
shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1;
st.global.u32 [%rd3], %r4;
"""
    out = Memory(np.zeros(32, np.int32))
    Module(kernel(body)).run(out, threads=(32, 1, 1))
    odd_sums = [sum(range(1, n + 1, 2)) for n in range(32)]
    assert list(out.array) == [odd_sums[i ^ 1] for i in range(32)]


def test_addresses_beyond_4_gib_are_exact() -> None:
    """By arithmetic alone: down and up again."""
    body = """
mov.u64 %rd2, 0x123456789a;
sub.s64 %rd3, %rd0, %rd2;
mad.lo.s64 %rd4, %rd2, 1, %rd3;
st.global.u32 [%rd4], 7;
mul.wide.u32 %rd5, 0xc0000000, 4;
sub.s64 %rd6, %rd0, %rd5;
mov.u32 %r1, 0xc0000000;
mad.wide.u32 %rd7, %r1, 4, %rd6;
st.global.u32 [%rd7+4], 8;
"""
    out = Memory(np.zeros(2, np.int32))
    Module(kernel(body)).run(out)
    assert list(out.array) == [7, 8]
