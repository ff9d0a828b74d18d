# SPDX-License-Identifier: BSD-3-Clause
"""Blocks are aligned, apart from one another, kept while they are in use, and protected."""

from __future__ import annotations

import ctypes
import faulthandler
import resource
import signal
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.memory._blocks import (
    LARGE,
    MIB,
    allocate,
    allocated_bytes,
    keep_their_contents,
    on_first_device,
)

_SIZES = {"one": 1, "odd": 513, "page": 4096, "large": MIB + 1}


@check("memory/alignment", "MEM-001", cases=_SIZES, needs=("accelerator", "addresses"))
def blocks_are_aligned(dev: Device, case: str) -> None:
    """Every block begins at a multiple of 16 bytes, the largest element there is."""
    live = [allocate(dev, _SIZES[case]) for _ in range(9)]
    assert all(x.data_ptr() % 16 == 0 for x in live), [hex(x.data_ptr()) for x in live]


@check("memory/alignment_vector", "MEM-002", cases=_SIZES, needs=("accelerator", "addresses"))
def blocks_are_aligned_for_vectors(dev: Device, case: str) -> None:
    """Every block begins at a multiple of 64 bytes."""
    live = [allocate(dev, _SIZES[case]) for _ in range(9)]
    assert all(x.data_ptr() % 64 == 0 for x in live), [hex(x.data_ptr()) for x in live]


_LIVE = [1 + (k * k * 37) % 5000 for k in range(96)] + [LARGE, LARGE, MIB, 3 * MIB + 5]


@check("memory/no_overlap:addresses", "MEM-003", needs=("accelerator", "addresses"))
def addresses_of_live_blocks_do_not_overlap(dev: Device) -> None:
    """A live block ends before the one with the next higher address begins."""
    live = [allocate(dev, size) for size in _LIVE]
    spans = sorted((x.data_ptr(), x.data_ptr() + x.numel()) for x in live)
    for (_, end), (begin, _) in pairwise(spans):
        assert end <= begin, f"a block ends at {end:#x}, the next begins at {begin:#x}"


@check("memory/no_overlap:contents", "MEM-003", needs=("accelerator",))
def live_blocks_do_not_overlap(dev: Device) -> None:
    """What is written to live blocks does not change any other."""
    keep_their_contents(dev, [allocate(dev, size) for size in _LIVE])


@check("memory/no_overlap:after_reuse", "MEM-003", needs=("accelerator",))
def live_blocks_do_not_overlap_after_reuse(dev: Device) -> None:
    """What is written to live blocks does not change any other, after others were freed."""
    live = [allocate(dev, size) for size in _LIVE]
    for k in range(0, len(live), 2):
        live[k] = allocate(dev, 1)
    for k in range(0, len(live), 2):
        live[k] = allocate(dev, _LIVE[-1 - k] // 2 + 1)
    keep_their_contents(dev, live)


#: What holds of a tensor of 0 x 3 elements.
_OF_NO_ELEMENTS: dict[str, Callable[[torch.Tensor], bool]] = {
    "shape": lambda x: (*x.shape, x.numel(), x.untyped_storage().nbytes()) == (0, 3, 0, 0),
    "copy": lambda x: x.cpu().shape == (0, 3) and torch.empty(0).to(x.device).numel() == 0,
    "operator": lambda x: (x + 1).shape == (0, 3) and x.sum().item() == 0.0,
    "resize": lambda x: torch.equal(x.resize_(2, 3).fill_(4).cpu(), torch.full((2, 3), 4.0)),
}


@check("memory/zero_size", "MEM-004", cases=_OF_NO_ELEMENTS, needs=("accelerator",))
def empty_tensors_are_tensors(dev: Device, case: str) -> None:
    """A tensor without elements can be made, copied, computed with and grown."""
    x = torch.empty(0, 3, device=dev.device())
    assert _OF_NO_ELEMENTS[case](x), x


@check("memory/zero_size:statistics", "MEM-004", needs=("accelerator",))
def empty_tensors_need_no_memory(dev: Device) -> None:
    """Tensors without elements do not count as allocated memory."""
    dev.require("memory_stats")
    before = allocated_bytes()
    kept = [torch.empty(0, device=dev.device(0)) for _ in range(10)]
    assert allocated_bytes() == before, f"{len(kept)} empty tensors count as allocated memory"


_KEEPERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "slice": lambda x: x[100:200],
    "reshape": lambda x: x.view(-1, 2),
    "storage": lambda x: x.untyped_storage(),
    "detach": lambda x: x.detach(),
}


@check("memory/kept_alive", "MEM-005", cases=_KEEPERS, needs=("memory_stats",))
def a_view_keeps_the_block(dev: Device, case: str) -> None:
    """A block lives as long as anything refers to it, and is returned with the last reference."""
    with on_first_device(dev):
        before = allocated_bytes()
        x = allocate(dev, MIB)
        x.fill_(9)
        keeper = _KEEPERS[case](x)
        del x
        assert allocated_bytes() - before >= MIB, "the block was freed under a live view"
        if isinstance(keeper, torch.Tensor):
            other = allocate(dev, MIB).fill_(1)
            dev.assert_equal(keeper, torch.full_like(keeper, 9, device="cpu"))
            del other
        del keeper
        assert allocated_bytes() == before, "the block was not returned"


@check("memory/freed_elsewhere", "MEM-005", needs=("memory_stats", "multi_device"))
def blocks_return_whatever_device_is_current(dev: Device) -> None:
    """A block freed while another device is current is returned to its own."""
    with on_first_device(dev):
        before = allocated_bytes()
        x = allocate(dev, MIB)
        with torch.accelerator.device_index(1):
            del x
        assert allocated_bytes() == before, "the block was not returned"


_TOUCHES: dict[str, Callable[[int], object]] = {
    "read": lambda address: ctypes.string_at(address, 1),
    "write": lambda address: ctypes.memset(address, 0, 1),
}


@check("memory/protected", "MEM-035", cases=_TOUCHES, needs=("memory_protected", "fork"))
def host_access_to_device_memory_faults(dev: Device, case: str) -> None:
    """A host that dereferences device memory dies by a signal instead of reading something."""
    x = torch.ones(64, device=dev.device())
    dev.synchronize()
    address = x.data_ptr()

    def touch() -> str:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _TOUCHES[case](address)
        return "survived"

    status, value = dev.fork(touch)
    assert value != "survived", "device memory is plain host memory"
    fatal = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT}
    assert status in fatal, f"exit status {status}: {value}"
    dev.assert_equal(x, torch.ones(64))
