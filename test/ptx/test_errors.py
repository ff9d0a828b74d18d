# SPDX-License-Identifier: BSD-3-Clause
"""The executor reports errors in device code: planted ones, each beside code that is correct."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ptx_executor import HEADER, DeviceCodeError, Memory, Module, kernel, needs_ptx

pytestmark = needs_ptx

SHARED = ".shared .align 4 .b8 buffer[256];"
#: Thread i writes element i of shared memory and reads that of its neighbour.
NEIGHBOUR = """
shl.b32 %r1, %r0, 2;
mov.u32 %r2, buffer;
add.s32 %r3, %r2, %r1;
st.shared.u32 [%r3], %r0;
{barrier}
xor.b32 %r4, %r1, {distance};
add.s32 %r5, %r2, %r4;
ld.shared.u32 %r6, [%r5];
"""
#: %rd4: the address of element %r0 of p0.
ELEMENT = "mul.wide.u32 %rd3, %r0, 4;\nadd.s64 %rd4, %rd0, %rd3;\n"


def ints(n: int) -> Memory:
    return Memory(np.zeros(n, np.int32))


def failure(
    text: str, *arguments: Memory | int, threads: int = 1, blocks: int = 1
) -> DeviceCodeError:
    with pytest.raises(DeviceCodeError) as caught:
        Module(text).run(*arguments, threads=(threads, 1, 1), blocks=(blocks, 1, 1))
    return caught.value


def line_of(text: str, instruction: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if instruction in line)


def test_an_error_says_kernel_block_thread_and_line() -> None:
    text = kernel(ELEMENT + "mov.u32 %r1, %ctaid.x;\nst.global.u32 [%rd4+8], %r1;")
    error = failure(text, ints(6), threads=5, blocks=2)
    assert error.kind == "out of bounds"
    assert "kernel kernel, block (0, 0, 0), thread (4, 0, 0)" in str(error)
    assert error.line == line_of(text, "st.global") and "st.global.u32 [%rd4+8], %r1;" in str(error)
    assert "24 bytes from the start of a block of 24" in str(error)


def test_an_address_outside_of_every_block_is_out_of_bounds() -> None:
    assert failure(kernel("ld.global.u32 %r1, [%rd0+-4];"), ints(1)).kind == "out of bounds"
    assert failure(kernel("ld.global.u32 %r1, [%rd0];"), 0).kind == "out of bounds"


def test_an_access_that_is_not_aligned_is_an_error() -> None:
    assert failure(kernel("ld.global.u32 %r1, [%rd0+2];"), ints(4)).kind == "misaligned"
    Module(kernel("ld.global.u16 %rs1, [%rd0+2];")).run(ints(4))
    vector = kernel("ld.global.v2.u32 {%r1, %r2}, [%rd0+4];")
    base = np.zeros(8, np.int64).view(np.int32)
    assert failure(vector, Memory(base)).kind == "misaligned"


def test_a_read_of_memory_that_nothing_wrote_is_an_error() -> None:
    fresh = Memory(np.zeros(4, np.int32), written=False)
    error = failure(kernel("ld.global.u32 %r1, [%rd0+4];"), fresh)
    assert error.kind == "uninitialised" and "byte 4 of a block of 16" in str(error)
    Module(kernel("st.global.u32 [%rd0+4], 1;\nld.global.u32 %r1, [%rd0+4];")).run(fresh)
    part = kernel("st.global.u8 [%rd0+4], 1;\nld.global.u32 %r1, [%rd0+4];")
    assert failure(part, Memory(np.zeros(4, np.int32), written=False)).kind == "uninitialised"


def test_a_read_of_shared_memory_that_nothing_wrote_is_an_error() -> None:
    text = kernel("ld.shared.u32 %r1, [buffer];", before=SHARED)
    assert failure(text, ints(1)).kind == "uninitialised"


def test_what_another_block_left_in_shared_memory_is_not_there() -> None:
    text = kernel(
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra LATER;\n"
        "st.shared.u32 [buffer], 1;\nLATER:\nld.shared.u32 %r2, [buffer];",
        before=SHARED,
    )
    error = failure(text, ints(1), blocks=2)
    assert error.kind == "uninitialised" and "block (1, 0, 0)" in str(error)


@pytest.mark.parametrize(
    "use",
    [
        "st.global.u32 [%rd0], %r2;",
        "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra END;\nEND:",
        "cvt.u64.u32 %rd1, %r2;\nld.global.u32 %r3, [%rd1];",
        "st.local.u32 [frame], %r2;\nld.local.u32 %r3, [frame];\nst.global.u32 [%rd0], %r3;",
    ],
)
def test_a_register_without_a_value_decides_nothing(use: str) -> None:
    frame = ".local .align 4 .b8 frame[4];\n"
    missing = "add.s32 %r2, %r1, 1;\n"
    assert failure(kernel(frame + missing + use), ints(1)).kind == "uninitialised"
    given = "mov.u32 %r1, 0;\nadd.s32 %r2, %r1, 1;\n"
    text = kernel(frame + given + use.replace("ld.global.u32 %r3, [%rd1]", "add.s64 %rd2, %rd1, 1"))
    Module(text).run(ints(1))


def test_a_register_without_a_value_may_be_there_for_nothing() -> None:
    """As compilers have it: the choice is known, or the other side decides."""
    Module(
        kernel(
            "setp.eq.u32 %p1, %r0, 0;\nselp.b32 %r2, 7, %r1, %p1;\nst.global.u32 [%rd0], %r2;\n"
            "not.pred %p2, %p1;\nand.pred %p4, %p2, %p3;\n@%p4 bra END;\nEND:"
        )
    ).run(ints(1))


def test_threads_that_no_barrier_orders_race() -> None:
    text = kernel(NEIGHBOUR.format(barrier="", distance=4), before=SHARED)
    error = failure(text, ints(1), threads=64)
    assert error.kind in ("uninitialised", "race")
    ordered = kernel(NEIGHBOUR.format(barrier="bar.sync 0;", distance=4), before=SHARED)
    Module(ordered).run(ints(1), threads=(64, 1, 1))


def test_a_write_races_with_reads_of_the_same_step() -> None:
    body = NEIGHBOUR.format(barrier="bar.sync 0;", distance=4) + "{}\nst.shared.u32 [%r3], %r6;"
    text = kernel(body.format(""), before=SHARED)
    assert failure(text, ints(1), threads=64).kind == "race"
    Module(kernel(body.format("bar.sync 0;"), before=SHARED)).run(ints(1), threads=(64, 1, 1))


def test_warps_race_although_they_run_one_after_another() -> None:
    text = kernel("shr.u32 %r1, %r0, 5;\nst.shared.u32 [buffer], %r1;", before=SHARED)
    assert failure(text, ints(1), threads=64).kind == "race"


def test_one_value_may_be_written_by_many() -> None:
    Module(kernel("st.global.u32 [%rd0], 1;")).run(ints(1), threads=(64, 1, 1), blocks=(3, 1, 1))


def test_what_orders_a_warp_orders_no_others() -> None:
    within = kernel(NEIGHBOUR.format(barrier="bar.warp.sync -1;", distance=4), before=SHARED)
    Module(within).run(ints(1), threads=(64, 1, 1))
    across = kernel(NEIGHBOUR.format(barrier="bar.warp.sync -1;", distance=128), before=SHARED)
    assert failure(across, ints(1), threads=64).kind in ("race", "uninitialised")


def test_blocks_race_and_no_barrier_orders_them() -> None:
    body = "mov.u32 %r1, %ctaid.x;\nbar.sync 0;\nst.global.u32 [%rd0], %r1;"
    assert failure(kernel(body), ints(1), blocks=2).kind == "race"
    reading = "mov.u32 %r1, %ctaid.x;\nld.global.u32 %r2, [%rd0];\nst.global.u32 [%rd0], %r1;"
    assert failure(kernel(reading), ints(1), blocks=2).kind == "race"


def test_atomic_operations_do_not_race_with_each_other() -> None:
    total = ints(1)
    Module(kernel("atom.global.add.u32 %r1, [%rd0], 1;")).run(
        total, threads=(64, 1, 1), blocks=(3, 1, 1)
    )
    assert total.array[0] == 192
    mixed = "atom.global.add.u32 %r1, [%rd0], 1;\nld.global.u32 %r2, [%rd0];"
    assert failure(kernel(mixed), ints(1), threads=64).kind == "race"


def test_a_grid_does_not_race_with_the_one_before() -> None:
    memory = ints(64)
    module = Module(kernel(ELEMENT + "xor.b32 %r1, %r0, 63;\nst.global.u32 [%rd4], %r1;"))
    module.run(memory, threads=(64, 1, 1))
    Module(kernel("ld.global.u32 %r1, [%rd0];\nst.global.u32 [%rd0+4], %r1;")).run(memory)


@pytest.mark.parametrize(
    "body",
    [
        "setp.lt.u32 %p1, %r0, {0};\n@%p1 bra END;\nbar.sync 0;\nEND:",
        "setp.lt.u32 %p1, %r0, {0};\n@%p1 bar.sync 0;",
        "setp.lt.u32 %p1, %r0, {0};\n@%p1 ret;\nbar.sync 0;",
        "setp.lt.u32 %p1, %r0, {0};\n@%p1 bra A;\nbar.sync 0;\nbra.uni END;\nA:\nbar.sync 0;\nEND:",
    ],
)
@pytest.mark.parametrize("some", [7, 32, 40])
def test_a_barrier_that_not_all_threads_reach_is_an_error(body: str, some: int) -> None:
    text = kernel(body.format(some))
    error = failure(text, ints(1), threads=64)
    assert error.kind == "barrier" and "bar.sync" in text.splitlines()[error.line - 1]
    Module(kernel(body.format(0).replace("@%p1 bar.sync", "bar.sync"))).run(
        ints(1), threads=(64, 1, 1)
    )


def test_threads_that_went_another_way_come_to_the_barrier() -> None:
    body = "setp.lt.u32 %p1, %r0, 7;\n@%p1 bra A;\nadd.s32 %r1, %r0, 1;\nA:\nbar.sync 0;"
    Module(kernel(body)).run(ints(1), threads=(64, 1, 1))


def test_an_exchange_needs_the_lanes_that_it_names() -> None:
    exchange = "shfl.sync.bfly.b32 %r1|%p2, %r0, 1, 31, -1;"
    missing = "setp.lt.u32 %p1, %r0, 7;\n@%p1 bra END;\n" + exchange + "\nEND:"
    assert failure(kernel(missing), ints(1), threads=32).kind == "barrier"
    assert failure(kernel(exchange), ints(1), threads=20).kind == "barrier"
    Module(kernel(exchange)).run(ints(1), threads=(32, 1, 1))


def test_an_exchange_gives_no_value_of_a_lane_that_takes_no_part() -> None:
    text = kernel(
        "setp.lt.u32 %p1, %r0, 8;\n@!%p1 bra END;\nshfl.sync.idx.b32 %r1, %r0, {}, 31, 255;\nEND:"
    )
    assert failure(text.replace("{}", "8"), ints(1), threads=32).kind == "uninitialised"
    Module(text.replace("{}", "7")).run(ints(1), threads=(32, 1, 1))


def test_a_write_to_a_parameter_is_an_error() -> None:
    text = kernel("mov.b64 %rd1, p0;\nst.param.u64 [%rd1], %rd0;")
    assert failure(text, 5).kind == "write to a parameter"


def test_constant_memory_is_only_read() -> None:
    constant = Memory(np.zeros(1, np.int32), constant=True)
    Module(kernel("ld.global.u32 %r1, [%rd0];")).run(constant)
    assert failure(kernel("st.global.u32 [%rd0], 1;"), constant).kind == "out of bounds"


def test_local_memory_ends_with_its_frame() -> None:
    text = kernel(".local .align 16 .b8 frame[16];\nst.local.u32 [frame+{}], %r0;")
    Module(text.replace("{}", "12")).run(ints(1))
    assert failure(text.replace("{}", "16"), ints(1)).kind == "out of bounds"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("frobnicate.u32 %r1, %r0;", "unknown instruction"),
        ("add.s8 %r1, %r0, %r0;", "unknown instruction"),
        ("ld.global.sideways.u32 %r1, [%rd0];", "unknown instruction"),
        ("call.uni nowhere, ();", "unknown instruction"),
        ("add.s64 %rd1, %r0, 1;", "not understood"),
        ("add.s32 %r1, %r0;", "not understood"),
        ("add.s32 %r99, %r0, 1;", "not understood"),
        ("bra NOWHERE;", "not understood"),
        ("ld.shared.u32 %r1, [p0];", "not understood"),
        ("mov.u32 %r1 %r0;", "not understood"),
    ],
)
def test_what_it_does_not_know_is_an_error(body: str, kind: str) -> None:
    assert failure(kernel(body), 0).kind == kind


def test_recursion_is_refused() -> None:
    before = ".func again()\n{\ncall.uni again, ();\nret;\n}\n"
    assert failure(kernel("call.uni again, ();", before=before), 0).kind == "unknown instruction"


def test_a_loop_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is read once in a process."""
    program = "import ptx_executor as p; p.Module(p.kernel('A:\\nbra A;', 0)).run()"
    monkeypatch.setenv("PUONE_PTX_LIMIT", "1000")
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", f"{here}:{here.parent}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "too many instructions: 1000" in done.stderr


def test_functions_have_parameters_and_results_of_their_own() -> None:
    before = """.func (.param .b32 func_retval0) twice(
.param .b32 twice_param_0
)
{
.reg .b32 %r<3>;
ld.param.u32 %r1, [twice_param_0];
LABEL:
add.s32 %r2, %r1, %r1;
st.param.b32 [func_retval0+0], %r2;
ret;
}
"""
    call = "{\n.param .b32 param0;\nst.param.b32 [param0+0], %r1;\n.param .b32 retval0;\n"
    call += "call.uni (retval0), twice, (param0);\nld.param.b32 %r1, [retval0+0];\n}\n"
    memory = ints(1)
    Module(
        kernel("mov.u32 %r1, 5;\n" + call * 2 + "st.global.u32 [%rd0], %r1;", before=before)
    ).run(memory)
    assert memory.array[0] == 20


def test_a_module_without_an_entry_of_the_name_is_refused() -> None:
    with pytest.raises(DeviceCodeError, match="no entry other"):
        Module(HEADER + ".func other()\n{\nret;\n}\n").run(entry="other")
