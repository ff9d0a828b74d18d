# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend with data_ptr() as one whose memory is elsewhere: it gives handles.

A handle is the address of an object on the heap, which is far from the next one but says nothing of
the memory that it stands for; a view has that of its tensor, and its offset.
"""

import torch

import torch_puone  # noqa: F401 - registers the device

#: What lies between two handles: more than the smallest blocks have.
DISTANCE = 4096

_address, _of_storage = torch.Tensor.data_ptr, torch.UntypedStorage.data_ptr
_handles: dict[int, int] = {}


def _handle(block: int) -> int:
    return _handles.setdefault(block, 0x5640_0000_0010 + DISTANCE * len(_handles)) if block else 0


def _of_tensor(tensor: torch.Tensor) -> int:
    address = _address(tensor)
    if tensor.device.type != "puone" or not address:
        return address
    offset = int(tensor.storage_offset() * tensor.element_size())
    return _handle(address - offset) + offset


def _of_untyped(storage: torch.UntypedStorage) -> int:
    address = _of_storage(storage)
    return _handle(address) if storage.device.type == "puone" else address


torch.Tensor.data_ptr = _of_tensor  # type: ignore[assignment, method-assign]  # replaced on purpose
torch.UntypedStorage.data_ptr = _of_untyped  # type: ignore[assignment, method-assign]
