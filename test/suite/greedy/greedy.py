# SPDX-License-Identifier: BSD-3-Clause
"""Checks that take address space, and no memory."""

from __future__ import annotations

import mmap

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


@check("greedy/takes", "GREEDY-001", cases=("1g", "256g"))
def takes_address_space(dev: Device, case: str) -> None:
    """Reserves some, and gives it back."""
    # Nobody can write to it, so no memory is set aside for it.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    mmap.mmap(-1, int(case[:-1]) << 30, flags=flags, prot=mmap.PROT_READ).close()
