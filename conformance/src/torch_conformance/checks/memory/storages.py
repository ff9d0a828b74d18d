# SPDX-License-Identifier: BSD-3-Clause
"""A storage that is resized keeps its contents, and one of size zero gives its memory back."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check
from torch_conformance.checks.memory._blocks import (
    LARGE,
    allocate,
    allocated_bytes,
    on_first_device,
)

_COUNT = torch.arange(64, dtype=torch.uint8)
_STORAGE_SIZES = {"storage_grows": 4096, "storage_shrinks": 16}


@check("memory/resize", "MEM-006", cases=_STORAGE_SIZES)
def resizing_a_storage_keeps_the_contents(dev: Device, case: str) -> None:
    """Growing or shrinking a storage keeps the bytes that stay."""
    dev.require("storage_resize")
    size = _STORAGE_SIZES[case]
    x = _COUNT.to(dev.device(), copy=True)
    x.untyped_storage().resize_(size)
    assert x.untyped_storage().nbytes() == size
    stored = torch.empty(0, dtype=torch.uint8, device=x.device).set_(x.untyped_storage())
    dev.assert_equal(stored[:64], _COUNT[:size])


#: The sizes that a tensor is given, one after the other.
_SIZES_IN_TURN = {
    "tensor_grows": (1000,),
    "tensor_shrinks": (8,),
    "repeatedly": tuple(range(64, 1280, 64)),
}


@check("memory/resize", "MEM-006", cases=_SIZES_IN_TURN)
def resizing_a_tensor_keeps_the_contents(dev: Device, case: str) -> None:
    """Growing or shrinking a tensor keeps the elements that stay."""
    x = _COUNT.to(dev.device(), copy=True)
    for size in _SIZES_IN_TURN[case]:
        x.resize_(size)
        assert x.shape == (size,)
    dev.assert_equal(x[:64], _COUNT[: len(x)])


def _shrink_storage(x: torch.Tensor) -> torch.Tensor:
    x.untyped_storage().resize_(1024 * x.element_size())
    return torch.empty(0, device=x.device).set_(x.untyped_storage())


_RESIZES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tensor_grows": lambda x: x.resize_(9000),
    "storage_shrinks": _shrink_storage,
}


@check("memory/resize_late", "MEM-006", cases=_RESIZES, needs=("delay",))
def resizing_waits_for_the_contents(dev: Device, case: str) -> None:
    """What is queued for a tensor before it is resized is among the contents that stay."""
    x = torch.zeros(4096, device=dev.device())
    dev.synchronize()
    dev.delay(LATE_MS)
    x.fill_(3)
    x = _RESIZES[case](x)
    dev.assert_equal(x[:1024], torch.full((1024,), 3.0))


def _released(dev: Device) -> torch.Tensor:
    """A tensor whose storage gave its memory back."""
    before = allocated_bytes()
    x = allocate(dev, LARGE)
    x.untyped_storage().resize_(0)
    assert allocated_bytes() == before, "the memory is still allocated"
    return x


@check("memory/storage_release:released", "MEM-007", needs=("memory_stats",))
def storage_of_size_zero_releases_its_memory(dev: Device) -> None:
    """storage.resize_(0) gives the memory back while the tensor lives."""
    with on_first_device(dev):
        _released(dev)


@check("memory/storage_release:usable_again", "MEM-007", needs=("memory_stats",))
def a_released_storage_can_be_filled_again(dev: Device) -> None:
    """A storage that was resized to zero can grow and be filled again."""
    with on_first_device(dev):
        x = _released(dev)
        x.untyped_storage().resize_(LARGE)
        x.fill_(5)
        assert x[LARGE - 1].item() == 5
