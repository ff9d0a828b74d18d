# SPDX-License-Identifier: BSD-3-Clause
"""The argument structs of the four kernels the suite launches, mirrored from kernels/args.h."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_ubyte, c_uint64, c_void_p

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


class Operand(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("strides", c_int64 * MAX_DIMS)]


class CopyArgs(ctypes.Structure):
    _fields_ = [
        ("ndim", c_int32),
        ("out_dtype", c_int32),
        ("in_dtype", c_int32),
        ("conj", c_int32),
        ("neg", c_int32),
        ("reserved", c_int32),
        ("sizes", c_int64 * MAX_DIMS),
        ("out", Operand),
        ("in", Operand),
    ]


class CopyBitsArgs(ctypes.Structure):
    _fields_ = [
        ("ndim", c_int32),
        ("element_size", c_int32),
        ("sizes", c_int64 * MAX_DIMS),
        ("out", Operand),
        ("in", Operand),
    ]


class FillArgs(ctypes.Structure):
    value: ctypes.Array[c_ubyte]
    _fields_ = [
        ("ndim", c_int32),
        ("element_size", c_int32),
        ("sizes", c_int64 * MAX_DIMS),
        ("out", Operand),
        ("value", c_ubyte * 16),
    ]


class DelayArgs(ctypes.Structure):
    _fields_ = [("ns", c_uint64)]


def _dims(values: Sequence[int]) -> ctypes.Array[c_int64]:
    return (c_int64 * MAX_DIMS)(*values)


def operand(data: int, strides: Sequence[int]) -> Operand:
    """An operand at `data` with byte strides, innermost dimension first."""
    return Operand(data, _dims(strides))


def copy(
    sizes: Sequence[int],
    out: tuple[int, Sequence[int], DType],
    src: tuple[int, Sequence[int], DType],
    *,
    conj: bool = False,
    neg: bool = False,
) -> CopyArgs:
    """Arguments of "copy"; an operand is (address, byte strides, dtype)."""
    return CopyArgs(
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
) -> CopyBitsArgs:
    """Arguments of "copy_bits"; an operand is (address, byte strides)."""
    return CopyBitsArgs(len(sizes), element_size, _dims(sizes), operand(*out), operand(*src))


def fill(sizes: Sequence[int], out: tuple[int, Sequence[int]], value: bytes) -> FillArgs:
    """Arguments of "fill": every element becomes the bytes of `value`."""
    padded = (c_ubyte * 16)(*value)
    return FillArgs(len(sizes), len(value), _dims(sizes), operand(*out), padded)


def delay(milliseconds: float) -> DelayArgs:
    """Arguments of "delay"."""
    return DelayArgs(int(milliseconds * 1e6))
