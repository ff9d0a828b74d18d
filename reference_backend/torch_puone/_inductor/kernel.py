# SPDX-License-Identifier: BSD-3-Clause
"""One kernel of a graph: its loads, operations, reductions and stores, and its arguments.

Inductor drives it node by node. It collects parts (source.py), chooses their layout, and describes
the arguments to the driver: what is read and written, and where all of a buffer is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sympy
import torch
from torch._inductor.codegen.common import (
    CSEVariable,
    DeferredLine,
    IndentedBuffer,
    PythonPrinter,
    SizeArg,
    TensorArg,
)
from torch._inductor.codegen.simd import IterationRangesEntry, IterationRangesRoot, SIMDKernel
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.functions import FloorDiv, ModularIndexing
from torch.utils._sympy.printers import CppPrinter
from torch.utils._sympy.symbol import SymT, free_symbol_is_type

from .overrides import PuoneOverrides
from .source import (
    COLUMNS,
    LEAVE,
    Columns,
    Entry,
    Layout,
    Loop,
    Map,
    Once,
    Part,
    Reduction,
    Results,
    Rows,
    indented,
)
from .types import computed, stored

_READ, _WRITE, _PARTIAL = 1, 2, 4  # puone_module_access_flags
#: A row shorter than this is not worth a block.
_LEAST_ROW = 64
#: Fewer columns than this are reduced one by one.
_LEAST_COLUMNS = 8


class _Printer(CppPrinter):
    """Index expressions, which are int64_t. The methods have names that sympy asks for."""

    def _print_Integer(self, expr: sympy.Integer) -> str:  # noqa: N802
        return f"{int(expr)}L"

    def _print_FloorDiv(self, expr: sympy.Expr) -> str:  # noqa: N802
        x, divisor = map(self._print, expr.args)
        return f"ops::floordiv(int64_t({x}), int64_t({divisor}))"

    def _print_ModularIndexing(self, expr: sympy.Expr) -> str:  # noqa: N802
        x, divisor, modulus = expr.args
        quotient = f"({self._print(x)})"
        if divisor != 1:
            quotient = f"({quotient} / ({self._print(divisor)}))"
        return f"({quotient} % ({self._print(modulus)}))"


_print_index = _Printer().doprint
_print_python = PythonPrinter().doprint


class Parameter(NamedTuple):
    """An argument behind the first: runtime.Parameter, with its type in the source."""

    name: str
    kind: str
    type: str
    access: int = 0
    element: int = 0

    @property
    def alias(self) -> str:
        """Its name in the body."""
        const = "* const" if self.type.endswith("*") else " const"
        return f"{self.type.removesuffix('*')}{const} {self.name} = args.{self.name};\n"

    def packed(self) -> tuple[str, str, int, int]:
        return self.name, self.kind, self.access, self.element


@dataclass
class _Collected:
    """A part (source.py), whose lines know only at the end which buffers are left."""

    lines: IndentedBuffer
    stores: IndentedBuffer | None
    tree: IterationRangesRoot | None = None  # of a loop
    reductions: list[Reduction] = field(default_factory=list)


class _Grid(NamedTuple):
    """What a launch says, in Python: puone_module_arguments."""

    count: str
    work: str


class PuoneKernel(SIMDKernel[CSEVariable]):
    NAME = "PUONE_KERNEL_NAME"

    overrides = PuoneOverrides  # type: ignore[assignment]
    newvar_prefix = "const auto "
    suffix = ";"
    pexpr = staticmethod(_print_python)  # type: ignore[assignment]
    sexpr = staticmethod(_print_index)  # type: ignore[assignment]
    kexpr = staticmethod(_print_index)  # type: ignore[assignment]

    def __init__(self, tiling: dict[str, sympy.Expr], **kwargs: Any) -> None:
        super().__init__(tiling, **kwargs)
        self.collected: list[_Collected] = []
        self.reductions: list[Reduction] = []  # of the loop that is being generated
        self.results = IndentedBuffer()  # stores of what they give
        self.outer_entries: list[IterationRangesEntry] = []
        self.loop_loads: list[sympy.Expr] = []  # where loops load
        self.access: dict[str, int] = {}  # of each buffer, by its name in the kernel
        self.full: set[str] = set()  # buffers of which every element is touched
        self.errors: list[str] = []
        self.parameters: list[Parameter] = []
        self.grid = _Grid("1", "0")
        self.is_masked = False

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return stored(dtype)

    # ---- loads and stores ----

    @contextlib.contextmanager
    def masked(self) -> Iterator[None]:
        before, self.is_masked = self.is_masked, True
        try:
            yield
        finally:
            self.is_masked = before

    def load(self, name: str, index: sympy.Expr) -> CSEVariable:
        variable = self.args.input(name)
        index = self.prepare_indexing(index)
        self._touch(variable, name, index, _READ)
        if self.inside_reduction:
            self.loop_loads.append(index)
        dtype = V.graph.get_dtype(name)
        if self._is_number(name):
            line = f"ops::to_dtype<{computed(dtype)}>({variable})"
        else:
            line = f"ops::read({variable}[{self.index_to_str(index)}])"
        half = dtype in (torch.float16, torch.bfloat16)
        return self.cse.generate(self.loads, line, dtype=torch.float32 if half else dtype, shape=())

    def store(self, name: str, index: sympy.Expr, value: CSEVariable, mode: Any = None) -> None:
        line = self._store(name, index, value, mode)
        (self.compute if self.inside_reduction else self.stores).writeline(line)

    def store_reduction(self, name: str, index: sympy.Expr, value: CSEVariable) -> None:
        self.results.writeline(self._store(name, index, value))

    def _store(
        self, name: str, index: sympy.Expr, value: CSEVariable, mode: Any = None
    ) -> DeferredLine:
        variable = self.args.output(name)
        index = self.prepare_indexing(index)
        place = f"{variable}[{self.index_to_str(index)}]"
        element = stored(V.graph.get_dtype(name))
        if mode is None:
            self._touch(variable, name, index, _WRITE)
            return DeferredLine(name, f"{place} = ops::write<{element}>({value});")
        if mode == "atomic_add":
            self._touch(variable, name, index, _READ | _WRITE, whole=False)
            return DeferredLine(name, f"ops::atomic_add(&{place}, {value});")
        raise NotImplementedError(f"puone's generated kernels have no store of mode {mode}")

    def _touch(
        self, variable: str, name: str, index: sympy.Expr, how: int, whole: bool = True
    ) -> None:
        self.access[variable] = self.access.get(variable, 0) | how
        if whole and not self.is_masked and self._covers(name, index):
            self.full.add(variable)

    def _covers(self, name: str, index: sympy.Expr) -> bool:
        """Whether the index takes the place of every element from the first to the last."""
        if free_symbol_is_type(index, SymT.TMP):
            return False
        lengths = [
            entry.length
            for symbol, entry in self.range_tree_nodes.items()
            if symbol in index.free_symbols
        ]
        buffer = V.graph.try_get_buffer(name)
        if buffer is None:
            return False
        layout = buffer.get_layout()
        last = sum((n - 1) * s for n, s in zip(layout.size, layout.stride, strict=True))
        numel = sympy_product(layout.size)
        known = V.graph.sizevars.statically_known_equals
        return known(sympy_product(lengths), numel) and known(last + 1, numel)

    @staticmethod
    def _is_number(name: str) -> bool:
        """Whether the buffer is a number of the CPU, which is passed by its value."""
        buffer = V.graph.try_get_buffer(name)
        device = None if buffer is None else buffer.get_device()
        return device is not None and device.type == "cpu"

    # ---- errors ----

    def _error(self, text: str) -> int:
        if text not in self.errors:
            self.errors.append(text)
        return self.errors.index(text)

    def check_bounds(self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool) -> None:
        if not (lower or upper):
            return
        error = self._error("index {} is out of bounds for a dimension of size {}")
        index, size = (self.index_to_str(self.prepare_indexing(e)) for e in (expr, size))
        self.compute.writeline(f"if (!args.arguments.check({error}, {index}, {size})) {LEAVE}")

    def device_assert_async(self, condition: CSEVariable, message: str) -> None:
        error = self._error(message.replace("{", "{{").replace("}", "}}"))
        self.compute.writeline(f"if (!{condition}) args.arguments.raise({error});")

    # ---- reductions ----

    def reduction(
        self,
        dtype: torch.dtype,
        src_dtype: torch.dtype,
        reduction_type: Any,
        value: CSEVariable | tuple[CSEVariable, ...],
    ) -> CSEVariable | tuple[CSEVariable, ...]:
        key = (src_dtype, reduction_type, value)
        if key not in self.cse.reduction_cache:
            self.cse.reduction_cache[key] = self._reduced(dtype, src_dtype, reduction_type, value)
        return self.cse.reduction_cache[key]

    def _reduced(
        self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any
    ) -> CSEVariable | tuple[CSEVariable, ...]:
        assert self.inside_reduction and not self.is_masked
        count = 3 if kind.startswith("welford") else 1
        results = tuple(self.cse.newvar(dtype=dtype, shape=()) for _ in range(count))
        names = [str(result) for result in results]
        if kind in _FOLDS:
            of = computed(src_dtype if kind in ("max", "min") else dtype)
            reduction = _fold(kind, of, names, value)
        elif kind in ("argmax", "argmin"):
            (tree,) = (tree for tree in self.range_trees if tree.is_reduction)
            reduction = _position(kind, computed(src_dtype), names, value, tree.name)
        elif kind in ("welford_reduce", "welford_combine"):
            reduction = _moments(kind, computed(dtype), names, value)
        else:
            raise NotImplementedError(f"puone's generated kernels have no reduction {kind}")
        self.reductions.append(reduction)
        return results[0] if count == 1 else results

    # ---- parts ----

    def codegen_iteration_ranges_entry(self, entry: IterationRangesEntry) -> None:
        if entry.root.is_loop:
            self.indexing_code.writeline(str(self._entry(entry, entry.expr)).rstrip())
        else:
            self.outer_entries.append(entry)

    def _entry(self, entry: IterationRangesEntry, value: sympy.Expr) -> Entry:
        return Entry(entry.name, self.kexpr(self.rename_indexing(value)))

    def codegen_body(self) -> None:
        """Collect what was generated since the last call: the inside of a loop, if it has one."""
        lines = IndentedBuffer()
        for part in (self.indexing_code, self.loads, self.compute):
            lines.splice(part)
            part.clear()
        loops = [tree for tree in self.range_trees if tree.is_loop]
        if self.inside_reduction and loops:
            if lines:
                (tree,) = loops
                self.collected.append(_Collected(lines, None, tree, self.reductions))
            if self.results:
                self.collected.append(_Collected(IndentedBuffer(), self.results))
            self.reductions, self.results = [], IndentedBuffer()
            self._forget_loop(loops)
        elif lines or self.stores:
            stores = IndentedBuffer()
            stores.splice(self.stores)
            self.collected.append(_Collected(lines, stores))
        self.stores.clear()

    def _forget_loop(self, loops: list[IterationRangesRoot]) -> None:
        """Variables of the loop end with it, but for the results of its reductions."""
        results: OrderedSet[CSEVariable] = OrderedSet()
        for cached in self.cse.reduction_cache.values():
            results.update(cached if isinstance(cached, tuple) else (cached,))
        self.cse.invalidate(results)
        for tree in loops:
            tree.cache_clear()

    def _part(self, collected: _Collected) -> Part:
        if collected.tree is None:
            stores = collected.stores.getvalue() if collected.stores is not None else ""
            return Once(collected.lines.getvalue(), stores)
        return Loop(
            collected.tree.name,
            self._numel(collected.tree),
            collected.lines.getvalue(),
            _without_stores(collected.lines).getvalue(),
            collected.reductions,
        )

    # ---- the whole ----

    def _numel(self, tree: IterationRangesRoot) -> str:
        if isinstance(tree.numel, (int, sympy.Integer)):
            return f"{int(tree.numel)}L"
        return f"{tree.prefix}numel"

    def _has_numel(self, tree: IterationRangesRoot) -> bool:
        return not isinstance(tree.numel, (int, sympy.Integer))

    def _arguments(self) -> list[Parameter]:
        parameters = []
        _, _, arguments, _ = self.args.python_argdefs()
        for argument in arguments:
            if isinstance(argument, TensorArg):
                parameters.append(self._tensor(argument))
            elif isinstance(argument, SizeArg):
                parameters.append(Parameter(argument.name, "integer", "int64_t"))
            else:
                raise NotImplementedError(
                    f"puone's generated kernels have no arguments like {argument}"
                )
        for tree in self.range_trees:
            if self._has_numel(tree):
                parameters.append(Parameter(f"{tree.prefix}numel", "integer", "int64_t"))
        return parameters

    def _tensor(self, argument: TensorArg) -> Parameter:
        if self._is_number(argument.buffer):
            real = argument.dtype.is_floating_point
            kind, type_ = ("real", "double") if real else ("integer", "int64_t")
            return Parameter(argument.name, kind, type_)
        access = self.access.get(argument.name, _READ | _WRITE)
        const = "" if access & _WRITE else "const "
        if argument.name not in self.full:
            access |= _PARTIAL
        element = stored(argument.dtype)
        return Parameter(
            argument.name, "buffer", f"{const}{element}*", access, argument.dtype.itemsize
        )

    def _outer_trees(self) -> list[IterationRangesRoot]:
        """Innermost first."""
        return [tree for tree in self.range_trees if not tree.is_reduction]

    def _innermost(self) -> IterationRangesEntry | None:
        """The innermost dimension, if its length is known and all others begin with it."""
        trees = self._outer_trees()
        if not trees:
            return None
        inner = [entry for entry in self.outer_entries if entry.root is trees[0]]
        first = [e for e in inner if e.divisor == 1 and isinstance(e.length, sympy.Integer)]
        if len(first) != 1:
            return None
        length = first[0].length
        whole = all(entry is first[0] or entry.divisor % length == 0 for entry in inner)
        return first[0] if whole and trees[0].numel % length == 0 else None

    def _reduces_columns(self, entry: IterationRangesEntry) -> bool:
        """Whether loops find neighbouring results in neighbouring memory."""
        symbol = entry.symbol()
        reduced = [
            each.symbol()
            for each in self.range_tree_nodes.values()
            if each.is_reduction and each.divisor == 1
        ]
        columns = sum(index.coeff(symbol) == 1 for index in self.loop_loads)
        rows = sum(any(index.coeff(r) == 1 for r in reduced) for index in self.loop_loads)
        return columns > rows

    def _entries(
        self, index: str, inner: IterationRangesEntry | None = None, per_row: str = "1L"
    ) -> list[Entry]:
        """The outer index variables, in terms of `index`.

        With `inner` there is an index for each of its rows, or, with `per_row`, so many for each;
        and its own variable is left out.
        """
        entries = []
        if per_row != "1L":
            entries.append(Entry("part", f"{index} % {per_row}"))
            index = f"({index} / {per_row})"
        trees = self._outer_trees()
        for place, tree in enumerate(trees):
            of_inner = inner is not None and tree is inner.root
            name = f"{tree.prefix}row" if of_inner else tree.name
            count = self._numel(tree)
            if of_inner:
                count = f"({count} / {int(inner.length)}L)"
            is_last = place == len(trees) - 1
            entries.append(Entry(name, index if is_last else f"{index} % {count}"))
            index = f"({index} / {count})"
        for entry in self.outer_entries:
            if inner is not None and entry.root is inner.root:
                if entry is not inner:
                    entries.append(self._entry(entry, _in_rows(entry, inner.length)))
            else:
                entries.append(self._entry(entry, entry.expr))
        return entries

    def _layout(self, name: str) -> Layout:
        """And what a launch says of the grid."""
        trees = self._outer_trees()
        outer = [self._numel_in_python(name, tree) for tree in trees]
        count = " * ".join(outer) or "1"
        inner = self._innermost()
        if not self.features.is_reduction():
            is_one_row = inner is not None and len(trees) == 1 and inner.length == trees[0].numel
            if inner is None or is_one_row or inner.length < _LEAST_ROW:
                self.grid = _Grid(count, "0")
                return Map(self._entries("i"))
            length = int(inner.length)
            self.grid = _Grid(f"{count} // {length}", str(length))
            return Rows(self._entries("index", inner), inner.name, length)
        (reduced,) = [tree for tree in self.range_trees if tree.is_reduction]
        work = self._numel_in_python(name, reduced)
        if inner is None or inner.length < _LEAST_COLUMNS or not self._reduces_columns(inner):
            self.grid = _Grid(count, work)
            return Results(self._entries("index"))
        length = int(inner.length)
        parts = -(-length // COLUMNS)
        self.grid = _Grid(f"{count} // {length} * {parts}", f"{work} * {min(length, COLUMNS)}")
        return Columns(
            self._entries("index", inner, f"{parts}L"),
            Entry(inner.name, "part * kModuleColumns + column" if parts > 1 else "column"),
            f"{length}L"
            if parts == 1
            else f"std::min({length}L - part * kModuleColumns, {COLUMNS}L)",
        )

    def codegen_kernel(self, name: str | None = None) -> str:
        """The arguments of runtime.kernel() but for the device, as text."""
        self.codegen_body()
        self.parameters = self._arguments()
        layout = self._layout(name or self.NAME)
        fields = "".join(f"{each.type} {each.name};\n" for each in self.parameters)
        extents = "".join(
            f"int64_t {each.name}_extent;\n" for each in self.parameters if each.kind == "buffer"
        )
        aliases = "".join(each.alias for each in self.parameters)
        body = aliases + layout.body([self._part(each) for each in self.collected])
        source = (
            f"struct Args {{\n{indented(f'Arguments arguments;{chr(10)}{fields}{extents}')}}};\n"
            f"PUONE_MODULE_{layout.idiom}({self.NAME}, Args) {{\n{indented(body)}}}\n"
        )
        packed = [parameter.packed() for parameter in self.parameters]
        return f"'{self.NAME}', r'''\n{source}''', {packed}, {self.errors}"

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        wrapper = V.graph.wrapper_code
        for size in self.args.sizevars:
            wrapper.ensure_size_computed(size)
        _, buffers, _, _ = self.args.python_argdefs()
        arguments = [
            f"{buffer}.item()"
            if isinstance(buffer, str) and self._is_number(buffer)
            else str(buffer)
            for buffer in buffers
        ]
        arguments += [
            self._numel_in_python(name, tree) for tree in self.range_trees if self._has_numel(tree)
        ]
        device = V.graph.get_current_device_or_throw()
        wrapper.generate_kernel_call(
            name,
            [str(device.index), *self.grid, *arguments],
            device=device,
            triton=False,
            arg_types=[int, int, int, *(torch.dtype for _ in arguments)],
        )

    def _numel_in_python(self, name: str, tree: IterationRangesRoot) -> str:
        if not self._has_numel(tree):
            return str(int(tree.numel))
        if isinstance(tree.numel, sympy.Symbol):
            return str(tree.numel)
        return str(V.graph.wrapper_code.generate_numel_expr(name, tree).inner)


#: Identity, and what combines a and b, for elements of type T.
_FOLDS = {
    "sum": ("T(0)", "ops::add(a, b)"),
    "prod": ("T(1)", "ops::mul(a, b)"),
    "xor_sum": ("T(0)", "a ^ b"),
    "any": ("false", "a || b"),
    "max": ("ops::lowest<T>()", "ops::maximum(a, b)"),
    "min": ("ops::highest<T>()", "ops::minimum(a, b)"),
}


def _fold(kind: str, of: str, names: list[str], value: Any) -> Reduction:
    identity, combine = _FOLDS[kind]
    return Reduction(
        "reduce",
        of,
        of,
        identity.replace("T", of),
        combine,
        f"ops::to_dtype<{of}>({value})",
        {names[0]: (of, "{}")},
    )


def _position(kind: str, of: str, names: list[str], value: Any, index: str) -> Reduction:
    at = f"ops::At<{of}>"
    return Reduction(
        "reduce",
        at,
        at,
        f"{at}{{{of}(0), -1}}",
        f"ops::{kind}(a, b)",
        f"{at}{{{value}, {index}}}",
        {names[0]: ("int64_t", "{}.position")},
    )


def _moments(kind: str, of: str, names: list[str], value: Any) -> Reduction:
    moments = f"ops::Moments<{of}>"
    results = {
        name: (of, f"{{}}.{member}")
        for name, member in zip(names, ("mean", "squares", "count"), strict=True)
    }
    if kind == "welford_reduce":
        loaded = f"ops::to_dtype<{of}>({value})"
        return Reduction("welford_reduce", of, moments, f"{of}(0)", "", loaded, results)
    return Reduction(
        "reduce",
        moments,
        moments,
        f"{moments}{{0, 0, 0}}",
        "ops::welford_combine(a, b)",
        f"{moments}{{{', '.join(map(str, value))}}}",
        results,
    )


def _in_rows(entry: IterationRangesEntry, length: sympy.Expr) -> sympy.Expr:
    """The value of an entry, given the number of the row instead of its tree's index."""
    row = sympy.Symbol(f"{entry.root.prefix}row", integer=True, nonnegative=True)
    divisor = entry.divisor // length
    if isinstance(entry.expr, FloorDiv):
        return FloorDiv(row, divisor)
    return ModularIndexing(row, divisor, entry.length)


def _without_stores(lines: IndentedBuffer) -> IndentedBuffer:
    """The lines without those that write to memory."""
    kept = IndentedBuffer()
    kept._lines = [line for line in lines._lines if not isinstance(line, DeferredLine)]
    return kept
