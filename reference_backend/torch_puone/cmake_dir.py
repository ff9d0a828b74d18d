# SPDX-License-Identifier: BSD-3-Clause
"""`python -m torch_puone.cmake_dir` prints the directory of the CMake package `puone`.

With it as puone_DIR, find_package(puone CONFIG) finds the functions that backends and drivers are
built with; puone-config.cmake in it has an example.
"""

from __future__ import annotations

from pathlib import Path

from .new.sources import root


def cmake_dir() -> Path:
    """The directory of puone-config.cmake, in a wheel and in a checkout."""
    return root() / "cmake"


if __name__ == "__main__":
    print(cmake_dir())
