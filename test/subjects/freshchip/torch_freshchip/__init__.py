# SPDX-License-Identifier: BSD-3-Clause
"""A backend on its first day; importing it makes the device type ``freshchip`` known to torch."""

from torch_freshchip import device, operators

__all__ = ["device", "operators"]

device.register()
operators.register()
