# SPDX-License-Identifier: BSD-3-Clause
"""Conformance suite for PyTorch device backends: ``pytest conformance --backend=NAME``."""

from pathlib import Path

__version__ = "0.1.0"
#: The directory of the package.
PACKAGE = Path(__file__).resolve().parent
