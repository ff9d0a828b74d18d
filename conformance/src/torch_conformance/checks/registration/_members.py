# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: how members of the module are called and judged."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from torch_conformance.authoring.api import Device
from torch_conformance.authoring.refusal import misses_attribute

#: (call it, judge what came back)
Member = tuple[Callable[[ModuleType], Any], Callable[[Any], bool]]


def is_index(value: Any) -> bool:
    """Whether it is a whole number that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def none(value: Any) -> bool:
    """Whether it is None."""
    return value is None


def verify_member(dev: Device, members: dict[str, Member], case: str) -> None:
    """Call one member of the module."""
    call, judge = members[case]
    torch.empty(1, device=dev.device())  # the contract is that of an initialised device
    try:
        value = call(dev.bare_module)
    except (AttributeError, NotImplementedError) as error:
        if isinstance(error, AttributeError) and not misses_attribute(error, __file__):
            raise
        raise AssertionError(f"torch.{dev.type}: {error}") from error
    assert judge(value), f"torch.{dev.type}: {case} returned {value!r}"
