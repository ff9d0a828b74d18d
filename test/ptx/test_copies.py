# SPDX-License-Identifier: BSD-3-Clause
"""cp.async does what section 9.7.9.25.3 of the PTX document says, and its misuse is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_executor import DeviceCodeError, Memory, Module, kernel, needs_ptx

pytestmark = needs_ptx

SHARED = ".shared .align 16 .b8 buffer[1024];"
#: The 16 bytes of this thread: %rd4 and %rd5 in p0 and p1, %r3 in the buffer. %r4: its neighbour's.
PLACES = """mul.wide.u32 %rd3, %r0, 16;
add.s64 %rd4, %rd0, %rd3;
add.s64 %rd5, %rd1, %rd3;
mov.u32 %r2, buffer;
shl.b32 %r1, %r0, 4;
add.s32 %r3, %r2, %r1;
xor.b32 %r1, %r1, 16;
add.s32 %r4, %r2, %r1;
"""
WAIT = "cp.async.wait_all;\n"
TAKE = """ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r3];
st.global.v4.b32 [%rd5], {%r10, %r11, %r12, %r13};
"""


def copied(body: str, threads: int = 4) -> Any:
    """What the threads left in p1, after zeros; p0 counts its bytes up from 1."""
    given = Memory(np.arange(1, 16 * threads + 1, dtype=np.uint8))
    out = Memory(np.zeros(16 * threads, np.uint8))
    Module(kernel(PLACES + body, 2, SHARED)).run(given, out, threads=(threads, 1, 1))
    return out.array


def failure(body: str) -> DeviceCodeError:
    with pytest.raises(DeviceCodeError) as caught:
        copied(body)
    return caught.value


@pytest.mark.parametrize("level", ["ca", "cg"])
@pytest.mark.parametrize("space", ["shared", "shared::cta"])
def test_bytes_are_there_when_they_were_waited_for(level: str, space: str) -> None:
    copy = f"cp.async.{level}.{space}.global [%r3], [%rd4], 16;\n"
    assert (copied(copy + WAIT + TAKE) == np.arange(1, 65)).all()


@pytest.mark.parametrize("bytes", [4, 8])
def test_fewer_bytes_are_copied_alone(bytes: int) -> None:
    zeros = "mov.b32 %r9, 0;\nst.shared.v4.b32 [%r3], {%r9, %r9, %r9, %r9};\n"
    copy = f"cp.async.ca.shared.global [%r3+{16 - bytes}], [%rd4+{16 - bytes}], {bytes};\n"
    found = copied(zeros + copy + WAIT + TAKE).reshape(-1, 16)
    assert (found[:, : 16 - bytes] == 0).all()
    assert (found[:, 16 - bytes :] == np.arange(1, 65).reshape(-1, 16)[:, 16 - bytes :]).all()


@pytest.mark.parametrize("read", range(17))
def test_zeros_take_the_place_of_what_is_not_read(read: int) -> None:
    copy = f"mov.u32 %r9, {read};\ncp.async.cg.shared.global [%r3], [%rd4], 16, %r9;\n"
    found = copied(copy + WAIT + TAKE).reshape(-1, 16)
    assert (found[:, :read] == np.arange(1, 65).reshape(-1, 16)[:, :read]).all()
    assert (found[:, read:] == 0).all()


def test_what_is_not_read_need_not_exist() -> None:
    copy = "mov.u32 %r9, 0;\ncp.async.cg.shared.global [%r3], [%rd0+4096], 16, %r9;\n"
    assert (copied(copy + WAIT + TAKE) == 0).all()


def test_a_wait_for_groups_leaves_the_newest_on_their_way() -> None:
    first = "cp.async.cg.shared.global [%r3], [%rd4], 16;\ncp.async.commit_group;\n"
    second = "cp.async.cg.shared.global [%r3+512], [%rd4], 16;\ncp.async.commit_group;\n"
    wait = "cp.async.wait_group {};\n"
    later = "ld.shared.b32 %r20, [%r3+512];\n"
    assert (copied(first + second + wait.format(1) + TAKE) == np.arange(1, 65)).all()
    assert failure(first + second + wait.format(2) + TAKE).kind == "race"
    assert failure(first + second + wait.format(1) + later).kind == "race"
    copied(first + second + wait.format(0) + TAKE + later)


def test_a_copy_of_no_group_is_waited_for_by_wait_all_only() -> None:
    copy = "cp.async.cg.shared.global [%r3], [%rd4], 16;\n"
    assert failure(copy + "cp.async.wait_group 0;\n" + TAKE).kind == "race"


def test_an_empty_group_counts() -> None:
    copy = "cp.async.cg.shared.global [%r3], [%rd4], 16;\ncp.async.commit_group;\n"
    more = "cp.async.commit_group;\ncp.async.wait_group 1;\n"
    assert (copied(copy + more + TAKE) == np.arange(1, 65)).all()


COPY = "cp.async.cg.shared.global [%r3], [%rd4], 16;\n"
#: Writes what the neighbour copies.
NEIGHBOURS = """xor.b32 %r9, %r0, 1;
mul.wide.u32 %rd6, %r9, 16;
add.s64 %rd6, %rd0, %rd6;
st.global.b32 [%rd6], 0;
"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(COPY + TAKE, "race", id="no wait"),
        pytest.param(COPY + "bar.sync 0;\n" + TAKE, "race", id="a barrier is no wait"),
        pytest.param(COPY + "st.shared.b32 [%r3], %r0;\n", "race", id="a write before the wait"),
        pytest.param(COPY + COPY, "race", id="two copies to one place"),
        pytest.param(
            COPY + WAIT + "ld.shared.b32 %r9, [%r4];\n", "race", id="a wait is no barrier"
        ),
        pytest.param(
            COPY + "st.global.b32 [%rd4], 0;\n" + WAIT, "race", id="the thread's own write"
        ),
        pytest.param(
            COPY + f"bar.sync 0;\n{NEIGHBOURS}bar.sync 0;\n" + WAIT,
            "race",
            id="another writes what is being copied, between barriers",
        ),
        pytest.param(
            COPY + f"bar.sync 0;\n{NEIGHBOURS}" + WAIT,
            "race",
            id="another writes what is being copied",
        ),
        pytest.param(COPY.replace("%rd4]", "%rd4+8]"), "misaligned", id="from"),
        pytest.param(COPY.replace("%r3]", "%r3+8]"), "misaligned", id="to"),
        pytest.param(COPY.replace("%rd4]", "%rd4+64]"), "out of bounds", id="beyond global memory"),
        pytest.param(COPY.replace("%r3]", "%r3+1024]"), "out of bounds", id="beyond shared memory"),
        pytest.param(
            "mov.u32 %r9, 17;\n" + COPY.replace("16;", "16, %r9;"), "out of bounds", id="more read"
        ),
        pytest.param(COPY.replace("16;", "16, %r9;"), "uninitialised", id="how many"),
        pytest.param(COPY.replace("16;", "8;"), "not understood", id="cg of 8 bytes"),
        pytest.param(COPY.replace("16;", "2;").replace("cg", "ca"), "not understood", id="2 bytes"),
        pytest.param(COPY.replace("shared.global", "global.shared"), "unknown", id="the other way"),
    ],
)
def test_misuse_is_reported(body: str, kind: str) -> None:
    assert failure(body).kind.startswith(kind)


def test_memory_that_nothing_wrote_is_not_copied() -> None:
    fresh = Memory(np.zeros(64, np.uint8), written=False)
    out = Memory(np.zeros(64, np.uint8))
    with pytest.raises(DeviceCodeError) as caught:
        Module(kernel(PLACES + COPY + WAIT, 2, SHARED)).run(fresh, out, threads=(4, 1, 1))
    assert caught.value.kind == "uninitialised"


def test_a_block_does_not_find_the_copies_of_another() -> None:
    given, out = Memory(np.arange(64, dtype=np.uint8)), Memory(np.zeros(64, np.uint8))
    text = kernel(PLACES + COPY, 2, SHARED)  # which nobody waits for
    Module(text).run(given, out, blocks=(3, 1, 1), threads=(4, 1, 1))
