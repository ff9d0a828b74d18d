# SPDX-License-Identifier: BSD-3-Clause
"""Writes the registrations of the operators that operators.yaml lists.

    python csrc/aten/generate_operators.py OUTPUT --torch TORCH

OUTPUT and TORCH are directories. CMake runs it when the project is configured, and again when this
file, the table or torch changes. Needs PyYAML; torch is not imported, its native_functions.yaml is
read. For a source DIRECTORY/NAME.cpp:

    aten/DIRECTORY/NAME_ops.h               the ATen headers of its operators, for the top of it
    aten/DIRECTORY/NAME_registrations.inc   their registrations, for the end of it, so that kernels
                                            may have internal linkage
    aten/sources.cmake                      the lists of sources: all_operator_sources and
                                            core_operator_sources
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from definitions import GeneratorError, Loader, read, write

HERE = Path(__file__).resolve().parent
TABLE = HERE / "operators.yaml"
KERNELS = HERE.parent / "hal/kernels.yaml"
NATIVE_FUNCTIONS = "packaged/ATen/native/native_functions.yaml"

# The words of `types`, and what aten/core/elementwise.h calls the sets.
TYPE_SETS = {
    "bool": "kBoolType",
    "integral": "kIntegerTypes",
    "integers": "kIntegers",
    "reals": "kRealTypes",
    "complexes": "kComplexTypes",
    "ordered": "kOrdered",
    "inexact": "kInexact",
    "numbers": "kNumbers",
}
KEYS = {
    "func",
    "class",
    "function",
    "foreach",
    "kernel",
    "kernels",
    "types",
    "autograd",
    "cpu",
    "since",
    "until",
}
TEXTS = ("func", "class", "function", "foreach", "kernel", "autograd", "cpu")
LISTS = ("kernels", "types")
VERSIONS = ("since", "until")
SECTIONS = {"torch", "core", "operators", "fallback"}
# What a row is implemented by: exactly one of these.
WAYS = ("class", "function", "foreach")


@dataclass(frozen=True)
class Native:
    """One operator of PyTorch, as native_functions.yaml declares it."""

    name: str  # with its overload: add.out
    schema: str
    structured: bool
    delegate: str | None
    dispatch: dict[str, str]

    @property
    def base(self) -> str:
        """The name that the form has in common with the operator's other forms."""
        name = self.name.partition(".")[0]
        if name.startswith("__"):
            return re.sub("^i(?=(lshift|rshift|and|or|xor)$)", "", name.strip("_"))
        return name.removesuffix("_")

    @property
    def cpp(self) -> str:
        """Its class in at::_ops."""
        return self.name.replace(".", "_")

    @property
    def needs_kernel(self) -> bool:
        """Whether the device has to implement it: the CPU does, and PyTorch does not for all."""
        return "CPU" in self.dispatch and not any(k.startswith("Composite") for k in self.dispatch)


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    line: int
    source: str
    values: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.values["func"])

    @property
    def kernels(self) -> list[str]:
        kernels = self.values.get("kernels", [])
        return [self.values["kernel"]] if "kernel" in self.values else list(kernels)

    def error(self, text: str) -> GeneratorError:
        return GeneratorError(f"{TABLE.name}:{self.line}: {self.values.get('func', '?')}: {text}")


@dataclass(frozen=True)
class Table:
    rows: tuple[Row, ...]
    core: tuple[str, ...]  # the sources of PUONE_OPERATORS=core, besides core/
    fallback: tuple[tuple[str, tuple[str, ...]], ...]  # (reason, patterns)
    torch: tuple[int, ...]  # the version that the table was last compared with

    def reason(self, name: str) -> str | None:
        """Why the operator falls back: the first group with a pattern that matches."""
        for reason, patterns in self.fallback:
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                return reason
        return None


def load(path: Path = TABLE) -> Table:
    """The table. Raises GeneratorError if it is malformed, or if an operator has two rows."""
    data, node = read(path)
    _check_sections(path, data)
    lines = _row_lines(node)
    rows = []
    for source, entries in data["operators"].items():
        for entry, line in zip(entries, lines[source], strict=True):
            rows.append(_checked(Row(line, source, entry)))
    seen: dict[str, Row] = {}
    for row in rows:
        if row.name in seen:
            raise row.error(f"is in line {seen[row.name].line} already")
        seen[row.name] = row
    fallback = tuple((g["reason"], tuple(g["operators"])) for g in data["fallback"])
    return Table(tuple(rows), tuple(data["core"]), fallback, _version(data["torch"]))


def _check_sections(path: Path, data: Any) -> None:
    """Raises GeneratorError unless the parts of a table are what they should be, rows apart."""

    def expect(is_right: bool, what: str) -> None:
        if not is_right:
            raise GeneratorError(f"{path}: {what}")

    expect(isinstance(data, dict), f"is not a mapping of {', '.join(sorted(SECTIONS))}")
    expect(data.keys() == SECTIONS, f"has not exactly the keys {', '.join(sorted(SECTIONS))}")
    expect(_version(data["torch"]) != (), 'torch: is not a version in quotes, such as "2.13"')
    expect(_are_texts(data["core"]), "core: is not a list of sources, each there once")
    expect(isinstance(data["operators"], dict), "operators: is not a mapping of sources to rows")
    for source, rows in data["operators"].items():
        expect(
            isinstance(source, str) and re.fullmatch(r"\w+/\w+\.cpp", source) is not None,
            f"operators: {source} is not DIRECTORY/NAME.cpp",
        )
        expect(isinstance(rows, list), f"operators: {source}: is not a list of rows")
    expect(isinstance(data["fallback"], list), "fallback: is not a list of groups")
    for group in data["fallback"]:
        expect(
            isinstance(group, dict)
            and group.keys() == {"reason", "operators"}
            and _is_text(group["reason"])
            and _are_texts(group["operators"]),
            f"fallback: {group}: is not a reason and a list of operators, each there once",
        )


def _is_text(value: Any) -> bool:
    """A word or a line of printable ASCII, as C++ and schemas are."""
    return isinstance(value, str) and value.isascii() and value.isprintable() and value != ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _version(value: Any) -> tuple[int, ...]:
    """(2, 13) of "2.13", which has to be text, for as a number 2.10 would be 2.1; () of others."""
    found = re.fullmatch(r"(\d+)\.(\d+)", value) if isinstance(value, str) else None
    return (int(found[1]), int(found[2])) if found else ()


def _row_lines(document: Any) -> dict[str, list[int]]:
    """The line numbers of the rows of each source."""
    operators = next(value for key, value in document.value if key.value == "operators")
    return {
        key.value: [row.start_mark.line + 1 for row in value.value]
        for key, value in operators.value
    }


def _checked(row: Row) -> Row:
    if not isinstance(row.values, dict) or "func" not in row.values:
        raise GeneratorError(f"{TABLE.name}:{row.line}: a row without func")
    if unknown := sorted(map(str, set(row.values) - KEYS)):
        raise row.error(f"unknown key {', '.join(unknown)}; there are {', '.join(sorted(KEYS))}")
    _check_values(row)
    ways = [way for way in WAYS if way in row.values]
    if len(ways) > 1:
        raise row.error(f"has {' and '.join(ways)}; one of them")
    if not ways and "kernel" not in row.values:
        raise row.error(f"says nothing of how it is implemented: {', '.join(WAYS)} or kernel")
    if "kernel" in row.values and "kernels" in row.values:
        raise row.error("has kernel and kernels; one of them")
    for word in _words(row.values.get("types", [])):
        if word not in TYPE_SETS:
            raise row.error(f"no types {word}; there are {', '.join(TYPE_SETS)}")
    return row


def _check_values(row: Row) -> None:
    for key, value in row.values.items():
        if key in TEXTS and not _is_text(value):
            raise row.error(f"{key} is not a line of ASCII")
        if key in VERSIONS and not _version(value):
            raise row.error(f'{key} is not a version in quotes, such as "2.13"')
        is_word = key == "types" and _is_text(value)
        if key in LISTS and not is_word and (not _are_texts(value) or not value):
            raise row.error(f"{key} is not a list of names, each there once")
    if "types" in row.values and ("function" in row.values or "foreach" in row.values):
        raise row.error("has types, which are for a class only")
    if "cpu" in row.values and not row.kernels:
        raise row.error("has cpu, but no kernel that could be missing")


def _words(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def native_functions(path: Path) -> dict[str, Native]:
    """PyTorch's operators by name."""
    entries, _ = read(path, Loader)
    return {native.name: native for native in map(_native, entries)}


def _native(entry: dict[str, Any]) -> Native:
    schema = str(entry["func"])
    dispatch = {
        key.strip(): str(function)
        for keys, function in entry.get("dispatch", {}).items()
        for key in keys.split(",")
    }
    return Native(
        name=schema.partition("(")[0],
        schema=schema,
        structured=bool(entry.get("structured")),
        delegate=entry.get("structured_delegate"),
        dispatch=dispatch,
    )


@cache
def kernel_names(path: Path) -> frozenset[str]:
    """The kernels that the contract declares."""
    contract, _ = read(path)
    try:
        families = contract["families"].values()
        return frozenset(name for family in families for name in family["kernels"])
    except (TypeError, KeyError, AttributeError):
        raise GeneratorError(f"{path}: is not a kernel contract: run generate_kernels.py") from None


class Generator:
    """The table, compared with the operators of one torch."""

    def __init__(self, table: Table, natives: dict[str, Native], torch: tuple[int, int]) -> None:
        self.table = table
        self.natives = natives
        self.torch = torch
        self.warnings: list[str] = []
        self.delegates: dict[str, list[Native]] = {}
        for native in natives.values():
            if native.delegate:
                self.delegates.setdefault(native.delegate, []).append(native)
        self.rows = [row for row in table.rows if self._exists(row)]
        declared = kernel_names(KERNELS)
        for row in self.rows:
            for kernel in [*row.kernels, row.values.get("foreach")]:
                if kernel is not None and kernel not in declared:
                    raise row.error(f"{KERNELS.name} declares no kernel {kernel}")
        self._check_forms()

    def _exists(self, row: Row) -> bool:
        """Whether this torch has the row's operator; raises if it should have it."""
        version = ".".join(map(str, self.torch))
        for key in ("since", "until"):
            if key in row.values:
                bound = _version(row.values[key])
                if self.torch < bound if key == "since" else self.torch > bound:
                    self.warnings.append(
                        f"{row.name}: not in torch {version}, {key} {row.values[key]}"
                    )
                    return False
        native = self.natives.get(row.name)
        if native is None:
            raise row.error(f"torch {version} has no such operator (a version: since, until)")
        if self._is_structured(row) and not native.structured:
            group = f"; that is {native.delegate}" if native.delegate else ""
            raise row.error(f"is not the out form of a structured operator{group}")
        if "foreach" in row.values and "CompositeExplicitAutograd" not in native.dispatch:
            raise row.error("has no tensor-by-tensor form of PyTorch's to fall back on")
        return True

    @staticmethod
    def _is_structured(row: Row) -> bool:
        return "function" not in row.values and "foreach" not in row.values

    def forms(self, row: Row) -> list[Native]:
        """The overloads that a row registers: of a structured operator all that delegate to it."""
        native = self.natives[row.name]
        return [*self.delegates.get(row.name, []), native] if self._is_structured(row) else [native]

    def _check_forms(self) -> None:
        """An operator that the device has, it has in all forms, or says why not."""
        registered = {form.name: row for row in self.rows for form in self.forms(row)}
        first = {self.natives[name].base: row for name, row in reversed(registered.items())}
        for native in self.natives.values():
            if not native.needs_kernel and native.delegate is None:
                continue
            if native.name in registered or self.table.reason(native.name):
                continue
            row = first.get(native.base)
            if row is None:
                continue
            error = row.error(f"has no row for {native.name}, nor a reason why it falls back")
            if self.torch <= self.table.torch:
                raise error
            self.warnings.append(str(error))

    # ---- what is written ----

    def sources(self) -> list[str]:
        return list(dict.fromkeys(row.source for row in self.rows))

    def rows_of(self, source: str) -> Iterator[Row]:
        return (row for row in self.rows if row.source == source)

    def header(self, source: str) -> str:
        """NAME_ops.h"""
        headers: set[str] = set()
        for row in self.rows_of(source):
            native = self.natives[row.name]
            headers.add(f"{native.base}_ops.h")
            if self._is_structured(row):
                headers.add(f"{native.base}_meta.h")
            if "at::native::" in row.values.get("function", "") or "foreach" in row.values:
                headers.add(f"{native.base}_native.h")
        includes = "\n".join(f"#include <ATen/ops/{header}>" for header in sorted(headers))
        return f"{HEAD}#pragma once\n\n{includes}\n"

    def registrations(self, source: str) -> str:
        """NAME_registrations.inc"""
        libraries: dict[str, list[str]] = {}
        for row in self.rows_of(source):
            for key, line in self._registration(row):
                libraries.setdefault(key, []).append(line)
        blocks = []
        for key, lines in sorted(libraries.items()):
            body = "\n".join(f"  {line}" for line in lines)
            blocks.append(f"TORCH_LIBRARY_IMPL(aten, {key}, m) {{\n{body}\n}}\n")
        joined = "\n".join(blocks)
        include = '#include "aten/core/registration.h"'
        return f"{HEAD}{include}\n\nnamespace puone {{\n\n{joined}\n}} // namespace puone\n"

    def _registration(self, row: Row) -> Iterator[tuple[str, str]]:
        """(dispatch key, line of C++), for everything that a row registers."""
        native = self.natives[row.name]
        kernels = f"Kernels<{', '.join(map(self._kernel, row.kernels))}>"
        if self._is_structured(row):
            forms = ", ".join(f"at::_ops::{form.cpp}" for form in self.forms(row))
            line = f"structured<{self._class(row)}, {kernels}, {forms}>(m);"
        elif "foreach" in row.values:
            slow = f"at::native::{native.dispatch['CompositeExplicitAutograd']}"
            kernel = self._kernel(row.values["foreach"])
            alpha = "true" if "Scalar alpha" in native.schema else "false"
            line = f"overLists<at::_ops::{native.cpp}, {kernel}, &{slow}, {alpha}>(m);"
        else:
            line = self._function(native, row, row.values["function"], kernels)
        yield "PrivateUse1", line
        if "autograd" in row.values:
            line = self._function(native, row, row.values["autograd"], "Kernels<>")
            yield "AutogradPrivateUse1", line

    def _function(self, native: Native, row: Row, function: str, kernels: str) -> str:
        function = self._expand(row, function)
        operator = f"at::_ops::{native.cpp}"
        host = f", &{row.values['cpu']}" if "cpu" in row.values and kernels != "Kernels<>" else ""
        if not function.startswith("at::native::"):
            return (
                f"static_assert(kImplements<{operator}, decltype(&{function})>, "
                f'"{TABLE.name}: {row.name}: {_quoted(function)} has another signature");\n'
                f"  implement<{operator}, {kernels}, &{function}{host}>(m);"
            )
        # PyTorch's may be overloaded; those without symbolic sizes in their name take integers.
        plain = "SymInt" in native.schema and not function.endswith("_symint")
        signature = f"{'SignatureWithoutSymInt' if plain else 'Signature'}<{operator}>"
        return f"implement<{operator}, {kernels}, static_cast<{signature}>({function}){host}>(m);"

    def _class(self, row: Row) -> str:
        """The class of a structured operator; adaptors get the meta, the kernel and the types."""
        name = str(row.values.get("class", "Elementwise"))
        if "types" in row.values:
            types = " | ".join(TYPE_SETS[word] for word in _words(row.values["types"]))
            name = f"{name}<meta, kernel, {types}>"
        elif "class" not in row.values:
            raise row.error("has a kernel, but neither types nor a class")
        return self._expand(row, name)

    def _expand(self, row: Row, text: str) -> str:
        """`text` with the words meta, op and kernel replaced by what they mean for the row."""
        words = {"op": f"at::_ops::{self.natives[row.name].cpp}"}
        if self._is_structured(row):
            words["meta"] = f"at::meta::structured_{self._group(row)}"
        if "kernel" in row.values:
            words["kernel"] = self._kernel(row.values["kernel"])
        return re.sub(r"(?<![\w:])(meta|op|kernel)(?![\w:])", lambda m: words.get(m[1], m[1]), text)

    def _group(self, row: Row) -> str:
        """How ATen names a structured operator: as its functional form."""
        functional = [n for n in self.delegates.get(row.name, []) if not _changes_self(n)]
        if len(functional) != 1:
            raise row.error("has no functional form")
        return functional[0].cpp

    def _kernel(self, name: str) -> str:
        return f"kernel::{name}"


def _changes_self(native: Native) -> bool:
    return native.name.partition(".")[0].endswith("_")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


HEAD = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from csrc/aten/operators.yaml by generate_operators.py: edit that.
"""


def source_lists(table: Table) -> str:
    """sources.cmake"""
    found = sorted(path.relative_to(HERE).as_posix() for path in HERE.glob("*/*.cpp"))
    if missing := sorted(set(table.core) - set(found)):
        raise GeneratorError(f"{TABLE.name}: core: there is no {', '.join(missing)}")
    for row in table.rows:
        if row.source not in found:
            raise row.error(f"its source {row.source} is not there, so nothing would register it")
    core = [path for path in found if path.startswith("core/") or path in table.core]
    lists = {"all": found, "core": core}
    return "".join(
        f"set({name}_operator_sources\n  " + "\n  ".join(f"csrc/aten/{p}" for p in paths) + ")\n"
        for name, paths in lists.items()
    )


def torch_version(directory: Path) -> tuple[int, int]:
    """(2, 13) of the torch in `directory`, which is not imported."""
    try:
        text = (directory / "version.py").read_text()
    except OSError as error:
        raise GeneratorError(f"{directory}/version.py: {error.strerror}: is that torch?") from None
    found = re.search(r"__version__ = '(\d+)\.(\d+)", text)
    if found is None:
        raise GeneratorError(f"{directory}/version.py does not say the version of torch")
    return int(found[1]), int(found[2])


def _generate(output: Path, torch: Path, path: Path) -> None:
    table = load(path)
    natives = native_functions(torch.parent / "torchgen" / NATIVE_FUNCTIONS)
    generator = Generator(table, natives, torch_version(torch))
    files = {"sources.cmake": source_lists(table)}
    for source in generator.sources():
        stem = source.removesuffix(".cpp")
        files[f"{stem}_ops.h"] = generator.header(source)
        files[f"{stem}_registrations.inc"] = generator.registrations(source)
    for warning in generator.warnings:
        print(warning, file=sys.stderr)
    write(output / "aten", files)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the registrations of operators.yaml.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--torch", type=Path, required=True, help="the directory of torch")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    try:
        _generate(options.output, options.torch, options.table)
    except GeneratorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
