# SPDX-License-Identifier: BSD-3-Clause
"""The C++ that says which memory a launch touches, made of the kernel contract."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import generate_kernels as generator
import kernel_accesses
import pytest


@dataclass(frozen=True)
class Kernel:
    name: str = "k"
    args: str = "args"
    outputs: tuple[str, ...] = ("out",)
    inputs: tuple[str, ...] = ("x",)
    chosen: tuple[str, ...] = ()


def made(*fields: Any, structs: dict[str, list[Any]] | None = None) -> str:
    """The function of a kernel whose argument struct has these fields, in one line."""
    text = kernel_accesses.accesses({"args": list(fields), **(structs or {})}, [Kernel()])
    return re.sub(r"\s+", " ", text)


def pointer(**said: Any) -> dict[str, Any]:
    dense = {"form": "dense", "count": "n", "element": "float32"}
    return {"field": "void* data", "access": "read", "extent": dense, **said}


def test_every_kernel_has_a_function_and_a_row() -> None:
    contract = generator.load()
    text = generator.accesses(contract)
    for kernel in contract.kernels:
        assert f"void {kernel.name}_(const void*" in text
        assert f'{{"{kernel.name}", {kernel.name}_}},' in text


def test_operands_have_the_names_that_the_kernel_gives_them() -> None:
    extent = {"form": "strided", "element": "dtypes", "unless": "immediate"}
    operands = {"field": "puone_operand operands[6]", "access": "operands", "extent": extent}
    fields = ("int32_t ndim", "int32_t dtypes[6]", "uint32_t immediate", "int64_t sizes[25]")
    text = made(*fields, operands)
    assert 'to.add("out", a.operands[0].data, E, {.reads = false, .writes = true' in text
    assert 'to.add("x", a.operands[1].data, E, {.reads = true, .writes = false' in text
    assert "(a.immediate >> 1 & 1) == 0" in text
    assert "a.operands[2]" not in text


def test_a_condition_decides_whether_memory_is_read_or_written() -> None:
    text = made("int64_t n", "int32_t first", pointer(access="read_write", read_if="first == 0"))
    assert ".reads = a.first == 0, .writes = true" in text
    text = made("int64_t n", "int32_t on", pointer(access="read_write", write_if={"k": "on != 0"}))
    assert ".reads = true, .writes = a.on != 0" in text
    text = made("int64_t n", "int32_t on", pointer(access="read", write_if="on != 0"))
    assert ".reads = true, .writes = false" in text


def test_a_part_may_be_touched_by_some_kernels_only() -> None:
    assert ".partial = true" in made("int64_t n", pointer(partial=True))
    assert ".partial = true" in made("int64_t n", pointer(partial=["k"]))
    assert ".partial = false" in made("int64_t n", pointer(partial=["other"]))


def test_the_geometry_may_choose_how_much_is_touched() -> None:
    extent = {"form": "dense", "count": "n", "units": "planes", "element": "float32"}
    fields = ("int64_t n", "int64_t planes")
    touches = "reached(n, 1, 1, 1, 0, n)"
    text = made(*fields, pointer(touches=touches, extent=extent))
    assert "if (const int64_t touched = reached(a.n, 1, 1, 1, 0, a.n); touched != kNothing)" in text
    assert ".partial = touched == kSome" in text
    assert "o.step(a.n, E); o.unitStep(a.planes, (a.n) * E);" in text
    other = made(*fields, pointer(touches={"other": touches}, extent=extent))
    assert ".partial = false" in other and "touched" not in other


def test_other_operands_may_choose_the_elements_of_one() -> None:
    text = generator.accesses(generator.load())
    where = text[text.index("void where_(") :]
    for operand, chosen in (
        ("condition", ""),
        ("a", ", .chosen = true"),
        ("b", ", .chosen = true"),
    ):
        flags = f"{{.reads = true, .writes = false, .partial = false{chosen}}}"
        assert re.search(rf'to.add\("{operand}", \S+, E, {re.escape(flags)}\);', where)


def test_names_are_looked_up_in_the_struct_and_in_those_around_it() -> None:
    inner = {"form": "dense", "count": "rows * bytes", "element": "uint8"}
    part = [{"field": "void* data", "access": "read", "extent": inner}, "int64_t bytes"]
    parts = {"field": "part parts[64]", "count": "count"}
    text = made("int64_t rows", "int64_t count", parts, structs={"part": part})
    assert "for (int64_t t0 = 0; t0 < a.count; ++t0)" in text
    assert "o.step(a.rows * a.parts[t0].bytes, E);" in text


def test_a_kernel_that_does_not_touch_a_pointer_is_left_out() -> None:
    text = made("int64_t n", pointer(access={"other": "read"}))
    assert "void k_(const void* /*args*/, Operands& /*to*/) {}" in text


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (pointer(extent={"form": "dense", "count": "m", "element": "int64"}), "no field m"),
        (pointer(extent={"form": "round", "element": "int64"}), "no form round"),
        (pointer(read_if="m != 0"), "no field m"),
    ],
)
def test_what_cannot_be_expressed_is_an_error(field: dict[str, Any], message: str) -> None:
    with pytest.raises(kernel_accesses.AccessError, match=f"k: .*{message}"):
        made("int64_t n", field)
