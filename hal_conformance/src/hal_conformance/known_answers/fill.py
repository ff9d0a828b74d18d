# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "fill"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hal_conformance.answers import LAYOUTS, STORAGE, Case, Out, dense, dims, element
from hal_conformance.kernels import DType

# One type for each element size, and a value whose bytes all differ.
SIZES = {
    1: (DType.UINT8, 0xA5),
    2: (DType.UINT16, 0xA1B2),
    4: (DType.UINT32, 0xA1B2C3D4),
    8: (DType.UINT64, 0xA1B2C3D4E5F60718),
    16: (DType.COMPLEX128, 1.5 - 2.25j),
}
SHAPES = [(), (1,), (63,), (64,), (65,), (5, 7), (3, 1, 4), (0,), (3, 0), (5000,), (2,) * 10]


def cases() -> Iterator[Case]:
    for size, (dtype, value) in SIZES.items():
        for shape in SHAPES:
            for layout in LAYOUTS if len(shape) == 2 else (dense,):
                expected = np.full(shape, value, STORAGE[dtype])
                args = {
                    **dims(shape),
                    "element_size": size,
                    "out": Out(expected, dtype, layout),
                    "value": element(value, dtype),
                }
                yield Case("fill", f"{size} bytes {shape} {layout.__name__}", args)
        zeros = np.zeros((4100,), STORAGE[dtype])
        args = {**dims((4100,)), "element_size": size, "out": Out(zeros, dtype)}
        yield Case("fill", f"{size} bytes with zero", args)
