# SPDX-License-Identifier: BSD-3-Clause
"""Writes what follows from the kernel contract, kernels.yaml.

    python csrc/hal/generate_kernels.py OUTPUT_FOLDER   sources for a build
    python csrc/hal/generate_kernels.py --update        what is kept in the repository

CMake runs the first when the project is configured, and again when this file or the contract
changes. A file that would not change is left alone, so that nothing is compiled again for it.
Needs PyYAML.

    kernels/args.h, kernels/args/*.h  the argument structs, in C99
    kernels/families/FAMILY.h         declares the kernels that csrc/kernels/FAMILY.cpp defines
    kernels/registry_SET.cpp          the table of a driver's kernels
    kernels/sources.cmake             the families of each set
    runtime/kernels.h                 a typed handle for each kernel: puone::kernel::gemm

    conformance/hal/kernels.yaml      the HAL suite's copy of the contract
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

try:
    import yaml
except ImportError:
    sys.exit(
        f"generate_kernels.py needs PyYAML, which {sys.executable} does not have: "
        f"{sys.executable} -m pip install pyyaml"
    )

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = Path(__file__).with_name("kernels.yaml")
WIDTH = 100
ALL_TYPES = (1 << 64) - 1


class ContractError(ValueError):
    """kernels.yaml contradicts itself."""


@dataclass(frozen=True)
class Kernel:
    name: str
    family: str
    args: str
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
    """The contract at `path`. Raises ContractError if it contradicts itself."""
    data = yaml.load(path.read_text(), Loader=_UniqueKeys)
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
            bits = types.bits(row["types"])
            version = row.get("version", 1)
            kernels.append(Kernel(name, family, args, version, row["types"], bits, row["computes"]))
    names = [kernel.name for kernel in kernels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ContractError(f"declared twice: {', '.join(twice)}")
    families = tuple(data["families"])
    sets = {
        name: families if members == "all" else tuple(members)
        for name, members in data["driver_sets"].items()
    }
    ordered = tuple(sorted(kernels, key=lambda kernel: kernel.name))
    return Contract(data["version"], ordered, sets, headers, structs)


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that a mapping already has, of which YAML would keep the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise ContractError(f"{node.start_mark}: {key} is declared twice")
        return dict(super().construct_mapping(node, deep=deep))


class _Types:
    """The element types by name, one by one or in sets."""

    def __init__(self, headers: dict[str, dict[str, Any]], sets: dict[str, list[str]]) -> None:
        rows = [row for header in headers.values() for row in header["declarations"]]
        dtype = next(row for row in rows if row.get("enum") == "puone_dtype")
        self._values = {
            value["name"].removeprefix("PUONE_").lower(): value["value"]
            for value in dtype["values"]
        }
        self._sets = sets

    def bits(self, named: str | list[str]) -> int:
        if named == "any":
            return ALL_TYPES
        result = 0
        for name in [named] if isinstance(named, str) else named:
            if name in self._values:
                result |= 1 << self._values[name]
            elif name in self._sets:
                result |= self.bits(self._sets[name])
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
says which element types a name in the column "types" stands for, and declares the argument structs,
of which a build generates the C headers `kernels/args.h` and `kernels/args/*.h`.

{tables}"""


def _type_names(types: str | list[str]) -> str:
    return types if isinstance(types, str) else ", ".join(types)


# ---- files ----


def built(contract: Contract) -> dict[str, str]:
    """The files of a build."""
    files = {name: c_header(name, header) for name, header in contract.headers.items()}
    files["runtime/kernels.h"] = handles(contract)
    files["kernels/sources.cmake"] = sources(contract)
    for family in contract.sets["all"]:
        files[f"kernels/families/{family}.h"] = family_header(contract, family)
    for name, families in contract.sets.items():
        files[f"kernels/registry_{name}.cpp"] = registry(contract, families)
    return files


def kept(contract: Contract) -> dict[str, str]:
    """The files of the repository."""
    return {
        "conformance/hal/kernels.yaml": CONTRACT.read_text(),
        "docs/kernels.md": documentation(contract),
    }


def write(path: Path, text: str) -> None:
    """Write the file unless it already says that."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, nargs="?", help="folder for the sources of a build")
    parser.add_argument("--update", action="store_true", help="write what the repository keeps")
    options = parser.parse_args()
    if (options.output is None) == (not options.update):
        parser.error("give either an output folder or --update")
    try:
        contract = load()
    except ContractError as error:
        sys.exit(f"{CONTRACT}: {error}")
    files = kept(contract) if options.update else built(contract)
    for name, text in files.items():
        write((ROOT if options.update else options.output) / name, text)


if __name__ == "__main__":
    main()
