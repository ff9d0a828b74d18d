# SPDX-License-Identifier: BSD-3-Clause
"""Lines move before a loop if they are the same for all of its elements, and only then."""

from __future__ import annotations

from torch_puone._inductor.invariants import split

ROW = """\
const auto tmp0 = ops::read(in_ptr0[x1]);
const auto tmp1 = ops::read(in_ptr1[x0]);
const auto tmp2 = float(2.0);
const auto tmp3 = float(3.0);
const auto tmp4 = ops::mul(tmp1, tmp2);
const auto tmp5 = ops::add(tmp0, ops::add(tmp4, tmp3));
out_ptr0[x1] = ops::write<float>(tmp5);
"""


def test_what_a_row_loads_moves_with_what_is_computed_from_it() -> None:
    moved, staying = split(ROW, ["x1"])
    assert moved == (
        "const auto tmp2 = float(2.0);\n"
        "const auto tmp1 = ops::read(in_ptr1[x0]);\n"
        "const auto tmp4 = ops::mul(tmp1, tmp2);\n"
    )
    assert staying == (
        "const auto tmp0 = ops::read(in_ptr0[x1]);\n"
        "const auto tmp3 = float(3.0);\n"
        "const auto tmp5 = ops::add(tmp0, ops::add(tmp4, tmp3));\n"
        "out_ptr0[x1] = ops::write<float>(tmp5);\n"
    )


def test_nothing_moves_without_a_load() -> None:
    lines = "const auto tmp1 = ops::add(tmp0, tmp0);\nout_ptr0[x1] = ops::write<float>(tmp1);\n"
    assert split(lines, ["x1"]) == ("", lines)


def test_nothing_moves_across_a_check() -> None:
    lines = (
        "const auto tmp0 = ops::read(in_ptr0[x0]);\n"
        "if (!args.arguments.check(0, tmp0, 9L)) PUONE_LEAVE;\n"
        "const auto tmp1 = ops::read(in_ptr1[tmp0]);\n"
    )
    moved, staying = split(lines, ["x1"])
    assert moved == "const auto tmp0 = ops::read(in_ptr0[x0]);\n"
    assert "in_ptr1" in staying


def test_what_the_kernel_stores_is_loaded_where_it_was() -> None:
    lines = "const auto tmp0 = ops::read(in_out_ptr0[x0]);\n"
    assert split(lines, ["x1"]) == ("", lines)


def test_what_is_loaded_under_a_mask_stays_there() -> None:
    lines = (
        "const auto tmp0 = ops::read(in_ptr0[x0]);\n"
        "float tmp2 = float(0.0);\n"
        "if (tmp1) {\n"
        "  const auto tmp3 = ops::read(in_ptr1[x0]);\n"
        "  tmp2 = tmp3;\n"
        "}\n"
        "const auto tmp4 = ops::add(tmp0, tmp2);\n"
    )
    moved, staying = split(lines, ["x1"])
    assert moved == "const auto tmp0 = ops::read(in_ptr0[x0]);\n"
    assert staying == lines.removeprefix(moved)


def test_what_follows_from_a_line_that_stays_stays() -> None:
    lines = (
        "const auto tmp0 = ops::read(in_ptr0[x0]);\n"
        "float tmp1 = float(x1);\n"
        "const auto tmp2 = ops::add(tmp0, tmp1);\n"
    )
    assert split(lines, ["x1"])[1] == lines.split("\n", 1)[1]
