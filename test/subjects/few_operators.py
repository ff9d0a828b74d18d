# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend as PUONE_OPERATORS=core builds it (see core/CMakeLists.txt)."""

import ctypes
import os

import odd
import torch  # noqa: F401 - its libraries come first

os.environ.setdefault("PUONE_DRIVER", str(odd.LIBRARIES / "libpuone_sim.so"))
# The extension finds a library of that name loaded, and takes it.
ctypes.CDLL(str(odd.LIBRARIES.parent / "core/lib/libtorch_puone.so"), mode=ctypes.RTLD_GLOBAL)

import torch_puone  # noqa: E402, F401 - registers the device, with that library
