# SPDX-License-Identifier: BSD-3-Clause
"""The descriptor tells the truth about data types; smoke asks the same about capabilities.

Who claims nothing claims nothing wrong: the check passes then.
"""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check


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
