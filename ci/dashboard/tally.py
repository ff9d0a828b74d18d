# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of a run that several pages show."""

from __future__ import annotations

from ci.dashboard.model import Run
from torch_conformance.spec.outcome import BAD


def bad(run: Run) -> int:
    """How many checks had an outcome that is always bad; flaky ones may be expected."""
    return sum(run.totals.get(outcome.value, 0) for outcome in BAD)


def verified(run: Run) -> int:
    """How many MUST requirements are verified, over all levels."""
    return sum(step.verified for step in run.steps)


def must(run: Run) -> int:
    """How many MUST requirements the levels have."""
    return sum(step.must for step in run.steps)
