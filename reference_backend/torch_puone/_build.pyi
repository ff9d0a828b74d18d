# SPDX-License-Identifier: BSD-3-Clause
"""The torch that the extension was compiled for; CMake writes this module (cmake/_build.py.in)."""

TORCH_VERSION: str
TORCH_GIT_VERSION: str
