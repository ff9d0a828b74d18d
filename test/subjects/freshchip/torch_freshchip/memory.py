# SPDX-License-Identifier: BSD-3-Clause
"""Memory of the device: tensors that own some, and how a kernel sees it.

The device is the host in disguise: its memory is host memory that nothing but `host` looks into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_freshchip.device import TYPE

# Kernels of torch that only change sizes, strides and offset work on tensors of every device.
METADATA = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def allocate(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A device tensor of this geometry with uninitialised memory of its own."""
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    count = last + 1 if all(size) else 0
    tensor = torch._C._acc.create_empty_tensor((0,), dtype)
    return attach(tensor, _storage(count * dtype.itemsize), size, stride)


def attach(
    tensor: torch.Tensor,
    storage: torch.UntypedStorage,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int = 0,
) -> torch.Tensor:
    """Make a device tensor a view of a storage."""
    operator = torch.ops.aten.set_.source_Storage_storage_offset
    attached: torch.Tensor = operator.redispatch(METADATA, tensor, storage, offset, size, stride)
    return attached


def host(tensor: Any) -> Any:
    """A CPU tensor on the memory of a device tensor; CPU tensors and numbers as they are."""
    if not isinstance(tensor, torch.Tensor) or tensor.device.type != TYPE:
        return tensor
    storage = tensor.untyped_storage()
    alias = torch._C._construct_storage_from_data_pointer(
        storage.data_ptr(), torch.device("cpu"), storage.nbytes()
    )
    empty = torch.empty(0, dtype=tensor.dtype)
    seen = empty.set_(alias, tensor.storage_offset(), tensor.size(), tensor.stride())
    # conj() and the imaginary part of it are views with a bit that says how to read the memory.
    seen = seen.conj() if tensor.is_conj() else seen
    return torch._neg_view(seen) if tensor.is_neg() else seen


def _storage(size: int) -> torch.UntypedStorage:
    memory = torch.UntypedStorage(size)
    storage = torch._C._construct_storage_from_data_pointer(
        memory.data_ptr(), torch.device(TYPE, 0), size
    )
    # PyTorch keeps the Python object of a storage for as long as a tensor uses the storage.
    storage.memory = memory  # type: ignore[attr-defined]  # added here
    return storage  # type: ignore[return-value]  # the stub says otherwise
