# SPDX-License-Identifier: BSD-3-Clause
"""Checks that depend on what ran before them, and on the schedule."""

from __future__ import annotations

import os

import torch

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device

SCHEDULE = "RESTLESS_SCHEDULE"


@check("restless/order:leaves", "RESTLESS-001")
def leaves_a_trace(dev: Device) -> None:
    """Leaves a trace in the process."""
    torch._restless_trace = True  # type: ignore[attr-defined]  # added here


@check("restless/order:minds", "RESTLESS-001")
def depends_on_what_ran_before(dev: Device) -> None:
    """Fails in a process with a trace."""
    assert not hasattr(torch, "_restless_trace"), "somebody was here before"


@check("restless/schedule", "RESTLESS-001")
def depends_on_the_schedule(dev: Device) -> None:
    """Fails under every third schedule."""
    if int(os.environ.get(SCHEDULE, "1")) % 3 == 0:
        raise AssertionError(f"schedule {os.environ[SCHEDULE]}")


@check("restless/adverse", "RESTLESS-001")
def fails_under_every_adversarial_schedule(dev: Device) -> None:
    """Passes only where there is no adversary."""
    assert SCHEDULE not in os.environ


@check("restless/calm", "RESTLESS-001", cases=tuple(f"n{i}" for i in range(4)))
def passes(dev: Device, case: str) -> None:
    """Passes."""
