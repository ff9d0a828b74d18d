# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: lengths, shapes, and the data types of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Inputs

Work = Callable[[Inputs], Any]
Unary = Callable[[Tensor], Any]

#: Beyond 2^16 and 2^17, and beyond what runs at one time on any device.
LENGTHS = (65_537, 131_075)
MILLION = 1_000_003
#: More rows than a dimension of a grid has blocks.
ROWS = 66_001
TYPES = ("uint8", "bool", "int16", "int32", "int64", "float16", "bfloat16", "float64", "complex64")
LAST = torch.channels_last


#: Shape, and the dimension that is reduced.
REDUCED = (
    ((65_537,), 0),
    ((3, 131_075), 1),
    ((131_075, 3), 0),
    ((ROWS, 5), 1),
    ((5, ROWS), 0),
    ((65, 129, 67), 1),
    ((2, 65_537, 3), 1),
    ((257, 1031), 1),
    ((1031, 257), 0),
)
