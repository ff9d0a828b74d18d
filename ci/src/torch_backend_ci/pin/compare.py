# SPDX-License-Identifier: BSD-3-Clause
"""What a moved pin changes for backends."""

from __future__ import annotations

from pathlib import Path

from torch_backend_ci.pin import offers
from torch_backend_ci.pin.model import Pin
from torch_backend_ci.surface.report import Report


def compare(before: Pin, after: Pin, cache: Path) -> Report:
    """The torches of the two pins, which both have one, compared surface by surface."""
    from torch_backend_ci.surface.verbs.diff import report_of, snapshot_of

    snapshots = [
        snapshot_of(pin.torch.version, cache, offers.url_of(pin.index))
        for pin in (before, after)
        if pin.torch
    ]
    return report_of(*snapshots)
