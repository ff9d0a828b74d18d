# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend on the driver's oddity `no_kernels` (see driver/odd.cpp)."""

import odd

odd.choose("no_kernels")

import torch_puone  # noqa: E402, F401 - registers the device, on that driver
