# SPDX-License-Identifier: BSD-3-Clause
"""The kernel contract as the suite sees it: kernels.yaml, and its argument structs in ctypes.

kernels.yaml beside this file is a copy of csrc/hal/kernels.yaml; a test of the project compares
them, and the structs made here with the C headers.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PATH = Path(__file__).with_name("kernels.yaml")
# The first needs libyaml, which not every build of PyYAML has, and is ten times as fast.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

C_TYPES: dict[str, Any] = {
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "unsigned char": ctypes.c_ubyte,
    "void*": ctypes.c_void_p,
}
# "int64_t strides[PUONE_MAX_DIMS]": type, name, array bounds.
DECLARATION = re.compile(
    r"(?P<type>unsigned char|struct|\w+\*?) (?P<name>\w+)(?P<bounds>(\[\w+\])*)"
)


@dataclass(frozen=True)
class Field:
    """A field of an argument struct. `type` is the C type, `fields` those of an unnamed struct."""

    type: str
    name: str
    bounds: tuple[int, ...]
    fields: tuple[Field, ...] = ()
    access: str | dict[str, str] | None = None
    extent: dict[str, Any] | None = None
    count: str | None = None

    @property
    def is_pointer(self) -> bool:
        return self.type in ("void*", "puone_operand", "puone_matrix")


@dataclass(frozen=True)
class Kernel:
    name: str
    family: str
    args: str
    version: int
    element_types: int  # bits of puone_dtype
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    computes: str


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = yaml.load(PATH.read_text(encoding="utf-8"), LOADER)
    return data


def _declarations(kind: str) -> Iterator[dict[str, Any]]:
    for header in _data()["headers"].values():
        for row in header["declarations"]:
            if kind in row:
                yield row


@cache
def constants() -> dict[str, int]:
    """Every constant and enumerator of the argument headers."""
    found = {row["define"]: int(row["value"]) for row in _declarations("define")}
    for row in _declarations("enum"):
        found |= {value["name"]: int(value["value"]) for value in row["values"]}
    return found


@cache
def enums() -> dict[str, tuple[str, ...]]:
    """The members of every enum of the argument headers."""
    return {
        row["enum"]: tuple(value["name"] for value in row["values"])
        for row in _declarations("enum")
    }


def _field(row: str | dict[str, Any]) -> Field:
    said: dict[str, Any] = {"field": row} if isinstance(row, str) else row
    found = DECLARATION.fullmatch(said["field"])
    assert found, said
    bounds = re.findall(r"\w+", found["bounds"])
    return Field(
        type=found["type"],
        name=found["name"],
        bounds=tuple(int(b) if b.isdigit() else constants()[b] for b in bounds),
        fields=tuple(_field(inner) for inner in said.get("fields", ())),
        access=said.get("access"),
        extent=said.get("extent"),
        count=said.get("count"),
    )


@cache
def fields() -> dict[str, tuple[Field, ...]]:
    """The fields of every struct of the argument headers."""
    return {
        row["struct"]: tuple(_field(field) for field in row["fields"])
        for row in _declarations("struct")
    }


def _structure(name: str, members: tuple[Field, ...]) -> type[ctypes.Structure]:
    layout: list[tuple[str, Any]] = []
    for field in members:
        if field.fields:
            kind: Any = _structure(f"{name}_{field.name}", field.fields)
        else:
            kind = C_TYPES.get(field.type) or struct(field.type)
        for bound in reversed(field.bounds):
            kind = kind * bound
        layout.append((field.name, kind))
    return type(name, (ctypes.Structure,), {"_fields_": layout})


@cache
def struct(name: str) -> type[ctypes.Structure]:
    """The struct of that name, as ctypes has it."""
    return _structure(name, fields()[name])


def _bits(named: str | list[str]) -> int:
    if named == "any":
        return (1 << 64) - 1
    bits = 0
    for name in [named] if isinstance(named, str) else named:
        value = constants().get(f"PUONE_{name.upper()}")
        bits |= 1 << value if value is not None else _bits(_data()["type_sets"][name])
    return bits


@cache
def kernels() -> dict[str, Kernel]:
    """Every kernel of the contract, by name."""
    found = {}
    for family, rows in _data()["families"].items():
        for name, row in rows["kernels"].items():
            found[name] = Kernel(
                name=name,
                family=family,
                args=row.get("args") or rows["args"],
                version=row.get("version", 1),
                element_types=_bits(row["types"]),
                inputs=tuple(row.get("in", ())),
                outputs=tuple(row.get("out", ("out",))),
                parameters=tuple(row.get("parameters", ())),
                computes=row["computes"],
            )
    return dict(sorted(found.items()))


def access(field: Field, kernel: Kernel, index: int = 0) -> str | None:
    """What a launch of `kernel` does with the memory behind element `index` of a pointer field:
    read, write, read_write, workspace, or None if it does not touch it."""
    if field.access == "operands":
        operands = len(kernel.outputs) + len(kernel.inputs)
        written = "write" if index < len(kernel.outputs) else "read"
        return written if index < operands else None
    if isinstance(field.access, dict):
        return field.access.get(kernel.name)
    return field.access
