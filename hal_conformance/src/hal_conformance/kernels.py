# SPDX-License-Identifier: BSD-3-Clause
"""Element types, and the arguments of the four kernels by which the suite tests launches."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from ctypes import c_int64, c_ubyte

from hal_conformance import contract

MAX_DIMS = 25


class DType(enum.IntEnum):
    BOOL = 0
    UINT8 = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    COMPLEX32 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15


def _dims(values: Sequence[int]) -> ctypes.Array[c_int64]:
    return (c_int64 * MAX_DIMS)(*values)


def operand(data: int, strides: Sequence[int]) -> ctypes.Structure:
    """An operand at `data` with byte strides, innermost dimension first."""
    return contract.struct("puone_operand")(data, _dims(strides))


def copy(
    sizes: Sequence[int],
    out: tuple[int, Sequence[int], DType],
    src: tuple[int, Sequence[int], DType],
    *,
    conj: bool = False,
    neg: bool = False,
) -> ctypes.Structure:
    """Arguments of "copy"; an operand is (address, byte strides, dtype)."""
    return contract.struct("puone_copy_args")(
        len(sizes),
        out[2],
        src[2],
        conj,
        neg,
        0,
        _dims(sizes),
        operand(out[0], out[1]),
        operand(src[0], src[1]),
    )


def copy_bits(
    sizes: Sequence[int],
    element_size: int,
    out: tuple[int, Sequence[int]],
    src: tuple[int, Sequence[int]],
) -> ctypes.Structure:
    """Arguments of "copy_bits"; an operand is (address, byte strides)."""
    arguments = (len(sizes), element_size, _dims(sizes), operand(*out), operand(*src))
    return contract.struct("puone_copy_bits_args")(*arguments)


def fill(sizes: Sequence[int], out: tuple[int, Sequence[int]], value: bytes) -> ctypes.Structure:
    """Arguments of "fill": every element becomes the bytes of `value`."""
    padded = (c_ubyte * 16)(*value)
    arguments = (len(sizes), len(value), _dims(sizes), operand(*out), padded)
    return contract.struct("puone_fill_args")(*arguments)


def delay(milliseconds: float) -> ctypes.Structure:
    """Arguments of "delay"."""
    return contract.struct("puone_delay_args")(int(milliseconds * 1e6))
