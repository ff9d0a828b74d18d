# SPDX-License-Identifier: BSD-3-Clause
"""Copies: host to device, device to host, within a device, between devices, and to Python."""
