# SPDX-License-Identifier: BSD-3-Clause
"""Findings, shown: for a terminal, a program, a pull request, code scanning."""

from torch_backend_ci.surface.report.report import Report, shown

__all__ = ["Report", "shown"]
