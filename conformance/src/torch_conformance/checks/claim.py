# SPDX-License-Identifier: BSD-3-Clause
"""The descriptor tells the truth: what it declares is probed as if it had left it open.

Who claims nothing claims nothing wrong: the checks pass then, and the report has what was probed.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.running.capability_probes import OF_THE_DESCRIPTOR, PROBES


def _there(dev: Device, capability: str) -> bool:
    try:
        return PROBES[capability](dev)
    except Exception:
        return False


def _claimed(dev: Device, value: bool) -> Iterable[str]:
    """The capabilities that the descriptor declares, or denies, and that can be probed."""
    claims = dev.descriptor.capabilities.items()
    found = [name for name, said in claims if said is value and name in PROBES]
    return [name for name in found if name not in OF_THE_DESCRIPTOR]


@check("claim/declared", "CLAIM-001")
def declared_capabilities_are_there(dev: Device) -> None:
    """The device has what the descriptor declares."""
    absent = [name for name in _claimed(dev, True) if not _there(dev, name)]
    assert not absent, f"declared, but the device does not have it: {', '.join(absent)}"


@check("claim/denied", "CLAIM-002")
def denied_capabilities_are_absent(dev: Device) -> None:
    """The device does not have what the descriptor denies."""
    present = [name for name in _claimed(dev, False) if _there(dev, name)]
    assert not present, f"denied, but the device has it: {', '.join(present)}"


@check("claim/unsupported_dtypes", "CLAIM-003")
def unsupported_dtypes_are_refused(dev: Device) -> None:
    """No data type that is called unsupported survives the way to the device and back."""
    names = dev.descriptor.dtypes.unsupported
    working = [name for name in names if _works(dev, getattr(torch, name))]
    assert not working, f"called unsupported, but the device has it: {', '.join(working)}"


def _works(dev: Device, dtype: torch.dtype) -> bool:
    try:
        moved = torch.ones(2, dtype=dtype).to(dev.device())
        return torch.cat([moved, moved]).cpu().dtype == dtype
    except Exception:
        return False
