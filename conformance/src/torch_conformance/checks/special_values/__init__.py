# SPDX-License-Identifier: BSD-3-Clause
"""Special values: signed zeros, subnormal numbers, NaN, infinities, corners and limits of types.

The expected values are those of the CPU in double precision, or of Python's integers.
"""
