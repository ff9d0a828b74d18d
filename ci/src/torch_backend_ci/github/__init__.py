# SPDX-License-Identifier: BSD-3-Clause
"""Talking to GitHub: what is read there, what is written there, and how text gets there safely."""
