# SPDX-License-Identifier: BSD-3-Clause
"""Checks that end differently when they run again; they remember in files that they ran before."""

from __future__ import annotations

import os
from pathlib import Path

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


def times(name: str) -> int:
    """How often this has been called for a name before; the file gets the number of the process."""
    file = Path(os.environ["PLANTED_MARKER"] + f".{name}")
    pids = file.read_text().split() if file.exists() else []
    file.write_text(" ".join([*pids, str(os.getpid())]))
    return len(pids)


@check("moody/passes_later", "MOODY-001")
def passes_later(dev: Device) -> None:
    """Fails the first time only."""
    if not times("passes_later"):
        raise AssertionError("not yet")


@check("moody/dies_later", "MOODY-001")
def dies_later(dev: Device) -> None:
    """Fails the first time, then ends the process."""
    if not times("dies_later"):
        raise AssertionError("not yet")
    os._exit(3)


@check("moody/dies_first", "MOODY-001")
def dies_first(dev: Device) -> None:
    """Ends the process the first time only."""
    if not times("dies_first"):
        os.abort()


@check("moody/always_fails", "MOODY-001")
def always_fails(dev: Device) -> None:
    """Fails."""
    raise AssertionError(f"for the {times('always_fails')}. time")


@check("moody/passes", "MOODY-001", cases=tuple(f"n{i}" for i in range(30)))
def passes(dev: Device, case: str) -> None:
    """Passes; if it ran twice, its file would tell."""
    times(case)
