# SPDX-License-Identifier: BSD-3-Clause
"""sanitizer/accesses.cpp: which memory a launch reads and writes, as C++ made of the contract.

For each kernel of kernels.yaml a function that walks its argument struct and names every pointer
with its access and its elements (csrc/sanitizer/operands.h). Raises ContractError where the
contract says something about memory that cannot be expressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

#: The C++ of an access that does not depend on values.
READS = {"read": "true", "read_write": "true", "write": "false", "workspace": "false"}
WRITES = {"read": "false", "read_write": "true", "write": "true", "workspace": "true"}
ELEMENT_SIZES = {"bool": 1, "uint8": 1, "int32": 4, "int64": 8, "float32": 4, "float64": 8}
POINTERS = ("void*", "puone_operand", "puone_matrix")


class AccessError(ValueError):
    """The contract's declaration of an access cannot be expressed; the message says where."""


class Kernel(Protocol):
    """What is needed of generate_kernels.Kernel."""

    @property
    def name(self) -> str: ...
    @property
    def args(self) -> str: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def chosen(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class _Scope:
    """Where the names of an expression are looked up: in a struct, then in those around it."""

    prefix: str  # "a." or "a.tensors[t]."
    arrays: dict[str, bool]  # field -> whether it is one
    outer: _Scope | None = None

    def find(self, name: str, is_flag: bool = False) -> str:
        if name in self.arrays and not (is_flag and self.arrays[name]):
            return self.prefix + name
        if self.outer is None:
            raise AccessError(f"there is no field {name}")
        return self.outer.find(name, is_flag)


@dataclass(frozen=True)
class _Pointer:
    """One pointer field of a kernel's arguments."""

    kernel: Kernel
    scope: _Scope
    row: dict[str, Any]
    type: str
    name: str
    length: str | None  # of an array

    def said(self, key: str) -> Any:
        """What the row says under a key; where it distinguishes kernels, what it says of ours."""
        value = self.row.get(key)
        if isinstance(value, dict) and (key != "extent" or "form" not in value):
            return value.get(self.kernel.name)
        return value


def accesses(structs: dict[str, list[Any]], kernels: Iterable[Kernel]) -> str:
    """The functions and the table of them. `structs`: the fields of each argument struct."""
    parts, rows = [], []
    for kernel in kernels:
        try:
            lines = list(_fields(structs, structs[kernel.args], kernel, None, "a."))
        except AccessError as error:
            raise AccessError(f"{kernel.name}: {error}") from None
        rows.append(f'      {{"{kernel.name}", {kernel.name}_}},')
        if lines:
            body = "".join(f"  {line}\n" for line in lines)
            cast = f"  const auto& a = *static_cast<const {kernel.args}*>(args);\n"
            parts.append(
                f"void {kernel.name}_(const void* args, Operands& to) {{\n{cast}{body}}}\n"
            )
        else:
            parts.append(f"void {kernel.name}_(const void* /*args*/, Operands& /*to*/) {{}}\n")
    functions, table = "\n".join(parts), "\n".join(rows)
    return f"""\
{functions}
}} // namespace

const std::unordered_map<std::string_view, OperandsOf*>& allKernels() {{
  static const std::unordered_map<std::string_view, OperandsOf*> all{{
{table}
  }};
  return all;
}}
"""


def _fields(
    structs: dict[str, list[Any]],
    fields: list[Any],
    kernel: Kernel,
    outer: _Scope | None,
    prefix: str,
) -> Iterator[str]:
    rows: list[dict[str, Any]] = [{"field": row} if isinstance(row, str) else row for row in fields]
    declared = [_declaration(row["field"]) for row in rows]
    scope = _Scope(prefix, {name: length is not None for _, name, length in declared}, outer)
    for row, (type_, name, length) in zip(rows, declared, strict=True):
        inner = row.get("fields") or (None if type_ in POINTERS else structs.get(type_))
        if inner is not None:
            index = f"t{prefix.count('[')}"
            at = f"{prefix}{name}." if length is None else f"{prefix}{name}[{index}]."
            lines = list(_fields(structs, inner, kernel, scope, at))
            if not lines:
                continue
            if length is None:
                yield from lines
            else:
                count = _expression(row["count"], scope) if "count" in row else length
                yield f"for (int64_t {index} = 0; {index} < {count}; ++{index}) {{"
                yield from (f"  {line}" for line in lines)
                yield "}"
        elif "access" in row:
            yield from _pointer(_Pointer(kernel, scope, row, type_, name, length))


def _declaration(text: str) -> tuple[str, str, str | None]:
    found = re.fullmatch(r"(unsigned char|struct|\w+\*?) (\w+)(?:\[(\w+)\])?(?:\[\w+\])?", text)
    if found is None:
        raise AccessError(f"{text} is not a declaration")
    return found[1], found[2], found[3]


def _pointer(pointer: _Pointer) -> Iterator[str]:
    access = pointer.said("access")
    if access is None:
        return
    if access == "operands":
        yield from _operands(pointer)
        return
    if pointer.length is None:
        yield from _one(pointer, access, None)
        return
    extent = pointer.said("extent")
    count = extent.get("count") if extent["form"] == "strided" else None
    bound = _expression(count, pointer.scope) if count else pointer.length
    yield f"for (int64_t i = 0; i < {bound}; ++i) {{"
    yield from (f"  {line}" for line in _one(pointer, access, "i"))
    yield "}"


def _operands(pointer: _Pointer) -> Iterator[str]:
    """The kernel's outputs, then its inputs, by the names that the kernel gives them."""
    outputs = pointer.kernel.outputs
    for index, name in enumerate((*outputs, *pointer.kernel.inputs)):
        yield from _one(pointer, "write" if index < len(outputs) else "read", str(index), name)


def _one(
    pointer: _Pointer, access: str, index: str | None, name: str | None = None
) -> Iterator[str]:
    scope = pointer.scope
    extent = pointer.said("extent")
    at = f"{scope.prefix}{pointer.name}" + (f"[{index}]" if index else "")
    data = at if pointer.type == "void*" else f"{at}.data"
    reads = _condition(pointer, "read_if", READS[access])
    writes = _condition(pointer, "write_if", WRITES[access])
    touches = pointer.said("touches")
    partial = "true" if _is_partial(pointer) else "false" if touches is None else "touched == kSome"
    chosen = ", .chosen = true" if name in pointer.kernel.chosen else ""
    workspace = ", .workspace = true" if access == "workspace" else ""
    flags = f"{{.reads = {reads}, .writes = {writes}, .partial = {partial}{workspace}{chosen}}}"
    test = _presence(extent, scope, index)
    if touches is not None:
        how_much = _expression(str(touches), scope)
        yield f"if (const int64_t touched = {how_much}; touched != kNothing) {{"
    yield f"if ({data} != nullptr{test}) {{"
    yield f"  const int64_t E = {_element(extent['element'], scope, index)};"
    yield f'  Operand& o = to.add("{name or pointer.name}", {data}, E, {flags});'
    yield from (f"  {line}" for line in _layout(pointer, extent, at, index))
    yield "}"
    if touches is not None:
        yield "}"


def _condition(pointer: _Pointer, key: str, otherwise: str) -> str:
    said = pointer.said(key)
    if said is None or otherwise == "false":
        return otherwise
    return _expression(said, pointer.scope)


def _is_partial(pointer: _Pointer) -> bool:
    said = pointer.row.get("partial", False)
    return bool(said) if isinstance(said, bool) else pointer.kernel.name in said


def _presence(extent: dict[str, Any], scope: _Scope, index: str | None) -> str:
    if "unless" not in extent:
        return ""
    field = scope.find(extent["unless"], is_flag=True)
    return f" && ({field} >> {index} & 1) == 0" if index else f" && {field} == 0"


def _element(said: str | list[str], scope: _Scope, index: str | None) -> str:
    if isinstance(said, list):
        sizes = ", ".join(_element(one, scope, None) for one in said)
        return f"std::array<int64_t, {len(said)}>{{{sizes}}}[{index}]"
    if said in ELEMENT_SIZES:
        return str(ELEMENT_SIZES[said])
    if said == "computed":
        return f"{scope.find('dtype')} == PUONE_FLOAT64 ? 8 : 4"
    field = scope.find(said)
    if said == "element_size":
        return field
    return f"elementSize({field}[{index}])" if said.endswith("dtypes") else f"elementSize({field})"


def _layout(pointer: _Pointer, extent: dict[str, Any], at: str, index: str | None) -> Iterator[str]:
    scope = pointer.scope
    form = extent["form"]
    if form == "dense":
        count = _expression(str(extent["count"]), scope)
        if "one_if" in extent:
            count = (
                f"({scope.find(extent['one_if'], is_flag=True)} >> {index} & 1) != 0 ? 1 : {count}"
            )
        yield f"o.step({count}, E);"
        if "units" in extent:
            yield f"o.unitStep({_expression(extent['units'], scope)}, ({count}) * E);"
    elif form == "triangle":
        sizes, strides = scope.find("sizes"), f"{at}.strides"
        which = f"{scope.find('upper')} != 0, {scope.find('diagonal')}, {sizes}[1]"
        yield f"o.start(firstRow({which}) * {strides}[1]);"
        yield f"o.step({sizes}[0], {strides}[0]);"
        yield f"o.unitStep(rowCount({which}, {sizes}[0]), {strides}[1]);"
        yield f"for (int32_t d = 2; d < {scope.find('ndim')}; ++d) "
        yield f"  o.unitStep({sizes}[d], {strides}[d]);"
    elif form == "steps":
        if "start" in extent:
            yield f"o.start({_expression(extent['start'], scope)});"
        for size, stride in extent["steps"]:
            yield f"o.step({_expression(size, scope)}, {_expression(stride, scope)});"
    elif form == "matrix":
        for key, stride in (("batch", "batch"), ("rows", "row"), ("columns", "column")):
            yield f"o.step({_expression(extent[key], scope)}, {at}.{stride}_stride);"
    elif form in ("strided", "indexed"):
        ndim, sizes = scope.find("ndim"), scope.find("sizes")
        size = f"{sizes}[d]"
        if "along" in extent:
            other = _expression(extent["size"], scope)
            size = f"d == {scope.find(extent['along'])} ? {other} : {size}"
        if "collapsed" in extent:
            size = f"({scope.find(extent['collapsed'])} >> d & 1) != 0 ? 1 : {size}"
        yield f"for (int32_t d = 0; d < {ndim}; ++d) o.step({size}, {at}.strides[d]);"
        if form == "indexed":
            count = scope.find("index_count")
            sizes, strides = scope.find("index_sizes"), scope.find("index_strides")
            yield f"for (int32_t k = 0; k < {count}; ++k) o.step({sizes}[k], {strides}[k]);"
    else:
        raise AccessError(f"there is no form {form}")


def _expression(text: str, scope: _Scope) -> str:
    """An expression of the contract in C++, in int64_t."""

    def name(found: re.Match[str]) -> str:
        word = found[0]
        if word == "E" or word.startswith("PUONE_"):
            return word
        if word in ("select", "ceil_div"):
            return f"PUONE_{word.upper()}"
        if word in ("used", "reached", "along3"):
            return word
        if word == "elements":
            return f"product({scope.find('sizes')}, {scope.find('ndim')})"
        return scope.find(word)

    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", name, text)
