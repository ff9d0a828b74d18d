# SPDX-License-Identifier: BSD-3-Clause
"""Conformance suite for PyTorch device backends: ``pytest conformance --backend=NAME``."""

__version__ = "0.1.0"
