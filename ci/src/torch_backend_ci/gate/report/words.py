# SPDX-License-Identifier: BSD-3-Clause
"""The sentences that all forms of the verdict share. Plain text, nothing in it is escaped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from torch_backend_ci.gate.verdict import Cause, Check, Class, Lane, Means, Outcome, Verdict
from torch_backend_ci.github.markdown import shorten

LONGEST_REASON = 200  # bytes, in the headline

#: A class of checks: of one check, and of several.
TITLES = {
    Class.MISSING: ("missing check", "missing checks"),
    Class.NEW_FAILURE: ("new failure", "new failures"),
    Class.WITHDRAWN: ("no longer supported", "no longer supported"),
    Class.UNEXPECTED_PASS: ("unexpected pass", "unexpected passes"),
    Class.TO_FALLBACK: ("newly on the CPU", "newly on the CPU"),
    Class.FLAKY: ("flaky", "flaky"),
    Class.EXCUSED: ("newly excused", "newly excused"),
    Class.BLOCKED_UPSTREAM: ("blocked upstream", "blocked upstream"),
    Class.BROKEN_TRUNK: ("already bad", "already bad"),
    Class.FIXED: ("fixed", "fixed"),
    Class.NEW: ("new check", "new checks"),
}


class Told(NamedTuple):
    """One check that ended alike in some lanes."""

    check: Check  # in the first of them
    lanes: tuple[str, ...]


def counted(kind: Class, count: int) -> str:
    """ "2 new failures"."""
    return f"{count} {TITLES[kind][count != 1]}"


def changes(lane: Lane) -> str:
    """What changed in a configuration, by class: "1 new failure, 2 fixed"; empty if nothing did."""
    kinds = (kind for kind in TITLES if kind.value in lane.classes)
    return ", ".join(counted(kind, lane.classes[kind.value]) for kind in kinds)


def headline(verdict: Verdict) -> str:
    """The verdict in a sentence."""
    if verdict.outcome is Outcome.INFRASTRUCTURE:
        return f"No usable result{_why(verdict)}."
    if verdict.outcome is Outcome.REGRESSION:
        checks = _deciding(verdict, Means.REGRESSION)
        kinds = sorted({check.kind for check in checks}, key=list(Class).index)
        said = [counted(kind, _distinct(c for c in checks if c.kind is kind)) for kind in kinds]
        lanes = list(dict.fromkeys(check.lane for check in checks))
        return f"{', '.join(said) or 'Regressions'}{of(lanes)}."
    lanes = [lane.name for lane in verdict.lanes if lane.required]
    return f"Nothing regressed{of(lanes)}."


def told(checks: Iterable[Check]) -> Iterator[Told]:
    """The checks, those of several lanes that ended alike as one, in the order of the first."""
    groups: defaultdict[tuple[object, ...], list[Check]] = defaultdict(list)
    for check in checks:
        groups[_alike(check)].append(check)
    for same in groups.values():
        yield Told(same[0], tuple(check.lane for check in same))


def is_decided_by(verdict: Verdict, one: Told) -> bool:
    """Whether its configuration decides."""
    return any(lane.required and lane.name in one.lanes for lane in verdict.lanes)


def change(check: Check) -> str:
    """ "pass -> fail"."""
    after = "fallback" if check.kind is Class.TO_FALLBACK else check.after
    return f"{check.before or 'new'} -> {after or 'gone'}"


def causes(verdict: Verdict, check: Check) -> Iterator[tuple[str, Cause]]:
    """The findings that a check is joined with, each with how sure that is."""
    known = {finding.identity: finding for finding in verdict.findings}
    for since in check.since:
        yield ("since" if since.by == "name" else "perhaps since"), known[since.finding]


def about(cause: Cause) -> str:
    """What happened to a declaration, less its name in front."""
    for name in (f"{cause.name}: ", f"{cause.name} "):
        if cause.message.startswith(name):
            return cause.message.removeprefix(name)
    return cause.message


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def of(lanes: list[str]) -> str:
    """ " on a, b"; nothing for no lane."""
    return f" on {', '.join(lanes)}" if lanes else ""


def _why(verdict: Verdict) -> str:
    """ " on a, b: reason; on c: reason": the first reason of each configuration."""
    lanes: defaultdict[str, list[str]] = defaultdict(list)
    for lane in verdict.lanes:
        if lane.required and lane.outcome is Outcome.INFRASTRUCTURE:
            lanes[_reason(lane.problems)].append(lane.name)
    said = [f"{of(names)}: {reason}" for reason, names in lanes.items()]
    if verdict.problems:
        said.append(f": {_reason(verdict.problems)}")
    return ";".join(said)


def _reason(problems: Sequence[str]) -> str:
    reason = first_line(problems[0]).rstrip(".:") if problems else "a verdict without a reason"
    return shorten(reason, LONGEST_REASON)


def _deciding(verdict: Verdict, means: Means) -> list[Check]:
    required = {lane.name for lane in verdict.lanes if lane.required}
    return [check for check in verdict.of(means) if check.lane in required]


def _distinct(checks: Iterable[Check]) -> int:
    return len({check.id for check in checks})


def _alike(check: Check) -> tuple[object, ...]:
    return check.id, check.kind, check.before, check.after, first_line(check.message)
