# SPDX-License-Identifier: BSD-3-Clause
"""What a loop has computed with a costly function, the loops behind it take from memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torch_puone._inductor.kept import keep
from torch_puone._inductor.source import Loop, Once, Part, Reduction


def loop(lines: str, *values: str, stores: str = "", count: str = "128L") -> Loop:
    reductions = [
        Reduction("reduce", "float", "float", "0", "a + b", value, {f"of_{value}": ("float", "{}")})
        for value in values
    ]
    entries = "const int64_t r0_1 = r0_index;\n"
    return Loop("r0_index", count, entries, lines + stores, lines, reductions)


def kept(*parts: Part) -> tuple[str, list[Part]]:
    return keep(parts, lambda _: "float")


def lines(part: Part) -> list[str]:
    return part.lines.splitlines()


EXP = """\
const auto tmp0 = ops::read(in_ptr0[r0_1 + 128L*x0]);
const auto tmp1 = ops::sub(tmp0, top);
const auto tmp2 = ops::exp(tmp1);
"""
AGAIN = EXP.replace("tmp", "tmp9")
QUOTIENT = "const auto tmp99 = ops::div(tmp92, sum);\n"
STORE = "out_ptr0[r0_1 + 128L*x0] = ops::write<float>(tmp99);\n"


def test_what_is_the_same_in_a_later_loop_is_taken_from_memory() -> None:
    declared, (first, last) = kept(loop(EXP, "tmp2"), loop(AGAIN + QUOTIENT, stores=STORE))
    assert declared.splitlines() == [
        "RowValues<float, 128L> kept3_values;",
        "const auto kept3 = kept3_values.begin();",
    ]
    assert lines(first) == [*EXP.splitlines(), "kept3[r0_index] = tmp2;"]
    assert lines(last) == [
        "const auto tmp92 = kept3[r0_index];",
        QUOTIENT.rstrip(),
        STORE.rstrip(),
    ]


def unchanged(*parts: Part) -> bool:
    return kept(*parts) == ("", list(parts))


def test_what_is_cheap_is_computed_again() -> None:
    cheap = EXP.replace("exp", "relu")
    assert unchanged(loop(cheap, "tmp2"), loop(cheap, "tmp2"))


@pytest.mark.parametrize(
    ("old", "new"),
    [("x0", "x0 + 1"), ("in_ptr0", "in_ptr1"), ("ops::exp", "ops::exp2"), ("top", "bottom")],
)
def test_another_value_is_computed(old: str, new: str) -> None:
    assert unchanged(loop(EXP, "tmp2"), loop(AGAIN.replace(old, new), "tmp92"))


def test_a_row_that_is_long_or_of_unknown_length_is_not_kept() -> None:
    for count in ("1025L", "r0_numel"):
        assert unchanged(loop(EXP, "tmp2", count=count), loop(AGAIN, "tmp92", count=count))


def test_what_was_overwritten_meanwhile_is_loaded_again() -> None:
    in_place = EXP.replace("in_ptr0", "in_out_ptr0")
    again = in_place.replace("tmp", "tmp9")
    store = "in_out_ptr0[r0_1 + 128L*x0] = ops::write<float>(tmp2);\n"
    assert unchanged(loop(in_place, "tmp2", stores=store), loop(again, "tmp92"))
    once = Once("", "in_out_ptr0[x0] = ops::write<float>(sum);\n")
    assert unchanged(loop(in_place, "tmp2"), once, loop(again, "tmp92"))


def test_a_loop_that_checks_or_masks_is_left_as_it_is() -> None:
    for line in (
        "if (!args.arguments.check(0, tmp0, 9L)) PUONE_LEAVE;\n",
        "float tmp5 = float(0.0);\n",
        "ops::atomic_add(&out_ptr0[x0], tmp2);\n",
    ):
        assert unchanged(loop(EXP + line, "tmp2"), loop(AGAIN, "tmp92"))


def test_a_loop_with_two_passes_has_one_before_it_that_computes() -> None:
    moments = loop(EXP, "tmp2")
    moments.reductions[0].function = "welford_reduce"
    _, (before, passes) = kept(moments)
    assert lines(before) == [*EXP.splitlines(), "kept3[r0_index] = tmp2;"]
    assert isinstance(before, Loop)
    assert before.reductions == []
    assert lines(passes) == ["const auto tmp2 = kept3[r0_index];"]


def test_stores_of_a_loop_with_two_passes_stay_behind_them() -> None:
    store = "out_ptr0[r0_1 + 128L*x0] = ops::write<float>(tmp2);\n"
    moments = loop(EXP, "tmp2", stores=store)
    moments.reductions[0].function = "welford_reduce"
    _, (before, passes) = kept(moments)
    assert "out_ptr0" not in before.lines
    assert lines(passes) == ["const auto tmp2 = kept3[r0_index];", store.rstrip()]


def test_an_element_keeps_only_a_few_values() -> None:
    many = "".join(
        f"const auto tmp{10 + n} = ops::exp(ops::read(in_ptr{n}[r0_1]));\n" for n in range(9)
    )
    reads = loop(many, *(f"tmp{10 + n}" for n in range(9)))
    declared, _ = kept(replace(reads), replace(reads))
    assert declared.count("RowValues") == 4
