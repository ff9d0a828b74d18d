# SPDX-License-Identifier: BSD-3-Clause
"""The executor of PTX, by itself: modules as text, memory as NumPy arrays."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from suites import LIBRARIES

EXECUTOR = LIBRARIES / "libpuone_ptx_executor.so"
#: The cuda driver and its kernels as nvcc made them, over the executor.
CUDA_PTX = LIBRARIES / "libpuone_cuda_ptx.so"
#: In the place of the compiler that it takes for modules.
PTX_NVRTC = LIBRARIES / "libpuone_ptx_nvrtc.so"
needs_ptx = pytest.mark.skipif(
    not CUDA_PTX.exists(), reason="the executor of PTX was not built: there is no nvcc"
)

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


class DeviceCodeError(Exception):
    """What the executor says of an error in device code. `kind` is what stands before the colon."""

    @property
    def kind(self) -> str:
        return str(self).split(":", 1)[0]

    @property
    def line(self) -> int:
        found = re.search(r", line (\d+) of module", str(self))
        assert found, self
        return int(found[1])


class Memory:
    """An array that device code may touch. `written`: its contents are defined."""

    def __init__(self, array: Any, *, written: bool = True, constant: bool = False) -> None:
        self.array = np.ascontiguousarray(array)
        self.written = written
        self.constant = constant


class _Range(ctypes.Structure):
    _fields_ = (
        ("begin", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("written", ctypes.c_int32),
        ("constant", ctypes.c_int32),
    )


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(EXECUTOR))
    library.ptx_error.restype = ctypes.c_char_p
    library.ptx_unload.argtypes = [ctypes.c_void_p]
    library.ptx_parameters.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return library


def _check(result: int) -> None:
    if result != 0:
        raise DeviceCodeError(_library().ptx_error().decode())


class Module:
    """PTX, ready to run."""

    def __init__(self, text: str) -> None:
        self._handle = ctypes.c_void_p()
        _check(_library().ptx_load(text.encode(), ctypes.byref(self._handle)))

    def __del__(self) -> None:
        if self._handle:
            _library().ptx_unload(self._handle)

    def parameter_bytes(self, entry: str = "kernel") -> int:
        """Decodes the entry."""
        size = ctypes.c_uint32()
        _check(_library().ptx_parameters(self._handle, entry.encode(), ctypes.byref(size)))
        return size.value

    def run(
        self,
        *arguments: Memory | int | bytes,
        entry: str = "kernel",
        blocks: Sequence[int] = (1, 1, 1),
        threads: Sequence[int] = (1, 1, 1),
    ) -> None:
        """Runs the entry. Memory and integers are parameters of 64 bits, bytes are as they are."""
        memories = [given for given in arguments if isinstance(given, Memory)]
        ranges = (_Range * max(1, len(memories)))(
            *(
                _Range(each.array.ctypes.data, each.array.nbytes, each.written, each.constant)
                for each in memories
            )
        )
        packed = b"".join(
            given
            if isinstance(given, bytes)
            else struct.pack(
                "<Q",
                (given.array.ctypes.data if isinstance(given, Memory) else given) % 2**64,
            )
            for given in arguments
        )
        size = self.parameter_bytes(entry)
        assert len(packed) == size, f"{len(packed)} bytes of arguments for {size} of parameters"
        done = _library().ptx_run(
            self._handle,
            entry.encode(),
            (ctypes.c_uint32 * 3)(*blocks),
            (ctypes.c_uint32 * 3)(*threads),
            ctypes.create_string_buffer(packed, max(1, len(packed))),
            ranges,
            ctypes.c_uint32(len(memories)),
        )
        _check(done)


def kernel(body: str, parameters: int = 1, before: str = "") -> str:
    """A module with the entry `kernel` of parameters p0, p1 ... of 64 bits, which are in %rd0 ...;
    %r0 is the thread's number."""
    declared = ",\n".join(f".param .u64 p{i}" for i in range(parameters))
    loads = "\n".join(f"ld.param.u64 %rd{i}, [p{i}];" for i in range(parameters))
    return f"""{HEADER}{before}
.visible .entry kernel(
{declared}
)
{{
.reg .pred %p<32>;
.reg .b16 %rs<32>;
.reg .b32 %r<32>;
.reg .f32 %f<32>;
.reg .b64 %rd<32>;
.reg .f64 %fd<32>;
{loads}
mov.u32 %r0, %tid.x;
{body}
ret;
}}
"""
