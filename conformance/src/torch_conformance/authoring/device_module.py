# SPDX-License-Identifier: BSD-3-Clause
"""The module torch.<type> as checks use it that ask for something else.

What the module must or should have is required by the chapter registration, once for each name. A
check of another requirement that cannot be made without a name that is missing is unsupported:
otherwise one missing name fails the checks of many requirements, which may all be met.
"""

from __future__ import annotations

from typing import Any

from torch_conformance.spec.reason import Stated, Unsupported


class DeviceModule:
    """A device module whose missing names end a check as unsupported."""

    def __init__(self, module: Any, device_type: str) -> None:
        self._module = module
        self._type = device_type

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            text = f"torch.{self._type} has no {name}; the chapter registration requires it"
            raise Unsupported(Stated(text=text)) from None
