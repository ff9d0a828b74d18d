# SPDX-License-Identifier: BSD-3-Clause
"""A backend that counts fallbacks: the CPU in disguise."""

from __future__ import annotations

COUNTS: dict[str, int] = {}


def fall_back(name: str) -> None:
    """Count one operator."""
    COUNTS[name] = COUNTS.get(name, 0) + 1


def counts() -> dict[str, int]:
    """What the descriptor's `fallback_counts` names; those of before are there with zero."""
    return dict(COUNTS)


def reset() -> None:
    """What the descriptor's `fallback_reset` names."""
    for name in COUNTS:
        COUNTS[name] = 0
