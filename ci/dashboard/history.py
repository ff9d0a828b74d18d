# SPDX-License-Identifier: BSD-3-Clause
"""What became of a check from one run to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from conformance.outcome import Outcome, is_bad
from conformance.results.comparison import SILENT, ranks


class Difference(NamedTuple):
    """The last fields of a `Change`."""

    before: str
    after: str
    kind: str
    detail: str


def change(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Difference | None:
    """By the rules of conformance.results.comparison; None if nothing changed that matters."""
    if new is None:
        return Difference(old["outcome"], "gone", "other", "") if old else None
    if old is None:
        kind = "regression" if is_bad(new) else "other"
        return Difference("new", new["outcome"], kind, _detail(new))
    if verdict := _kind(old, new):
        return Difference(old["outcome"], new["outcome"], verdict, _detail(new))
    return _evidence(old, new)


def _kind(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    before, after = old["outcome"], new["outcome"]
    if before == after:  # flaky before and after, and not listed any more
        return "regression" if is_bad(new) and not is_bad(old) else None
    if is_bad(old) and Outcome(after) in SILENT:
        return "other"
    step = ranks()[after] - ranks()[before]
    return "regression" if step < 0 else "improvement" if step > 0 else "other"


def _evidence(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference | None:
    before, after = old.get("evidence"), new.get("evidence")
    if before is None or after is None or before == after or "fallback" not in (before, after):
        return None
    if after == "fallback":
        return Difference(before, after, "regression", ", ".join(new.get("fallbacks") or ())[:200])
    return Difference(before, after, "improvement", "")


def _detail(new: Mapping[str, Any]) -> str:
    lines = (new.get("message") or new.get("reason") or "").splitlines()
    return lines[0][:200] if lines else ""
