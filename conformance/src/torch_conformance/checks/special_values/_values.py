# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: functions, NaN, infinity, and floating data types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from torch_conformance.authoring.api import Inputs

Work = Callable[[Inputs], Any]
Unary = Callable[[Tensor], Any]
Binary = Callable[[Tensor, Tensor], Any]

NAN, INF = float("nan"), float("inf")
FLOATS = ("float16", "bfloat16", "float32", "float64")
