# SPDX-License-Identifier: BSD-3-Clause
"""What results say in words, cut to fit on a page."""

from __future__ import annotations

from typing import NamedTuple


class Cut(NamedTuple):
    """The beginning of a text."""

    text: str
    left_out: int
    """How many characters were cut off."""


def cut(text: str | None, limit: int) -> Cut | None:
    """At most `limit` characters of a text; None where there is none."""
    return Cut(text[:limit], max(len(text) - limit, 0)) if text else None


def line(text: str | None, limit: int = 200) -> str:
    """The first line that is not empty."""
    return next((found[:limit] for found in (text or "").splitlines() if found.strip()), "")
