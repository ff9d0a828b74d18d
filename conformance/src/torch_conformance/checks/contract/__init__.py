# SPDX-License-Identifier: BSD-3-Clause
"""Contracts that every operator keeps: overlapping memory, ignored inputs, in-place gradients.

What they are is the same for every operator; each table lists the calls that are tried.
"""
