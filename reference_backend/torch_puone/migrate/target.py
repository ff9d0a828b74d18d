# SPDX-License-Identifier: BSD-3-Clause
"""The device that takes the place of CUDA devices, and the translation of device arguments."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import torch

_CUDA = re.compile(r"cuda(?::(\d+))?")


class Target:
    """A device type of this process with its module. Immutable."""

    def __init__(self, device_type: str | None = None) -> None:
        """`device_type`: None for the current accelerator. RuntimeError if there is none."""
        self.type = device_type or _current_accelerator()
        if ":" in self.type:
            raise RuntimeError(f"{self.type!r} has an index: give the type of the device only")
        try:
            self.module: ModuleType = torch.get_device_module(self.type)
        except RuntimeError as error:
            raise RuntimeError(
                f"there is no device type {self.type!r} here. A backend that `import torch` does "
                "not load must be imported before."
            ) from error
        if not getattr(self.module, "is_available", lambda: True)():
            raise RuntimeError(f"there is no device of the type {self.type!r} on this machine")
        accelerator = torch.accelerator.current_accelerator()
        #: Whether `torch.accelerator` speaks of this device.
        self.is_accelerator = accelerator is not None and accelerator.type == self.type

    @property
    def packages(self) -> set[str]:
        """The root package of the backend's own code."""
        return {self.import_name.partition(".")[0]}

    @property
    def import_name(self) -> str:
        """The module whose import makes the device known."""
        # The module may be an object of another class.
        is_module = isinstance(self.module, ModuleType)
        return self.module.__name__ if is_module else self.module.__module__

    def translated(self, value: Any) -> Any:
        """The same value, or for a CUDA device - string or torch.device - the target's."""
        if isinstance(value, str):
            match = _CUDA.fullmatch(value)
            return self.type + value[len("cuda") :] if match else value
        if isinstance(value, torch.device) and value.type == "cuda":
            return self.device(value.index)
        return value

    def device(self, index: Any = None) -> torch.device:
        """The target's device for what `torch.cuda` takes: an index, a device, a string, None."""
        if index is None or (isinstance(index, int) and index < 0):
            return torch.device(self.type)
        if isinstance(index, int):
            return torch.device(self.type, index)
        return torch.device(self.translated(index))

    def index(self, device: Any = None) -> int | None:
        """The index in a device argument; None means the current device."""
        return self.device(device).index

    def resolve(self, expression: str) -> Any:
        """What an expression of the table such as "torch.accelerator.synchronize" is here.

        None if there is no such thing, or if it is more than a name.
        """
        if "(" in expression.removeprefix("torch.get_device_module()") or " " in expression:
            return None
        if expression.startswith("torch.accelerator.") and not self.is_accelerator:
            return None
        start, path = torch, expression.removeprefix("torch.")
        if path.startswith("get_device_module()"):
            start, path = self.module, path.removeprefix("get_device_module()").lstrip(".")
        found: Any = start
        for part in filter(None, path.split(".")):
            found = getattr(found, part, None)
        return found


def _current_accelerator() -> str:
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None:
        raise RuntimeError(
            "this torch has no accelerator; name the device that takes the place of CUDA devices "
            "(--device)"
        )
    return accelerator.type
