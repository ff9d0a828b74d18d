# SPDX-License-Identifier: BSD-3-Clause
"""Errors: refused arguments, mixed devices, missing operators, and failures of queued work."""
