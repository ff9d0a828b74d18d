# SPDX-License-Identifier: BSD-3-Clause
"""Threads and processes: concurrent use, waiting, backward, fork, spawn, exit."""
