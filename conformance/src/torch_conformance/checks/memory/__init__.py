# SPDX-License-Identifier: BSD-3-Clause
"""Device memory, its allocator and statistics, pinned host memory, and running out of memory."""
