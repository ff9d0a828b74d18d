# SPDX-License-Identifier: BSD-3-Clause
"""The torch that the extension beside this file was compiled for. Written by CMake."""

TORCH_VERSION = "2.13.0+cpu"
TORCH_GIT_VERSION = "cf30153c4c131c8164ee7798e5022d810682e2cb"
