# SPDX-License-Identifier: BSD-3-Clause
"""Autocast and bfloat16 of the module `torch.<type>`."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.registration._members import Member, verify_member

_MIXED_PRECISION: dict[str, Member] = {
    "get_amp_supported_dtype": (
        lambda m: m.get_amp_supported_dtype(),
        lambda v: len(v) >= 1 and all(isinstance(d, torch.dtype) for d in v),
    ),
}


@check(
    "registration/mixed_precision",
    "REG-018",
    cases=_MIXED_PRECISION,
    needs=("autocast", "privateuse1"),
)
def module_names_the_dtypes_of_autocast(dev: Device, case: str) -> None:
    """torch.<type> lists the data types that autocast may have."""
    verify_member(dev, _MIXED_PRECISION, case)


def _autocast_dtype(dev: Device) -> torch.dtype:
    """The first data type that the module lists for autocast, which has to be available."""
    assert torch.amp.is_autocast_available(dev.type) is True
    dtype: torch.dtype = dev.bare_module.get_amp_supported_dtype()[0]
    return dtype


@check("registration/mixed_precision:available", "REG-018", needs=("autocast", "privateuse1"))
def autocast_is_available(dev: Device) -> None:
    """Autocast is available for the device type and has a default data type."""
    _autocast_dtype(dev)
    assert isinstance(torch.get_autocast_dtype(dev.type), torch.dtype)


@check("registration/mixed_precision:context", "REG-018", needs=("autocast", "privateuse1"))
def autocast_can_be_entered(dev: Device) -> None:
    """Inside autocast it is enabled with its data type; before and after it is not."""
    dtype = _autocast_dtype(dev)
    assert not torch.is_autocast_enabled(dev.type)
    with torch.autocast(dev.type, dtype=dtype):
        assert torch.is_autocast_enabled(dev.type)
        assert torch.get_autocast_dtype(dev.type) is dtype
    assert not torch.is_autocast_enabled(dev.type)


@check("registration/mixed_precision:operator", "REG-018", needs=("autocast", "privateuse1"))
def operators_run_under_autocast(dev: Device) -> None:
    """An operator that autocast does not change gives its result under autocast."""
    x = torch.ones(4, device=dev.device())
    with torch.autocast(dev.type, dtype=_autocast_dtype(dev)):
        y = x.clone()
    dev.assert_equal(y, torch.ones(4))


@check("registration/mixed_precision:nested_off", "REG-018", needs=("autocast", "privateuse1"))
def autocast_can_be_switched_off_inside(dev: Device) -> None:
    """autocast(enabled=False) inside autocast switches it off."""
    dtype = _autocast_dtype(dev)
    with torch.autocast(dev.type, dtype=dtype), torch.autocast(dev.type, enabled=False):
        assert not torch.is_autocast_enabled(dev.type)


@check("registration/is_bf16_supported", "REG-019", needs=("accelerator",))
def bf16_answer_is_true_to_the_device(dev: Device) -> None:
    """is_bf16_supported() answers with a bool that agrees with what the device accepts."""
    answer = dev.bare_module.is_bf16_supported()
    assert isinstance(answer, bool)
    if answer:
        x = torch.ones(2).to(dev.device(), torch.bfloat16)
        dev.assert_equal(x, torch.ones(2, dtype=torch.bfloat16))
