# SPDX-License-Identifier: BSD-3-Clause
"""The end of the terminal output: outcomes per surface, and why what did not pass did not.

A run without failures fits on one screen; the reasons of checks that neither passed nor failed are
listed one by one on request only.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult


class Said(Protocol):
    """The fields that decide a cause."""

    @property
    def id(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def message(self) -> str | None: ...
    @property
    def mismatch(self) -> str | None: ...


T = TypeVar("T", bound=Said)

MAX_CAUSES = 20
MAX_KINDS = 10
MAX_NAMED = 3
WIDTH = 100

# What varies between failures of one cause, from what always does to what may be the cause itself:
# values; names of operators, dtypes and whatever else is quoted; all but the type of the exception.
_VARIABLE = (
    (
        (re.compile(r"0x[0-9a-fA-F]+"), "0x.."),
        (re.compile(r"\[[^\[\]]*\]|\([-\d., ]*\)"), "[..]"),
        # Digits inside a word, as in float32, are a part of its name.
        (re.compile(r"(?<![A-Za-z_0-9.])[-+]?\d+(\.\d+)?(e[-+]?\d+)?\b"), "N"),
    ),
    (
        (re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`"), "'..'"),
        (re.compile(r"\b\w+::\w+(\.\w+)*"), "..::.."),
        (re.compile(r"\b(torch\.)?(complex|b?float|u?int)\d+\b|\btorch\.bool\b"), "dtype"),
    ),
    ((re.compile(r"(?s)[:(;,].*| in .*"), ""),),
)
# How much of a result is wrong, where its values are.
_EXTENTS: dict[str, str] = {Mismatch.ALL_VALUES: "all", Mismatch.SOME_VALUES: "some"}


def table(results: Iterable[CheckResult]) -> list[str]:
    """The count of every outcome that occurs: a line for each surface where not every check passed,
    and the others together."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        counts[result.surface][result.outcome] += 1
    passed = {name: row for name, row in counts.items() if set(row) == {Outcome.PASS.value}}
    mixed = {name: row for name, row in counts.items() if name not in passed}
    lines = list(_rows(mixed)) if mixed else []
    if passed:
        title = f"all passed in the other {len(passed)}" if mixed else "all passed"
        text = ", ".join(f"{name} {passed[name].total()}" for name in sorted(passed))
        lines += textwrap.wrap(f"{title}: {text}", WIDTH, subsequent_indent="  ")
    return lines


def _rows(counts: dict[str, Counter[str]]) -> Iterator[str]:
    used = [o.value for o in Outcome if any(row[o.value] for row in counts.values())]
    widths = [max(len(name), 5) for name in used]
    yield f"{'surface':<15}" + "".join(f"  {n:>{w}}" for n, w in zip(used, widths, strict=True))
    for surface in sorted(counts):
        cells = (str(counts[surface][name] or "-") for name in used)
        yield f"{surface:<15}" + "".join(f"  {c:>{w}}" for c, w in zip(cells, widths, strict=True))


def cause(said: Said, coarseness: int = 0) -> str:
    """What is left of a message without what varies between failures of one cause."""
    lines = [line for line in (said.message or "").splitlines() if line.strip()]
    text = lines[0] if lines else ""
    for patterns in _VARIABLE[: coarseness + 1]:
        for pattern, replacement in patterns:
            text = pattern.sub(replacement, text)
    return f"{said.outcome}: {text[:160]}"


def _wrong_values(said: Said, coarseness: int) -> str | None:
    """The cause of a failure that is about values: the operator and how much of a result is wrong.

    The numbers of such a message are different each time, and say nothing about the cause.
    """
    extent = _EXTENTS.get(said.mismatch) if said.mismatch else None
    if extent is None:
        return None
    topic, _, rest = said.id.partition(":")
    surface = topic.partition("/")[0]
    operator = f" of {rest.partition(':')[0]}" if surface == "opinfo" and rest else ""
    places = (f" in {topic}{operator}", f" in {surface}", "")
    return f"{said.outcome}: wrong values in {extent} elements{places[coarseness]}"


def grouped(said: Iterable[T], room: int = MAX_CAUSES) -> list[tuple[str, list[T]]]:
    """Causes and what has them, most frequent first.

    Where there are more causes than room, half of it goes to the most frequent ones, and the rest
    is grouped again by less of the message.
    """
    ordered = sorted(said, key=lambda one: one.id)
    ranked: list[tuple[str, list[T]]] = []
    for coarseness in range(len(_VARIABLE)):
        groups: dict[str, list[T]] = defaultdict(list)
        for one in ordered:
            text = _wrong_values(one, coarseness) or cause(one, coarseness)
            groups[text].append(one)
        found = sorted(groups.items(), key=_rank)
        left = room - len(ranked)
        if len(found) <= left or coarseness == len(_VARIABLE) - 1:
            return sorted(ranked + found, key=_rank)
        ranked += found[: left // 2]
        rest = {one.id for _, group in found[left // 2 :] for one in group}
        ordered = [one for one in ordered if one.id in rest]
    return ranked


def _rank(group: tuple[str, list[T]]) -> tuple[int, str]:
    return -len(group[1]), group[0]


def causes(results: Iterable[CheckResult]) -> Iterator[str]:
    """Lines that rank the causes of failure, each with one example and how to repeat it."""
    ranked = grouped(result for result in results if result.unexpected)
    for text, group in ranked[:MAX_CAUSES]:
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield f"{len(group):>5}  {text}"
        yield f"       {group[0].id}{others}"
        if _wrong_values(group[0], 0):
            yield f"         {(group[0].message or '').splitlines()[0]}"
        yield from (f"         {line}" for line in (group[0].repro or "").splitlines())
    if len(ranked) > MAX_CAUSES:
        yield f"       ... {len(ranked) - MAX_CAUSES} more causes in the report"


def ran_once(results: Iterable[CheckResult]) -> Iterator[str]:
    """A line that tells how many unexpected results were not run again, if any."""
    once = sum(1 for result in results if result.unexpected and len(result.attempts) == 1)
    if once:
        yield f"       {once} of these ran once only, the others twice (see --rerun-limit)"


def excuses(results: Iterable[CheckResult]) -> Iterator[str]:
    """A line for each kind of reason for which checks neither passed nor failed, with their number.

    The kind is the outcome and the heading of the reason.
    """
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for result in _excused(results):
        heading = result.reason.heading if result.reason else ""
        groups[f"{result.outcome}: {heading}"][result.text] += 1
    ranked = sorted(groups.items(), key=lambda group: (-group[1].total(), group[0]))
    for kind, reasons in ranked[:MAX_KINDS]:
        variants = f" ({len(reasons)} variants)" if len(reasons) > 1 else ""
        text = textwrap.shorten(kind, WIDTH - 7 - len(variants), placeholder=" ...")
        yield f"{reasons.total():>5}  {text}{variants}"
    if len(ranked) > MAX_KINDS:
        rest = sum(reasons.total() for _, reasons in ranked[MAX_KINDS:])
        yield f"{rest:>5}  for {len(ranked) - MAX_KINDS} more kinds of reasons"


def reasons(results: Iterable[CheckResult]) -> Iterator[str]:
    """Lines that say of every check that neither passed nor failed why, grouped by reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for result in _excused(results):
        groups[f"{result.outcome}: {result.text}"].append(result.id)
    for text, ids in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        others = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
        yield f"{len(ids):>5}  {text}"
        yield f"       {', '.join(sorted(ids)[:MAX_NAMED])}{others}"


def _excused(results: Iterable[CheckResult]) -> Iterator[CheckResult]:
    for result in results:
        if not result.unexpected and result.outcome is not Outcome.PASS:
            yield result


def fallbacks(results: Iterable[CheckResult]) -> list[str]:
    """A line for each operator that ran by CPU fallback: in how many checks, and one of them."""
    users: dict[str, list[str]] = defaultdict(list)
    for result in results:
        for name in result.fallbacks:
            users[name].append(result.id)
    ranked = sorted(users.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [f"{len(ids):>5}  {name}  {min(ids)}" for name, ids in ranked]
