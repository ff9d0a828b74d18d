# SPDX-License-Identifier: BSD-3-Clause
"""In what a result differs from the expected one: data that failures are grouped by."""

from __future__ import annotations

from enum import Enum


class Mismatch(str, Enum):
    """In what two results differ. The string values are the ones in reports and stores."""

    TYPE = "type"
    STRUCTURE = "structure"
    DTYPE = "dtype"
    LAYOUT = "layout"
    SHAPE = "shape"
    ALL_VALUES = "all_values"
    SOME_VALUES = "some_values"
    SCALAR = "scalar"

    def __str__(self) -> str:
        return self.value
