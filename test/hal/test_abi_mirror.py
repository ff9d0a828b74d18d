# SPDX-License-Identifier: BSD-3-Clause
"""The suite's ctypes mirror says what the headers say: names, order, values, types, sizes."""

from __future__ import annotations

import ctypes
import enum
import re
import subprocess
import sys
from collections.abc import Iterator
from ctypes import (
    POINTER,
    c_char_p,
    c_float,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

import pytest

from hal_conformance import abi, contract, kernels

CSRC = Path(__file__).resolve().parents[2] / "csrc"
HAL = CSRC / "hal" / "hal.h"
ORIGIN = CSRC / "hal" / "origin.h"
IPC = CSRC / "hal" / "ipc.h"
MODULE = CSRC / "hal" / "module.h"
COLLECTIVE = CSRC / "hal" / "collective.h"
HEADERS = (HAL, ORIGIN, IPC, MODULE, COLLECTIVE)
GENERATOR = CSRC / "hal" / "generate_kernels.py"

# C enum -> its mirror and the prefix of its members.
ENUMS: dict[str, tuple[type[enum.IntEnum] | type[enum.IntFlag], str]] = {
    "puone_status": (abi.Status, "PUONE_"),
    "puone_capability": (abi.Capability, "PUONE_CAP_"),
    "puone_memory_kind": (abi.MemoryKind, "PUONE_MEMORY_"),
    "puone_memcpy_kind": (abi.MemcpyKind, "PUONE_MEMCPY_"),
    "puone_event_flags": (abi.EventFlags, "PUONE_EVENT_"),
    "puone_trace_kind": (abi.TraceKind, "PUONE_TRACE_"),
    "puone_module_flags": (abi.ModuleFlags, "PUONE_MODULE_"),
    "puone_module_access_flags": (abi.ModuleAccessFlags, "PUONE_MODULE_"),
    "puone_collective_reduction": (abi.Reduction, "PUONE_COLLECTIVE_"),
}
STRUCTS: dict[str, type[ctypes.Structure]] = {
    "puone_driver_info": abi.DriverInfo,
    "puone_device_properties": abi.DeviceProperties,
    "puone_pointer_attributes": abi.PointerAttributes,
    "puone_kernel_info": abi.KernelInfo,
    "puone_launch_context": abi.LaunchContext,
    "puone_hal_api": abi.HalApi,
    "puone_fault_api": abi.FaultApi,
    "puone_dlpack_api": abi.DlpackApi,
    "puone_graph_api": abi.GraphApi,
    "puone_trace_record": abi.TraceRecord,
    "puone_trace_api": abi.TraceApi,
    "puone_origin_api": abi.OriginApi,
    "puone_ipc_memory_handle": abi.IpcMemoryHandle,
    "puone_ipc_api": abi.IpcApi,
    "puone_module_target": abi.ModuleTarget,
    "puone_module_options": abi.ModuleOptions,
    "puone_module_arguments": abi.ModuleArguments,
    "puone_module_number": abi.ModuleNumber,
    "puone_module_step": abi.ModuleStep,
    "puone_module_access": abi.ModuleAccess,
    "puone_module_kernel": abi.ModuleKernel,
    "puone_module_api": abi.ModuleApi,
    "puone_collective_id": abi.CollectiveId,
    "puone_device_identity": abi.DeviceIdentity,
    "puone_collective_api": abi.CollectiveApi,
}
CONSTANTS = {
    "PUONE_HAL_ABI_MAJOR": abi.ABI_MAJOR,
    "PUONE_HAL_ABI_MINOR": abi.ABI_MINOR,
    "PUONE_NAME_MAX": abi.NAME_MAX,
    "PUONE_KERNEL_SET_VERSION": abi.KERNEL_SET_VERSION,
    "PUONE_FAULT_VERSION": abi.FAULT_VERSION,
    "PUONE_DLPACK_VERSION": abi.DLPACK_VERSION,
    "PUONE_GRAPH_VERSION": abi.GRAPH_VERSION,
    "PUONE_TRACE_VERSION": abi.TRACE_VERSION,
    "PUONE_ORIGIN_VERSION": abi.ORIGIN_VERSION,
    "PUONE_IPC_VERSION": abi.IPC_VERSION,
    "PUONE_MODULE_VERSION": abi.MODULE_VERSION,
    "PUONE_MODULE_MAX_ERRORS": abi.MODULE_MAX_ERRORS,
    "PUONE_COLLECTIVE_VERSION": abi.COLLECTIVE_VERSION,
    "PUONE_MAX_DIMS": kernels.MAX_DIMS,
}
TYPES: dict[str, Any] = {
    "const char*": c_char_p,
    "const void*": c_void_p,
    "const void**": POINTER(c_void_p),
    "const puone_trace_record**": POINTER(POINTER(abi.TraceRecord)),
    "float*": POINTER(c_float),
    "int32_t": c_int32,
    "int32_t*": POINTER(c_int32),
    "puone_device_properties*": POINTER(abi.DeviceProperties),
    "puone_driver_info*": POINTER(abi.DriverInfo),
    "puone_event": c_void_p,
    "puone_event*": POINTER(c_void_p),
    "puone_graph": c_void_p,
    "puone_graph*": POINTER(c_void_p),
    "puone_host_func": abi.HostFunc,
    "puone_kernel": c_void_p,
    "puone_kernel*": POINTER(c_void_p),
    "puone_ipc_memory_handle*": POINTER(abi.IpcMemoryHandle),
    "const puone_ipc_memory_handle*": POINTER(abi.IpcMemoryHandle),
    "puone_collective_id*": POINTER(abi.CollectiveId),
    "const puone_collective_id*": POINTER(abi.CollectiveId),
    "puone_device_identity*": POINTER(abi.DeviceIdentity),
    "puone_communicator": c_void_p,
    "puone_communicator*": POINTER(c_void_p),
    "puone_collective_reduction": c_int32,
    "puone_kernel_info*": POINTER(abi.KernelInfo),
    "puone_module": c_void_p,
    "puone_module*": POINTER(c_void_p),
    "const puone_module_kernel*": POINTER(abi.ModuleKernel),
    "const puone_module_kernel**": POINTER(POINTER(abi.ModuleKernel)),
    "const puone_module_options*": POINTER(abi.ModuleOptions),
    "puone_module_target*": POINTER(abi.ModuleTarget),
    "const puone_launch_context*": POINTER(abi.LaunchContext),
    "puone_memcpy_kind": c_int32,
    "puone_pointer_attributes*": POINTER(abi.PointerAttributes),
    "puone_status": c_int32,
    "puone_stream": c_void_p,
    "puone_stream*": POINTER(c_void_p),
    "size_t": c_size_t,
    "size_t*": POINTER(c_size_t),
    "uint32_t": c_uint32,
    "uint64_t": c_uint64,
    "uint64_t*": POINTER(c_uint64),
    "void*": c_void_p,
    "void**": POINTER(c_void_p),
}


def code(header: Path) -> str:
    """The header without comments, on one line."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", text)


DECLARATIONS = "".join(map(code, HEADERS))


def body(kind: str, name: str) -> str:
    """What stands between the braces of a type's definition."""
    form = rf"typedef {kind} {name} \{{(.*?)\}} {name};"
    if kind == "enum":
        form = rf"PUONE_ENUM\({name}, \w+\) ?\{{(.*?)\}};"
    found = re.search(form, DECLARATIONS)
    assert found, f"no {kind} {name} in the header"
    return found[1]


def parameters(text: str) -> list[type]:
    """ctypes of a C parameter list."""
    if text.strip() == "void":
        return []
    types = [re.fullmatch(r"\s*(.*?\**)\s*(\w+)\s*", part) for part in text.split(",")]
    return [TYPES[found[1].strip()] for found in types if found]


def functions(struct: str) -> Iterator[tuple[str, type, list[type]]]:
    """Name, result and parameters of every function pointer of a struct, in order."""
    pattern = r"(puone_status|const char\*) \(\*(\w+)\)\(([^)]*)\);"
    for result, name, arguments in re.findall(pattern, body("struct", struct)):
        yield name, TYPES[result], parameters(arguments)


def members(name: str) -> list[str]:
    return re.findall(r"(PUONE_\w+)\s*=", body("enum", name))


TABLES = [name for name in STRUCTS if name.endswith("_api")]


@pytest.mark.parametrize("struct", TABLES)
def test_the_tables_have_the_headers_entries_in_order(struct: str) -> None:
    mirror = STRUCTS[struct]
    fields: dict[str, Any] = {name: kind for name, kind, *_ in mirror._fields_}
    mirrored = {name: kind for name, kind in fields.items() if hasattr(kind, "_argtypes_")}
    declared = {name: (result, arguments) for name, result, arguments in functions(struct)}
    assert list(mirrored) == list(declared)
    for name, kind in mirrored.items():
        assert (kind._restype_, list(kind._argtypes_)) == declared[name], name


def test_every_entry_of_the_header_is_found() -> None:
    """The parser above must not overlook one: every (*name) of the header counts."""
    pointers = len(re.findall(r"\(\*\w+\)\(", body("struct", "puone_hal_api")))
    assert len(abi.ENTRIES) == pointers == 34


@pytest.mark.parametrize("name", ENUMS)
def test_the_enums_have_the_headers_members(name: str) -> None:
    mirror, prefix = ENUMS[name]
    # Iterating a flag enum leaves out its zero, which __members__ has.
    assert [prefix + member for member in mirror.__members__] == members(name)


def test_every_type_of_the_headers_is_mirrored() -> None:
    declared = re.findall(r"typedef (?:struct|enum) (puone_\w+) \{", DECLARATIONS)
    declared += re.findall(r"PUONE_ENUM\((puone_\w+),", DECLARATIONS)
    assert sorted(declared) == sorted([*ENUMS, *STRUCTS])


def test_the_mirror_has_the_capability_that_promises_each_entry() -> None:
    table = re.findall(r"ENTRY\((\w+), (\w+)\);", code(CSRC / "hal" / "entries.h"))
    mirrored = dict.fromkeys(abi.MANDATORY, "0")
    for capability, entries in abi.ENTRIES_OF.items():
        mirrored |= dict.fromkeys(entries, f"PUONE_CAP_{capability.name}")
    assert mirrored == dict(table) | {"last_error_message": "0"}
    assert set(mirrored) | set(abi.OPTIONAL) == set(abi.ENTRIES)


def test_the_mirror_has_the_entries_that_may_work_without_their_capability() -> None:
    text = code(CSRC / "hal" / "entries.h")
    body = text.split("forEachDeviceEntry(const F& f) {")[1].split("}")[0]
    assert set(re.findall(r"ENTRY\((\w+),", body)) == abi.OF_DEVICE


def test_the_comment_of_each_capability_names_the_entries_that_it_promises() -> None:
    text = HAL.read_text().split("PUONE_ENUM(puone_capability, uint64_t){")[1].split("};")[0]
    for comment, name in re.findall(r"/\*(.*?)\*/\s+PUONE_CAP_(\w+) =", text, re.DOTALL):
        named = set(re.findall(r"\w+", comment))
        if "event_* but event_elapsed_ms" in comment:
            named |= {entry for entry in abi.ENTRIES if entry.startswith("event_")}
            named -= {"event_elapsed_ms"}
        promised = abi.ENTRIES_OF.get(abi.Capability[name], ())
        assert named & set(abi.ENTRIES) == set(promised), name


def _questions() -> dict[str, int]:
    """C expressions and the value the mirror has for each."""
    asked = CONSTANTS | contract.constants()
    for mirror, prefix in ENUMS.values():
        asked |= {prefix + name: int(member) for name, member in mirror.__members__.items()}
    arguments = {name: contract.struct(name) for name in contract.fields()}
    for name, struct in (STRUCTS | arguments).items():
        asked[f"sizeof({name})"] = ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            place = getattr(struct, field)
            asked[f"offsetof({name}, {field})"] = place.offset
            asked[f"sizeof((({name}*)0)->{field})"] = place.size
    return asked


def test_a_c_compiler_agrees_on_every_value_and_offset(tmp_path: Path) -> None:
    asked = _questions()
    lines = [f'  printf("%lld\\n", (long long)({expression}));' for expression in asked]
    source = tmp_path / "probe.c"
    subprocess.run([sys.executable, GENERATOR, tmp_path], check=True)
    headers = [
        "kernels/args.h",
        *sorted(
            f"kernels/args/{path.name}" for path in (tmp_path / "kernels" / "args").glob("*.h")
        ),
    ]
    includes = "".join(f'#include "{header}"\n' for header in headers)
    source.write_text(
        "#include <stdio.h>\n"
        + "".join(f'#include "hal/{header.name}"\n' for header in HEADERS)
        + includes
        + "int main(void) {\n"
        + "\n".join(lines)
        + "\n  return 0;\n}\n"
    )
    probe = tmp_path / "probe"
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{CSRC}", f"-I{tmp_path}"]
    subprocess.run([*command, str(source), "-o", str(probe)], check=True)
    answers = subprocess.run([probe], check=True, capture_output=True, text=True).stdout.split()
    assert dict(zip(asked, map(int, answers), strict=True)) == asked


def test_the_suites_element_types_are_the_contracts() -> None:
    members = {f"PUONE_{name}": int(value) for name, value in kernels.DType.__members__.items()}
    assert tuple(members) == contract.enums()["puone_dtype"]
    assert {name: contract.constants()[name] for name in members} == members
    assert contract.constants()["PUONE_MAX_DIMS"] == kernels.MAX_DIMS
