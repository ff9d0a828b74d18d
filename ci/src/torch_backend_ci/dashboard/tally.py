# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of a run that several pages show."""

from __future__ import annotations

from torch_backend_ci.dashboard.model import Run


def verified(run: Run) -> int:
    """How many MUST requirements are verified, over all levels."""
    return sum(step.verified for step in run.steps)


def must(run: Run) -> int:
    """How many MUST requirements the levels have."""
    return sum(step.must for step in run.steps)
