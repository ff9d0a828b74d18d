# SPDX-License-Identifier: BSD-3-Clause
"""What chapters share: work that is repeated leaves no threads and no file descriptors."""

from __future__ import annotations

from collections.abc import Callable

from torch_conformance.authoring.api import footprint


def assert_nothing_left(
    batch: Callable[[int], object], warm: int, repeated: int, slack: int
) -> None:
    """`batch` does the work so often: first until pools are filled, then so that leaks are seen."""
    batch(warm)
    before = footprint()
    batch(repeated)
    after = footprint()
    assert after.threads <= before.threads + slack, f"threads: {before.threads} -> {after.threads}"
    assert after.descriptors <= before.descriptors + slack, (
        f"file descriptors: {before.descriptors} -> {after.descriptors}"
    )
