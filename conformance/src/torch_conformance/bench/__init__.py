# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks: latency of a device against the CPU, and throughput of the suite itself."""
