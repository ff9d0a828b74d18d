# SPDX-License-Identifier: BSD-3-Clause
"""The topics of the OpInfo tier: a module of opinfo/ for each."""

from __future__ import annotations

TOPICS = (
    "forward",
    "out",
    "inplace",
    "noncontiguous",
    "math_bits",
    "error",
    "misfit",
    "gradient",
    "gradgrad",
    "foreach",
    "compiled",
    "compiled_gradient",
)
