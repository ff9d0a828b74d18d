# SPDX-License-Identifier: BSD-3-Clause
"""Operators as programs use them: indexing, out=, promotion, networks, autograd, fallback.

Most checks run one function on the CPU and on the device and compare everything it returns: values
within the tolerance of their data type, shape, data type, and that results live on the device.
"""
