# SPDX-License-Identifier: BSD-3-Clause
"""The package of your backend: its import registers the device. Here there is nothing to register,
because the example stands for a device that PyTorch has already, its CPU."""

import torch  # noqa: F401 - stands for the import of the compiled part
