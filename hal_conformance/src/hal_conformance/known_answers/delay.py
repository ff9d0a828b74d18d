# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of "delay": nothing is computed, and the launch lasts."""

from __future__ import annotations

from collections.abc import Iterator

from hal_conformance.answers import Case


def cases() -> Iterator[Case]:
    for milliseconds in (0, 1, 30):
        args = {"ns": milliseconds * 1_000_000}
        yield Case("delay", f"{milliseconds} ms", args, lasts=milliseconds * 1e-3)
