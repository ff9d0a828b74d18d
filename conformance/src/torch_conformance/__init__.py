# SPDX-License-Identifier: BSD-3-Clause
"""Conformance suite for PyTorch device backends: ``pytest conformance --backend=NAME``."""

from pathlib import Path

__version__ = "0.1.0"
#: The directory of the package.
PACKAGE = Path(__file__).resolve().parent
#: Keys of pytest.ini, or of pyproject.toml's [tool.pytest.ini_options].
INI_BACKEND = "conformance_backend"
INI_BACKEND_FILE = "conformance_backend_file"
INI_EXPECTATIONS = "conformance_expectations"
