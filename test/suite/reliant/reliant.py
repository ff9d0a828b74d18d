# SPDX-License-Identifier: BSD-3-Clause
"""Checks that pass while operators fall back, or none."""

from __future__ import annotations

import counting_device

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


@check("reliant/native", "RELY-001")
def runs_on_the_device(dev: Device) -> None:
    """Uses no operator that falls back."""


@check("reliant/fallback", "RELY-001")
def falls_back(dev: Device) -> None:
    """Uses two operators that fall back."""
    counting_device.fall_back("aten::sinh")
    counting_device.fall_back("aten::cosh")


@check("reliant/forgets", "RELY-001")
def falls_back_and_resets_the_counter(dev: Device) -> None:
    """Sets the counts to zero after an operator fell back."""
    counting_device.fall_back("aten::sinh")
    dev.reset_fallback_counts()


@check("reliant/wrong", "RELY-001")
def falls_back_and_fails(dev: Device) -> None:
    """Fails beside an operator that falls back."""
    counting_device.fall_back("aten::sinh")
    raise AssertionError("wrong in another way")
