# SPDX-License-Identifier: BSD-3-Clause
"""Where the report of a run goes, unless --report says so.

A run of a part never replaces the report of a whole run, which takes long to get: each tier has a
file of its own, and all other parts share one.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from torch_conformance.spec.catalogue import PR_TIER
from torch_conformance.spec.ids import PR

DIRECTORY = Path("build") / "conformance"
PARTIAL = "partial"


def default(
    backend: str,
    tier: str | None,
    differs_by: Collection[str] | None,
    shard: tuple[int, int] | None,
) -> Path:
    """The file, by what made the selection differ from the standard one; None: not known yet."""
    kind = _kind(tier, differs_by)
    part = "-shard-{}-of-{}".format(*shard) if shard else ""
    return DIRECTORY / f"{backend}{f'.{kind}' if kind else ''}{part}.json"


def _kind(tier: str | None, differs_by: Collection[str] | None) -> str:
    if differs_by is None:
        return PARTIAL
    of_the_tier = {f"--tier={tier}"} | ({f"--dtypes={PR}"} if tier == PR_TIER else set())
    if set(differs_by) - of_the_tier:
        return PARTIAL
    return tier or ""
