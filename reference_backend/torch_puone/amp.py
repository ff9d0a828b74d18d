# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision. Use `torch.autocast("puone")`; the rules are registered by the extension."""

from __future__ import annotations

from functools import partial

import torch

from ._registration import NAME

custom_fwd = partial(torch.amp.custom_fwd, device_type=NAME)
custom_fwd.__doc__ = "`torch.amp.custom_fwd` for this device type."

custom_bwd = partial(torch.amp.custom_bwd, device_type=NAME)
custom_bwd.__doc__ = "`torch.amp.custom_bwd` for this device type."


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that autocast may cast to on this device."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether kernels take bfloat16. They do: it is converted to float32 inside the kernel."""
    return including_emulation
