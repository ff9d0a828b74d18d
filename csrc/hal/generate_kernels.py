# SPDX-License-Identifier: BSD-3-Clause
"""Writes what follows from the kernel contract, kernels.yaml.

    python csrc/hal/generate_kernels.py OUTPUT_DIR      sources for a build
    python csrc/hal/generate_kernels.py --update        what is kept in the repository

CMake runs the first when the project is configured, and again when this file or the contract
changes. Needs PyYAML.

    kernels/args.h, kernels/args/*.h  the argument structs, in C99
    kernels/families/FAMILY.h         declares the kernels that csrc/kernels/FAMILY.cpp defines
    kernels/registry_SET.cpp          the table of a driver's kernels
    kernels/sources.cmake             the families of each set
    runtime/kernels.h                 a typed handle for each kernel: puone::kernel::gemm
    sanitizer/accesses.cpp            which memory a launch of each kernel reads and writes

    hal_conformance/src/hal_conformance/kernels.yaml      the HAL suite's copy of the contract
    docs/kernels.md                   the table of kernels
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kernel_accesses
from definitions import GeneratorError, read, write

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = Path(__file__).with_name("kernels.yaml")
WIDTH = 100
ALL_TYPES = (1 << 64) - 1

# What the parts of the contract are: key -> type.
Types = dict[str, "type | tuple[type, ...]"]
SECTIONS: Types = {
    "version": int,
    "type_sets": dict,
    "driver_sets": dict,
    "families": dict,
    "headers": dict,
}
KERNEL: Types = {
    "in": list,
    "out": list,
    "parameters": list,
    "chosen": list,
    "args": str,
    "version": int,
}
FIELD: Types = {
    "comment": str,
    "access": (str, dict),
    "extent": dict,
    "partial": (bool, list),
    "touches": (str, dict),
    "read_if": (str, dict),
    "write_if": (str, dict),
    "count": str,
    "fields": list,
}
DECLARATIONS: dict[str, Types] = {
    "define": {"define": str, "value": int},
    "enum": {"enum": str, "values": list},
    "struct": {"struct": str, "fields": list},
}


class ContractError(ValueError):
    """The contract contradicts itself; the message says where, without the file."""


@dataclass(frozen=True)
class Kernel:
    name: str
    family: str
    args: str
    outputs: tuple[str, ...]  # the operands of kernels that take such
    inputs: tuple[str, ...]
    chosen: tuple[str, ...]  # those inputs of which others choose the elements
    version: int
    types: str | list[str]  # as kernels.yaml names them
    element_types: int  # bits, as puone_kernel_info.element_types
    computes: str


@dataclass(frozen=True)
class Contract:
    version: int
    kernels: tuple[Kernel, ...]  # sorted by name
    sets: dict[str, tuple[str, ...]]  # of families
    headers: dict[str, dict[str, Any]]
    structs: dict[str, str]  # argument struct -> header

    def of(self, family: str) -> list[Kernel]:
        return [kernel for kernel in self.kernels if kernel.family == family]


def load(path: Path = CONTRACT) -> Contract:
    """The contract at `path`. Raises GeneratorError if it contradicts itself."""
    data, _ = read(path)
    try:
        return _contract(data)
    except ContractError as error:
        raise GeneratorError(f"{path}: {error}") from None


def _contract(data: Any) -> Contract:
    _check_shape(data)
    headers: dict[str, dict[str, Any]] = data["headers"]
    structs = {
        row["struct"]: header
        for header, rows in headers.items()
        for row in rows["declarations"]
        if "struct" in row
    }
    types = _Types(headers, data["type_sets"])
    kernels = []
    for family, rows in data["families"].items():
        for name, row in rows["kernels"].items():
            args = row.get("args") or rows.get("args")
            if args not in structs:
                raise ContractError(f"{name}: no argument struct is named {args}")
            try:
                bits = types.bits(row["types"])
            except ContractError as error:
                raise ContractError(f"{name}: {error}") from None
            version = row.get("version", 1)
            kernels.append(
                Kernel(
                    name=name,
                    family=family,
                    args=args,
                    outputs=tuple(row.get("out", ("out",))),
                    inputs=tuple(row.get("in", ())),
                    chosen=tuple(row.get("chosen", ())),
                    version=version,
                    types=row["types"],
                    element_types=bits,
                    computes=row["computes"],
                )
            )
    names = [kernel.name for kernel in kernels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ContractError(f"declared twice: {', '.join(twice)}")
    families = tuple(data["families"])
    sets = {
        name: families if members == "all" else tuple(members)
        for name, members in data["driver_sets"].items()
    }
    for name, members in sets.items():
        if unknown := sorted(set(members) - set(families)):
            raise ContractError(f"driver_sets: {name}: no family is named {', '.join(unknown)}")
    ordered = tuple(sorted(kernels, key=lambda kernel: kernel.name))
    return Contract(data["version"], ordered, sets, headers, structs)


def _check_shape(data: Any) -> None:
    """Raises ContractError unless every part of the contract is of the type that it should be."""
    _check_row("the contract", data, SECTIONS)
    for name, members in data["type_sets"].items():
        _check_names(f"type_sets: {name}", members)
    if data["driver_sets"].get("all") != "all":
        raise ContractError("driver_sets: lacks all: all")
    for name, members in data["driver_sets"].items():
        if members != "all":
            _check_names(f"driver_sets: {name}", members)
    for family, rows in data["families"].items():
        _check_row(f"families: {family}", rows, {"kernels": dict}, {"args": str})
        for name, row in rows["kernels"].items():
            where = f"families: {family}: {name}"
            _check_row(where, row, {"types": (str, list), "computes": str}, KERNEL)
            for word in (family, name):
                if not isinstance(word, str) or re.fullmatch("[a-z_][a-z0-9_]*", word) is None:
                    raise ContractError(f"{where}: {word} is not a name: [a-z_][a-z0-9_]*")
            if not row["computes"].isprintable() or row["computes"].endswith("\\"):
                raise ContractError(f"{where}: computes is not one line, or ends with a backslash")
            for key in ("types", "in", "out", "parameters", "chosen"):
                if not isinstance(row.get(key, ""), str):
                    _check_names(f"{where}: {key}", row[key])
    for header, row in data["headers"].items():
        where = f"headers: {header}"
        _check_row(where, row, {"comment": str, "declarations": list}, {"includes": list})
        for declared in row["declarations"]:
            _check_declaration(where, declared)


def _check_declaration(where: str, row: Any) -> None:
    kinds = [kind for kind in DECLARATIONS if isinstance(row, dict) and kind in row]
    if len(kinds) != 1:
        raise ContractError(f"{where}: {row} is not one of {', '.join(DECLARATIONS)}")
    where = f"{where}: {row[kinds[0]]}"
    _check_row(where, row, DECLARATIONS[kinds[0]], {"comment": str})
    for value in row.get("values", ()):
        _check_row(f"{where}: values", value, {"name": str, "value": int}, {"comment": str})
    _check_fields(where, row.get("fields", []))


def _check_fields(where: str, fields: list[Any]) -> None:
    for row in fields:
        if not isinstance(row, str):
            _check_row(f"{where}: fields", row, {"field": str}, FIELD)
            _check_fields(where, row.get("fields", []))


def _check_row(where: str, row: Any, required: Types, optional: Types | None = None) -> None:
    """A mapping with these keys, each of its type, and no others."""
    if not isinstance(row, dict):
        raise ContractError(f"{where}: is not a mapping")
    if missing := [key for key in required if key not in row]:
        raise ContractError(f"{where}: lacks {', '.join(missing)}")
    types = {**required, **(optional or {})}
    for key, value in row.items():
        if key not in types:
            raise ContractError(f"{where}: unknown key {key}; there are {', '.join(types)}")
        is_version = key == "version" and isinstance(value, int)
        is_empty = key == "types" and value in ("", [])
        if is_empty or (is_version and value < 1):
            raise ContractError(f"{where}: {key} is {value!r}")
        is_flag = isinstance(value, bool) and key != "partial"
        if is_flag or not isinstance(value, types[key]):
            raise ContractError(f"{where}: {key} is {value!r}, which is not of its type")


def _check_names(where: str, names: Any) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ContractError(f"{where}: is not a list of names")
    if len(set(names)) < len(names):
        raise ContractError(f"{where}: has a name twice")


class _Types:
    """The element types by name, one by one or in sets."""

    def __init__(self, headers: dict[str, dict[str, Any]], sets: dict[str, list[str]]) -> None:
        rows = [row for header in headers.values() for row in header["declarations"]]
        dtype = next((row for row in rows if row.get("enum") == "puone_dtype"), None)
        if dtype is None:
            raise ContractError("headers: no enum is named puone_dtype")
        self._values = {
            value["name"].removeprefix("PUONE_").lower(): value["value"]
            for value in dtype["values"]
        }
        self._sets = sets

    def bits(self, named: str | list[str], depth: int = 0) -> int:
        if named == "any":
            return ALL_TYPES
        if depth > len(self._sets):
            raise ContractError(f"type_sets: {named} contains itself")
        result = 0
        for name in [named] if isinstance(named, str) else named:
            if name in self._values:
                result |= 1 << self._values[name]
            elif name in self._sets:
                result |= self.bits(self._sets[name], depth + 1)
            else:
                raise ContractError(f"no element type and no set of them is named {name}")
        return result


# ---- C: the argument structs ----


def c_header(name: str, header: dict[str, Any]) -> str:
    """kernels/args.h and kernels/args/*.h"""
    guard = "PUONE_" + re.sub(r"\W", "_", name).upper()
    includes = "".join(f'#include "{other}"\n' for other in header.get("includes", ()))
    declarations = "\n\n".join(_declaration(row) for row in header["declarations"])
    return f"""\
/* SPDX-License-Identifier: BSD-3-Clause */
/* Generated from csrc/hal/kernels.yaml by generate_kernels.py: edit that. */
{_comment(header["comment"])}
#ifndef {guard}
#define {guard}

{includes or "#include <stdint.h>" + chr(10)}
#ifdef __cplusplus
extern "C" {{
#endif

{declarations}

#ifdef __cplusplus
}} /* extern "C" */
#endif

#endif /* {guard} */
"""


def _declaration(row: dict[str, Any]) -> str:
    comment = _comment(row["comment"]) + "\n" if "comment" in row else ""
    if "define" in row:
        return f"{comment}#define {row['define']} {row['value']}"
    if "enum" in row:
        values = [
            (f"{value['name']} = {value['value']}", value.get("comment")) for value in row["values"]
        ]
        body = [
            line
            for i, (text, said) in enumerate(values)
            for line in _member(text + ("," if i + 1 < len(values) else ""), said, "  ")
        ]
        return "\n".join([f"{comment}typedef enum {row['enum']} {{", *body, f"}} {row['enum']};"])
    body = list(_fields(row["fields"], "  "))
    return "\n".join([f"{comment}typedef struct {row['struct']} {{", *body, f"}} {row['struct']};"])


def _fields(fields: list[Any], indent: str) -> Iterator[str]:
    for row in fields:
        field: dict[str, Any] = {"field": row} if isinstance(row, str) else row
        if "fields" in field:
            yield f"{indent}struct {{"
            yield from _fields(field["fields"], indent + "  ")
            yield f"{indent}}} {field['field'].removeprefix('struct ')};"
        else:
            yield from _member(f"{field['field']};", field.get("comment"), indent)


def _member(text: str, comment: str | None, indent: str) -> Iterator[str]:
    """A field or an enumerator, its comment behind it if there is room."""
    line = indent + text
    if comment and len(line) + len(comment) + 7 > WIDTH:
        yield textwrap.indent(_comment("\n".join(textwrap.wrap(comment, WIDTH - 10))), indent)
        yield line
    else:
        yield f"{line} /* {comment} */" if comment else line


def _comment(text: str) -> str:
    lines = text.split("\n")
    if len(lines) == 1 and len(text) + 6 <= WIDTH:
        return f"/* {text} */"
    body = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"/*{body[2:]} */" if len(lines[-1]) + 6 <= WIDTH else f"/*{body[2:]}\n */"


# ---- C++: handles and registries ----

HEAD = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from csrc/hal/kernels.yaml by generate_kernels.py: edit that.
"""


def handles(contract: Contract) -> str:
    """runtime/kernels.h"""
    includes = "\n".join(f'#include "{header}"' for header in contract.headers)
    lines = "\n".join(
        f"// {k.computes}\n"
        f'inline constinit const Kernel<{k.args}> {k.name}{{"{k.name}", {k.version}}};'
        for k in contract.kernels
    )
    return f"""{HEAD}\
// The kernels that operators launch. A driver may lack any of them: ask available() or supports().
#pragma once

#include "hal/hal.h"
{includes}
#include "runtime/kernel.h"

static_assert(
    PUONE_KERNEL_SET_VERSION == {contract.version}, "hal.h and kernels.yaml are of one version");

namespace puone::kernel {{

{lines}

}} // namespace puone::kernel
"""


def accesses(contract: Contract) -> str:
    """sanitizer/accesses.cpp. Raises ContractError."""
    structs = {
        row["struct"]: row["fields"]
        for header in contract.headers.values()
        for row in header["declarations"]
        if "struct" in row
    }
    try:
        functions = kernel_accesses.accesses(structs, contract.kernels)
    except kernel_accesses.AccessError as error:
        raise ContractError(str(error)) from None
    includes = "\n".join(f'#include "{header}"' for header in contract.headers)
    return f"""{HEAD}\
#include <array>

{includes}
#include "sanitizer/operands.h"

#define PUONE_SELECT(condition, a, b) ((condition) ? (a) : (b))
#define PUONE_CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

namespace puone::sanitizer {{
namespace {{

{functions}
}} // namespace puone::sanitizer
"""


def family_header(contract: Contract, family: str) -> str:
    """kernels/families/FAMILY.h"""
    kernels = contract.of(family)
    headers = sorted({contract.structs[k.args] for k in kernels})
    includes = "\n".join(f'#include "{header}"' for header in headers)
    lines = "\n".join(f"extern const Implementation<{k.args}> kernel_{k.name};" for k in kernels)
    return f"""{HEAD}\
// The kernels of csrc/kernels/{family}.cpp, which defines each by PUONE_KERNEL(name).
#pragma once

{includes}
#include "kernels/entry.h"

namespace puone::kernels::PUONE_ISA {{

{lines}

}} // namespace puone::kernels::PUONE_ISA
"""


def registry(contract: Contract, families: tuple[str, ...]) -> str:
    """kernels/registry_SET.cpp"""
    kernels = [k for k in contract.kernels if k.family in families]
    includes = "".join(f'#include "kernels/families/{family}.h"\n' for family in families)
    rows = "\n".join(
        f'    entry<{k.args}, kernel_{k.name}>("{k.name}", {k.version}, {k.element_types:#x}),'
        for k in kernels
    )
    table = f"constexpr Kernel kKernels[] = {{\n{rows}\n}};\n\n" if kernels else ""
    return f"""{HEAD}\
#include <span>

#include "kernels/entry.h"
{includes}#include "kernels/kernels.h"

namespace puone::kernels::PUONE_ISA {{

{table}std::span<const Kernel> kernels() {{
  return {"kKernels" if kernels else "{}"};
}}

}} // namespace puone::kernels::PUONE_ISA
"""


def sources(contract: Contract) -> str:
    """kernels/sources.cmake"""
    lines = "\n".join(
        f'set(PUONE_KERNEL_FAMILIES_{name} "{";".join(families)}")'
        for name, families in contract.sets.items()
    )
    return HEAD.replace("//", "#") + lines + "\n"


# ---- documentation ----


def documentation(contract: Contract) -> str:
    """docs/kernels.md"""
    parts = []
    for family in contract.sets["all"]:
        rows = "\n".join(
            f"| `{k.name}` | `{k.args}` | {_type_names(k.types)} | {k.version} | "
            f"{k.computes.replace('|', chr(92) + '|')} |"
            for k in contract.of(family)
        )
        parts.append(
            f"## {family}\n\n| kernel | arguments | types | version | computes |\n"
            f"|---|---|---|---|---|\n{rows}\n"
        )
    tables = "\n".join(parts)
    return f"""\
<!-- Generated from csrc/hal/kernels.yaml by csrc/hal/generate_kernels.py --update: edit that. -->
# The kernels

The {len(contract.kernels)} kernels that a driver may offer, version {contract.version} of the \
set. Each is optional. `csrc/hal/kernels.yaml`
says which element types a name in the column "types" stands for, in which order a kernel takes its
operands and parameters, and declares the argument structs, of which a build generates the C headers
`kernels/args.h` and `kernels/args/*.h`.

{tables}"""


def _type_names(types: str | list[str]) -> str:
    return types if isinstance(types, str) else ", ".join(types)


# ---- files ----


def built(contract: Contract) -> dict[str, str]:
    """The files of a build."""
    files = {name: c_header(name, header) for name, header in contract.headers.items()}
    files["runtime/kernels.h"] = handles(contract)
    files["kernels/sources.cmake"] = sources(contract)
    files["sanitizer/accesses.cpp"] = accesses(contract)
    for family in contract.sets["all"]:
        files[f"kernels/families/{family}.h"] = family_header(contract, family)
    for name, families in contract.sets.items():
        files[f"kernels/registry_{name}.cpp"] = registry(contract, families)
    return files


def kept(contract: Contract) -> dict[str, str]:
    """The files of the repository."""
    return {
        "hal_conformance/src/hal_conformance/kernels.yaml": CONTRACT.read_text(),
        "docs/kernels.md": documentation(contract),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, nargs="?", help="directory for the sources of a build")
    parser.add_argument("--update", action="store_true", help="write what the repository keeps")
    options = parser.parse_args()
    if (options.output is None) == (not options.update):
        parser.error("give either an output directory or --update")
    try:
        if options.update:
            write(ROOT, kept(load()))
        else:
            write(options.output, built(load()))
    except GeneratorError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
