# SPDX-License-Identifier: BSD-3-Clause
"""Whether two drivers compute the same: kernels within tolerance, random numbers to the last bit.

A process has one driver, so collect.py runs once for each; compare.py reads what both wrote.
"""
