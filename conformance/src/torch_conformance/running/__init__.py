# SPDX-License-Identifier: BSD-3-Clause
"""Runs checks in processes that may crash, hang or leave helpers behind."""
