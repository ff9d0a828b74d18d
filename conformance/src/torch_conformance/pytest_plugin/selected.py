# SPDX-License-Identifier: BSD-3-Clause
"""What a run of pytest selected, and by what that differs from the standard selection."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from torch_conformance.selecting.selection import Part, Selection, digest
from torch_conformance.spec.ids import PR

if TYPE_CHECKING:
    from torch_conformance.pytest_plugin.suite import Suite

PYTEST = "pytest (its arguments, -k, -m, --deselect, --ignore, --lf)"


def make(suite: Suite, ids: Collection[str], mine: Collection[str] | None = None) -> Selection:
    """The selection of a run of `suite` that ended up with `ids`, of which a shard has `mine`."""
    own = None if mine is None else Part(checks=len(mine), digest=digest(mine))
    differs_by = tuple(_differences(suite, ids))
    return Selection(checks=len(ids), digest=digest(ids), differs_by=differs_by, part=own)


def _differences(suite: Suite, ids: Collection[str]) -> Iterable[str]:
    if suite.tier:
        yield f"--tier={suite.tier}"
    yield from (f"--check={pattern}" for pattern in suite.patterns)
    if suite.dtypes:
        yield f"--dtypes={','.join(suite.dtypes)}"
    elif suite.breadth == PR:
        yield f"--dtypes={PR}"
    if suite.checks_dir:
        yield "--checks-dir"
    if suite.since:
        yield f"--since={suite.since}"
    asked_for = {c.id for c in suite.available if suite.asks_for(c)}
    narrowed_by_option = suite.tier or suite.patterns or suite.since
    if asked_for != set(ids) or (not narrowed_by_option and not suite.collected_every_file):
        yield PYTEST
