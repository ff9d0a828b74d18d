# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend with a device module that has only what every program makes PyTorch call.

Nor can torch.accelerator.synchronize wait for it: what is read has been waited for. What was read
once is kept on the host for as long as nothing writes to it.
"""

import sys
import types
from typing import Any

import torch

import torch_puone

_NAMES = (
    *("device_count", "is_available", "current_device", "set_device", "device"),
    *("manual_seed_all", "get_amp_supported_dtype", "_is_in_bad_fork"),
    *("_lazy_init", "_initialized"),
)
module = types.ModuleType("torch.puone")


def _found(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'torch.puone' has no attribute {name!r}")
    return getattr(torch_puone, name)


module.__getattr__ = _found  # type: ignore[method-assign]  # as PEP 562 has it
torch.puone = module  # type: ignore[attr-defined]  # replaced on purpose
sys.modules["torch.puone"] = module


def _synchronize(device: Any = None) -> None:
    raise RuntimeError("Backend doesn't support synchronizing all streams on device.")


torch.accelerator.synchronize = _synchronize

_read = torch.Tensor.cpu


def _kept(tensor: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
    plain = not (tensor.requires_grad or tensor.is_inference() or args or options)
    if tensor.device.type != "puone" or not plain:
        return _read(tensor, *args, **options)
    version, copy = getattr(tensor, "_kept", (None, None))
    if copy is None or version != tensor._version:
        copy = _read(tensor)
        tensor._kept = tensor._version, copy  # type: ignore[attr-defined]
    return copy.clone()


torch.Tensor.cpu = _kept  # type: ignore[assignment, method-assign]  # replaced on purpose
