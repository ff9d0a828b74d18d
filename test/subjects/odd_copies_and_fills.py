# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend on the driver's oddity `copies_and_fills` (see driver/odd.cpp)."""

import odd

odd.choose("copies_and_fills")

import torch_puone  # noqa: E402, F401 - registers the device, on that driver
