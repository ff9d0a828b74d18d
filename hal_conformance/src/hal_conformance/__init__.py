# SPDX-License-Identifier: BSD-3-Clause
"""The HAL suite: what a driver must do, checked over its C table with ctypes and no torch."""

__version__ = "0.1.0"
