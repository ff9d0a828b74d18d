# SPDX-License-Identifier: BSD-3-Clause
"""Streams: order, concurrency, waiting, the current stream, priorities, and leaks."""
