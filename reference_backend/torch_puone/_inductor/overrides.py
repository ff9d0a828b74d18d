# SPDX-License-Identifier: BSD-3-Clause
"""Inductor's operations as expressions of the dialect: most call csrc/kernels/operations.h."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import CSEVariable, IndentedBuffer, OpOverrides
from torch._inductor.utils import get_bounds_index_expr, sympy_index_symbol
from torch._inductor.virtualized import V, ops

from .types import computed, literal, stored

#: Operations that are functions of the same name in namespace ops.
# fmt: off
FUNCTIONS = frozenset((
    "add", "sub", "mul", "neg", "abs", "square", "sign", "reciprocal", "truediv", "int_truediv",
    "div_rn", "truncdiv", "floordiv", "mod", "fmod", "remainder", "maximum", "minimum", "relu",
    "where", "fma", "mul_rn", "pow",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sqrt", "sigmoid",
    "rsqrt", "floor", "ceil", "trunc", "round", "atan2", "hypot", "copysign",
    "isnan", "isinf", "signbit", "eq", "ne", "lt", "gt", "le", "ge",
    "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift",
    "bitwise_right_shift",
    "rand", "randn", "randint64",
))
# fmt: on
#: Operators of Python that inductor has as operations of their own.
OPERATORS = {
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}


class Variable(CSEVariable):
    """Of a kernel."""

    of_bool = False  # whether it is a number that was made from a bool

    def update_on_args(self, name: str, args: Any, kwargs: Any) -> None:
        variables = [each for each in (*args, *kwargs.values()) if isinstance(each, Variable)]
        made = name == "to_dtype" and any(each.dtype == torch.bool for each in variables)
        self.of_bool = made or any(each.of_bool for each in variables)


class PuoneOverrides(OpOverrides):
    """Each method returns an expression; inductor gives it a name."""

    @staticmethod
    def constant(value: float | bool, dtype: torch.dtype) -> str:
        return literal(value, dtype)

    @staticmethod
    def to_dtype(
        x: CSEVariable,
        dtype: torch.dtype,
        src_dtype: torch.dtype | None = None,
        use_compute_types: bool = True,
    ) -> str:
        converted = f"ops::to_dtype<{computed(dtype)}>({x})"
        if dtype in (torch.float16, torch.bfloat16) and not use_compute_types:
            return f"ops::read(ops::write<{stored(dtype)}>({converted}))"
        return converted

    @staticmethod
    def to_dtype_bitcast(x: CSEVariable, dtype: torch.dtype, src_dtype: torch.dtype) -> str:
        bits = f"ops::write<{stored(src_dtype)}>({x})"
        return f"ops::to_dtype_bitcast<{stored(dtype)}>({bits})"

    @staticmethod
    def index_expr(expr: sympy.Expr, dtype: torch.dtype) -> Any:
        kernel = V.kernel
        text = kernel.index_to_str(kernel.prepare_indexing(expr))
        whole = bool(expr.is_integer)  # sizes that are divided by each other need not be
        value = kernel.cse.generate(
            kernel.compute,
            f"int64_t({text})" if whole else f"double({text})",
            bounds=get_bounds_index_expr(expr),
            dtype=torch.int64 if whole else torch.float64,
            shape=(),
        )
        return ops.to_dtype(value, dtype)

    value_expr = index_expr

    @staticmethod
    def indirect_indexing(
        var: Any, size: Any, check: bool = True, wrap_neg: bool = True
    ) -> sympy.Symbol:
        """Numbers made from bools are not addresses: see ops::place."""
        if var.of_bool:
            var = V.kernel.cse.generate(
                V.kernel.compute,
                f"ops::place({var})",
                bounds=var.bounds,
                dtype=var.dtype,
                shape=var.shape,
            )
        return sympy_index_symbol(str(var))

    @staticmethod
    def masked(mask: CSEVariable, body: Callable[[], CSEVariable], other: float) -> CSEVariable:
        """What the body loads, it loads only where the mask is true."""
        kernel = V.kernel
        scoped = IndentedBuffer()
        with kernel.swap_buffers(scoped), kernel.masked(), scoped.indent():
            result = body()
        dtype = result.dtype
        assert dtype is not None
        variable = kernel.cse.newvar(dtype=dtype, shape=())
        kernel.compute.writeline(f"{computed(dtype)} {variable} = {literal(other, dtype)};")
        kernel.compute.writeline(f"if ({mask}) {{")
        kernel.compute.splice(scoped)
        with kernel.compute.indent():
            kernel.compute.writeline(f"{variable} = {result};")
        kernel.compute.writeline("}")
        return variable

    @staticmethod
    def load_seed(name: str, offset: Any) -> Any:
        return ops.load(name, sympy.Integer(offset))

    @staticmethod
    def device_assert_async(condition: CSEVariable, message: str) -> None:
        V.kernel.device_assert_async(condition, message)


def _call(name: str) -> Callable[..., str]:
    def called(*args: Any) -> str:
        return f"ops::{name}({', '.join(map(str, args))})"

    return called


def _rounded(name: str) -> Callable[..., str]:
    def called(x: Any, dtype: torch.dtype) -> str:
        return f"ops::to_dtype<{computed(dtype)}>(ops::{name}({x}))"

    return called


for name in ("trunc", "ceil", "floor", "round"):
    setattr(PuoneOverrides, f"{name}_to_int", staticmethod(_rounded(name)))
for name in FUNCTIONS:
    setattr(PuoneOverrides, name, staticmethod(_call(name)))
for name, function in OPERATORS.items():
    setattr(PuoneOverrides, name, staticmethod(_call(function)))
