# SPDX-License-Identifier: BSD-3-Clause
"""Ordinary host memory belongs to the caller again when a non_blocking copy of it returns."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, ramp

#: Elements in memory, the step from one to the next that is copied, and the data type it becomes.
_PAGEABLE: dict[str, tuple[int, int, torch.dtype]] = {
    "small": (777, 1, torch.int32),
    "large": (1024 * 1024, 1, torch.int32),
    "strided": (777, 3, torch.int32),
    "cast": (777, 1, torch.float32),
}


@check("copy/pageable_source", "COPY-015", cases=_PAGEABLE)
def a_pageable_source_may_be_changed_at_once(dev: Device, case: str) -> None:
    """After a non_blocking copy from ordinary host memory the source belongs to the caller."""
    count, step, dtype = _PAGEABLE[case]
    source = ramp((count,), torch.int32)[::step]
    expected = source.clone()
    target = torch.zeros(source.shape, dtype=dtype, device=dev.device())
    if dev.has("delay"):
        dev.delay(30)
    target.copy_(source, non_blocking=True)
    source.fill_(-99)
    dev.assert_equal(target, expected.to(dtype))


#: Elements of several pageable sources whose copies are pending together.
_IN_FLIGHT = {"small": 777, "large": 300_001}


@check("copy/pageable_in_flight", "COPY-015", cases=_IN_FLIGHT)
def several_pageable_copies_may_be_pending(dev: Device, case: str) -> None:
    """A pageable buffer, filled again for each of eight non_blocking copies, arrives right."""
    source = torch.zeros(_IN_FLIGHT[case])
    targets = [torch.zeros_like(source, device=dev.device()) for _ in range(8)]
    if dev.has("delay"):
        dev.delay(30)
    for value, target in enumerate(targets, start=1):
        source.fill_(value)
        target.copy_(source, non_blocking=True)
    source.fill_(-99)
    for value, target in enumerate(targets, start=1):
        dev.assert_equal(target, torch.full_like(source, value))


@check("copy/pageable_source_freed", "COPY-015")
def a_pageable_source_may_be_freed_at_once(dev: Device) -> None:
    """A temporary source may die, and its memory be reused, while the copy is pending."""
    expected = ramp((256 * 1024,), torch.int64)
    if dev.has("delay"):
        dev.delay(30)
    target = expected.clone().to(dev.device(), non_blocking=True)
    reused = [torch.full((256 * 1024,), -1, dtype=torch.int64) for _ in range(4)]
    dev.assert_equal(target, expected)
    assert len(reused) == 4
