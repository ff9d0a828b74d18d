# SPDX-License-Identifier: BSD-3-Clause
"""Headers and the language they ask for, compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding


def findings(
    before: Mapping[str, list[Declaration]], after: Mapping[str, list[Declaration]]
) -> Iterator[Finding]:
    """Every difference between the headers of two snapshots, by name."""
    for name in before.keys() | after.keys():
        was, now = _only(before.get(name)), _only(after.get(name))
        if was is None:
            yield finding("header_added", None, now)
        elif now is None:
            yield finding("header_removed", was, None)
        elif was.kind == "language":
            yield from _language(was, now)
        else:
            yield from _header(was, now)


def _only(declarations: list[Declaration] | None) -> Declaration | None:
    return declarations[0] if declarations else None


def _language(was: Declaration, now: Declaration) -> Iterator[Finding]:
    was_minimum, now_minimum = int(was.facts["minimum"]), int(now.facts["minimum"])
    if was_minimum != now_minimum:
        rule = "language_raised" if now_minimum > was_minimum else "language_lowered"
        yield finding(rule, was, now, was_minimum=was_minimum, now_minimum=now_minimum)


def _header(was: Declaration, now: Declaration) -> Iterator[Finding]:
    if was.facts.get("unread") or now.facts.get("unread"):
        return
    if was.facts.get("alone") and not now.facts.get("alone"):
        error = str(now.facts.get("error", "the compiler does not say why")).rstrip(".")
        yield finding("header_not_alone", was, now, error=error)
    elif now.facts.get("alone") and not was.facts.get("alone"):
        yield finding("header_alone", was, now)
