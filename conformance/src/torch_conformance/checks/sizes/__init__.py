# SPDX-License-Identifier: BSD-3-Clause
"""Sizes beyond what one block, tile, launch or dimension of a grid takes, compared with the CPU.

The largest tensors have a million elements. Lengths are odd, so that the last vector, tile and
block are incomplete. The CPU computes the expected results in double precision.
"""
