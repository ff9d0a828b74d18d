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
from torch._inductor.utils import prefix_is_reduction
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.printers import CppPrinter
from torch.utils._sympy.symbol import SymT, free_symbol_is_type

from .indices import PLACE, in_row, row_length, same
from .overrides import PuoneOverrides, Variable
from .source import (
    COLUMNS,
    LEAVE,
    ROWS,
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
    Split,
    fits_columns,
    indented,
)
from .types import computed, stored

_READ, _WRITE, _PARTIAL = 1, 2, 4  # puone_module_access_flags
_MOST_ERRORS = 4  # PUONE_MODULE_MAX_ERRORS
#: A row shorter than this is not worth a block.
_LEAST_ROW = 64
#: Fewer columns than this are reduced one by one.
_LEAST_COLUMNS = 8
#: Rows of a loop that are shorter are not worth a loop.
_LEAST_LOOP = 16


class _Printer(CppPrinter):
    """Index expressions, which are int64_t. The methods have names that sympy asks for."""

    def _print_Integer(self, expr: sympy.Integer) -> str:  # noqa: N802 - sympy's name
        return f"{int(expr)}L"

    def _print_FloorDiv(self, expr: sympy.Expr) -> str:  # noqa: N802 - sympy's name
        x, divisor = map(self._print, expr.args)
        return f"ops::floordiv(int64_t({x}), int64_t({divisor}))"

    def _print_PythonMod(self, expr: sympy.Expr) -> str:  # noqa: N802 - sympy's name
        x, divisor = map(self._print, expr.args)
        return f"ops::remainder(int64_t({x}), int64_t({divisor}))"

    def _print_ModularIndexing(self, expr: sympy.Expr) -> str:  # noqa: N802 - sympy's name
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
    entries: list[IterationRangesEntry] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)


class _Grid(NamedTuple):
    """What a launch says, in Python: puone_module_arguments.

    {count} stands for the number of results, {work} for that of elements of each.
    """

    blocks: str  # or indices
    work: str


class PuoneKernel(SIMDKernel[CSEVariable]):
    NAME = "PUONE_KERNEL_NAME"

    overrides = PuoneOverrides
    newvar_prefix = "const auto "
    suffix = ";"
    pexpr = staticmethod(_print_python)
    sexpr = staticmethod(_print_index)
    kexpr = staticmethod(_print_index)

    def __init__(self, tiling: dict[str, sympy.Expr], **kwargs: Any) -> None:
        super().__init__(tiling, **kwargs)
        self.collected: list[_Collected] = []
        self.reductions: list[Reduction] = []  # of the loop that is being generated
        self.results = IndentedBuffer()  # stores of what they give
        self.outer_entries: list[IterationRangesEntry] = []
        self.loop_entries: list[IterationRangesEntry] = []
        self.touched: list[sympy.Expr] = []  # where there are loads and stores
        self.stored: list[sympy.Expr] = []  # where there are stores
        self.loop_loads: list[sympy.Expr] = []  # where loops load
        self.access: dict[str, int] = {}  # of each buffer, by its name in the kernel
        self.full: set[str] = set()  # buffers of which every element is touched
        self.rewritten: set[str] = set()  # buffers of which every element is written, then read
        self.errors: list[str] = []
        self.grid = _Grid("1", "0")
        self.is_masked = False

    @property
    def reduces(self) -> bool:
        return self.features.is_reduction()

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return stored(dtype)

    def create_cse_var(self, *args: Any, **kwargs: Any) -> Variable:
        return Variable(*args, **kwargs)

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
        self.stored.append(index)
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
        whole = whole and not self.is_masked and self._covers(name, index)
        if variable in self.rewritten:
            how &= ~_READ  # what the kernel wrote itself, not what was there
        self.access[variable] = self.access.get(variable, 0) | how
        self.touched.append(index)
        if whole:
            self.full.add(variable)
        if whole and how == _WRITE and not self.access[variable] & _READ:
            self.rewritten.add(variable)

    def _covers(self, name: str, index: sympy.Expr) -> bool:
        """Whether the index takes the place of every element from the first to the last."""
        if free_symbol_is_type(index, SymT.TMP):
            return False
        buffer = V.graph.try_get_buffer(name)
        if buffer is None:
            return False
        size, stride = buffer.get_size(), buffer.get_stride()
        if len(size) != len(stride):
            return False  # a buffer that stands for a part of another one
        last = sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        elements = self._elements(index)
        known = V.graph.sizevars.statically_known_equals
        return elements is not None and known(last + 1, elements)

    def _elements(self, index: sympy.Expr) -> sympy.Expr | None:
        """How many neighbours from 0 on it is, each once; None if it may be anything else."""
        known = V.graph.sizevars.statically_known_equals
        variables = {
            s: e.length for s, e in self.range_tree_nodes.items() if s in index.free_symbols
        }
        strides = {symbol: index.coeff(symbol) for symbol in variables}
        if sympy.expand(index - sum(symbol * strides[symbol] for symbol in variables)) != 0:
            return None
        elements: sympy.Expr = sympy.S.One
        while variables:
            next_ = [symbol for symbol in variables if known(strides[symbol], elements)]
            if not next_:
                return None
            elements = elements * variables.pop(next_[0])
        return elements

    @staticmethod
    def _is_number(name: str) -> bool:
        """Whether the buffer is a number of the CPU, which is passed by its value."""
        buffer = V.graph.try_get_buffer(name)
        device = None if buffer is None else buffer.get_device()
        return device is not None and device.type == "cpu"

    # ---- errors ----

    def _error(self, text: str) -> int:
        """The number of an error. The last number is for all that have none of their own."""
        if text not in self.errors and len(self.errors) >= _MOST_ERRORS - 1:
            text = "one of several assertions failed"
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
        error = self._error(message.replace("{}", "{ }"))  # where numbers would be put
        self.compute.writeline(f"if (!{condition}) args.arguments.raise({error});")

    # ---- reductions ----

    def reduction(
        self,
        dtype: torch.dtype,
        src_dtype: torch.dtype,
        reduction_type: Any,
        value: CSEVariable | tuple[CSEVariable, ...],
    ) -> CSEVariable | tuple[CSEVariable, ...]:
        known: Any = self.cse.reduction_cache
        key = (src_dtype, reduction_type, value)
        if key not in known:
            known[key] = self._reduced(dtype, src_dtype, reduction_type, value)
        return known[key]

    def _reduced(
        self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any
    ) -> CSEVariable | tuple[CSEVariable, ...]:
        assert self.inside_reduction and not self.is_masked
        count = 3 if kind.startswith("welford") else 1
        results = tuple(self.cse.newvar(dtype=dtype, shape=()) for _ in range(count))
        names = [str(result) for result in results]
        if kind == "any":
            reduction = _any(names, value)
        elif kind in _FOLDS:
            of = computed(src_dtype if kind in ("max", "min") else dtype)
            reduction = _fold(kind, of, names, value)
        elif kind in ("argmax", "argmin"):
            (tree,) = (tree for tree in self.range_trees if prefix_is_reduction(tree.prefix))
            reduction = _position(kind, computed(src_dtype), names, value, tree.name)
        elif kind in ("welford_reduce", "welford_combine"):
            reduction = _moments(kind, computed(dtype), names, value)
        else:
            raise NotImplementedError(f"puone's generated kernels have no reduction {kind}")
        self.reductions.append(reduction)
        return results[0] if count == 1 else results

    # ---- parts ----

    def codegen_iteration_ranges_entry(self, entry: IterationRangesEntry) -> None:
        (self.loop_entries if entry.root.is_loop else self.outer_entries).append(entry)

    def _entry(self, entry: IterationRangesEntry, value: sympy.Expr) -> Entry:
        return Entry(entry.name, self.kexpr(self.rename_indexing(value)))

    def codegen_body(self) -> None:
        """Collect what was generated since the last call: the inside of a loop, if it has one."""
        lines = IndentedBuffer()
        for part in (self.loads, self.compute):
            lines.splice(part)
            part.clear()
        loops = [tree for tree in self.range_trees if tree.is_loop]
        if self.inside_reduction and loops:
            if lines:
                (tree,) = loops
                self.collected.append(
                    _Collected(lines, None, tree, self.loop_entries, self.reductions)
                )
            if self.results:
                self.collected.append(_Collected(IndentedBuffer(), self.results))
            self.loop_entries, self.reductions, self.results = [], [], IndentedBuffer()
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
        tree = collected.tree
        if tree is None:
            stores = collected.stores.getvalue() if collected.stores is not None else ""
            return Once(collected.lines.getvalue(), stores)
        return Loop(
            tree.name,
            self._numel(tree),
            "".join(str(self._entry(entry, entry.expr)) for entry in collected.entries),
            collected.lines.getvalue(),
            _without_stores(collected.lines).getvalue(),
            collected.reductions,
            self._split(tree, collected.entries),
        )

    def _split(
        self, tree: IterationRangesRoot, entries: list[IterationRangesEntry]
    ) -> Split | None:
        """The rows of a loop, if they save divisions and are long."""
        length = row_length(entries, tree.numel)
        if length is None or self._is_short(length, _LEAST_LOOP) or same(length, tree.numel):
            return None
        size = self._size(length)
        row = sympy.Symbol(f"{tree.prefix}row", integer=True, nonnegative=True)
        values = [self._entry(entry, in_row(entry, row, length)) for entry in entries]
        index = Entry(tree.name, f"{row} * {size} + {PLACE}")  # reductions may ask for it
        return Split(str(row), str(PLACE), size, "".join(map(str, [index, *values])))

    # ---- the whole ----

    def _size(self, size: sympy.Expr) -> str:
        """In the kernel."""
        text = self.kexpr(self.rename_indexing(size))
        return text if size.is_Atom else f"({text})"

    @staticmethod
    def _size_in_python(size: sympy.Expr) -> str:
        """At least 1: it divides, and what comes from data may be 0."""
        text = V.graph.wrapper_code.codegen_python_sizevar(size)
        return text if size.is_Integer else f"max(1, {text})"

    def _numel(self, tree: IterationRangesRoot) -> str:
        return f"{tree.prefix}numel" if self._has_numel(tree) else f"{int(tree.numel)}L"

    @staticmethod
    def _has_numel(tree: IterationRangesRoot) -> bool:
        """Whether the number of a tree's indices is an argument."""
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
            if argument.dtype == torch.uint64:
                type_ = "uint64_t"
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
        return [tree for tree in self.range_trees if not prefix_is_reduction(tree.prefix)]

    def _inner(self) -> tuple[list[IterationRangesEntry], sympy.Expr | None]:
        """The variables of the innermost tree, and the length of the rows that fit them."""
        trees = self._outer_trees()
        if not trees:
            return [], None
        entries = [entry for entry in self.outer_entries if entry.root is trees[0]]
        return entries, row_length(entries, trees[0].numel)

    def _entries(
        self, index: str, length: sympy.Expr = sympy.S.One
    ) -> tuple[list[Entry], list[Entry]]:
        """The outer variables: those that follow from `index`, and those of a place in a row.

        There is an index for each row of `length` elements of the innermost tree.
        """
        trees = self._outer_trees()
        outer: list[Entry] = []
        inner: list[Entry] = []
        for number, tree in enumerate(trees):
            in_rows = number == 0 and length != 1
            count = self._numel(tree)
            if in_rows:
                count = f"({count} / {self._size(length)})"
            name = f"{tree.prefix}row" if in_rows else tree.name
            is_last = number == len(trees) - 1
            outer.append(Entry(name, index if is_last else f"{index} % {count}"))
            index = f"({index} / {count})"
            row = sympy.Symbol(name, integer=True, nonnegative=True)
            for entry in self.outer_entries:
                if entry.root is not tree:
                    continue
                value = in_row(entry, row, length) if in_rows else entry.expr
                of_place = value.has(PLACE)
                (inner if of_place else outer).append(self._entry(entry, value))
        return outer, inner

    def _grid(self, name: str) -> list[str]:
        """What a launch of the kernel that Python calls so says of the grid."""
        outer = [self._numel_in_python(name, tree) for tree in self._outer_trees()]
        reduced = [
            tree for tree in self.range_trees if prefix_is_reduction(tree.prefix) and self.reduces
        ]
        work = [self._numel_in_python(name, tree) for tree in reduced]
        numbers = {"count": " * ".join(outer) or "1", "work": " * ".join(work) or "0"}
        return [each.format(**numbers) for each in self.grid]

    def _layout(self, columns: bool) -> Layout:
        """Sets the grid, too."""
        if self.reduces:
            return self._layout_of_reductions(columns)
        inner, length = self._inner()
        trees = self._outer_trees()
        if length is None or self._is_short(length, _LEAST_ROW) or self._is_one_row(length):
            self.grid = _Grid("{count}", "0")
            return Map(self._entries("i")[0])
        tiles = self._tiles(inner)
        size, size_in_python = self._size(length), self._size_in_python(length)
        rows = f"({{count}}) // {size_in_python}"
        if tiles is not None:
            self.grid = _Grid(f"-(-({rows}) // {ROWS})", f"{ROWS} * {size_in_python}")
        else:
            self.grid = _Grid(rows, size_in_python)
        numels = " * ".join(self._numel(tree) for tree in trees)
        outer, places = self._entries("row", length)
        return Rows(outer, places, size, f"{numels} / {size}", tiles)

    def _is_one_row(self, length: sympy.Expr) -> bool:
        trees = self._outer_trees()
        return len(trees) == 1 and same(length, trees[0].numel)

    @staticmethod
    def _is_short(length: sympy.Expr, least: int) -> bool:
        """A length that is not known is judged by that of the first call."""
        return V.graph.sizevars.optimization_hint(length, fallback=least) < least

    def _tiles(self, inner: list[IterationRangesEntry]) -> str | None:
        """The method for rows of which neighbours are apart in some memory."""
        symbols = [entry.symbol() for entry in inner if entry.divisor == 1]

        def crosses(memory: list[sympy.Expr]) -> bool:
            return any(index.coeff(s) not in (0, 1) for index in memory for s in symbols)

        if not crosses(self.touched):
            return None
        return "eachOfTilesAcross" if crosses(self.stored) else "eachOfTiles"

    def _layout_of_reductions(self, columns: bool) -> Layout:
        inner, length = self._inner()
        columns = columns and length is not None and not self._is_short(length, _LEAST_COLUMNS)
        if length is None or not columns or not self._reduces_columns(inner):
            self.grid = _Grid("{count}", "{work}")
            return Results(self._entries("index")[0])
        size, size_in_python = self._size(length), self._size_in_python(length)
        if length.is_Integer and length <= COLUMNS:
            self.grid = _Grid(f"({{count}}) // {size_in_python}", f"{{work}} * {size_in_python}")
            outer, inner_entries = self._entries("index", length)
            place = Entry(str(PLACE), "column")
            return Columns(outer, [place, *inner_entries], size)
        self.grid = _Grid(
            f"({{count}}) // {size_in_python} * -(-{size_in_python} // {COLUMNS})",
            f"{{work}} * {COLUMNS}",
        )
        parts = Entry("parts", f"({size} + kModuleColumns - 1) / kModuleColumns")
        outer, inner_entries = self._entries("(index / parts)", length)
        first = Entry("first", "index % parts * kModuleColumns")
        place = Entry(str(PLACE), "first + column")
        width = f"std::min<int64_t>(kModuleColumns, {size} - first)"
        return Columns([parts, first, *outer], [place, *inner_entries], width)

    def _reduces_columns(self, inner: list[IterationRangesEntry]) -> bool:
        """Whether loops find neighbouring results in neighbouring memory."""
        columns = [entry.symbol() for entry in inner if entry.divisor == 1]
        reduced = [
            each.symbol()
            for each in self.range_tree_nodes.values()
            if prefix_is_reduction(each.prefix) and each.divisor == 1
        ]

        def dense(symbols: list[sympy.Symbol]) -> int:
            return sum(any(index.coeff(s) == 1 for s in symbols) for index in self.loop_loads)

        return dense(columns) > dense(reduced)

    def codegen_kernel(self, name: str | None = None) -> str:
        """The arguments of runtime.kernel() but for the device, as text."""
        self.codegen_body()
        parts = [self._part(each) for each in self.collected]
        layout = self._layout(fits_columns(parts))
        parameters = self._arguments()  # behind all that may ask for sizes
        fields = "".join(f"{each.type} {each.name};\n" for each in parameters)
        extents = "".join(
            f"int64_t {each.name}_extent;\n" for each in parameters if each.kind == "buffer"
        )
        aliases = "".join(each.alias for each in parameters)
        body = aliases + layout.body(parts)
        source = (
            f"struct Args {{\n{indented(f'Arguments arguments;{chr(10)}{fields}{extents}')}}};\n"
            f"PUONE_MODULE_{layout.idiom}({self.NAME}, Args) {{\n{indented(body)}}}\n"
        )
        packed = [parameter.packed() for parameter in parameters]
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
            [str(device.index), *self._grid(name), *arguments],
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


def _any(names: list[str], value: Any) -> Reduction:
    """In words: loops over bool are not vectorised together with loops over float."""
    word = "int32_t"
    loaded = f"{word}(ops::to_dtype<bool>({value}))"
    return Reduction("reduce", word, word, "0", "a | b", loaded, {names[0]: ("bool", "{} != 0")})


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


def _without_stores(lines: IndentedBuffer) -> IndentedBuffer:
    """The lines without those that write to memory."""
    kept = IndentedBuffer()
    kept._lines = [line for line in lines._lines if not isinstance(line, DeferredLine)]
    return kept
