# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend with tensors that show neither an address nor a storage."""

from typing import Any

import torch

import torch_puone  # noqa: F401 - registers the device

_ADDRESS = "Cannot access data pointer of Tensor that doesn't have storage"
_STORAGE = "Cannot access storage of OpaqueTensorImpl"


def _hide(name: str, message: str) -> None:
    shown = getattr(torch.Tensor, name)

    def hidden(self: torch.Tensor, *args: Any) -> Any:
        if self.device.type == "puone":
            raise RuntimeError(message)
        return shown(self, *args)

    setattr(torch.Tensor, name, hidden)


_hide("data_ptr", _ADDRESS)
_hide("untyped_storage", _STORAGE)
_hide("_typed_storage", _STORAGE)
