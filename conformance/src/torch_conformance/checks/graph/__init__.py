# SPDX-License-Identifier: BSD-3-Clause
"""Graphs: what is captured and replayed, and callables that replay."""
