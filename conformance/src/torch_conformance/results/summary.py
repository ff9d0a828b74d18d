# SPDX-License-Identifier: BSD-3-Clause
"""The end of the terminal output: outcomes per surface, and why what did not pass did not.

A run without failures fits on one screen; the reasons of checks that neither passed nor failed are
listed one by one on request only.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from torch_conformance.results.causes import MAX_CAUSES, grouped, is_about_values
from torch_conformance.spec.chapters import chapters
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

# On the machine for which the budgets of chapters hold: it has two cores.
WORKERS = 3
MAX_KINDS = 10
MAX_NAMED = 3
WIDTH = 100


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


def causes(results: Iterable[CheckResult]) -> Iterator[str]:
    """Lines that rank the causes of failure, each with one example and how to repeat it."""
    ranked = grouped(result for result in results if result.unexpected)
    for text, group in ranked[:MAX_CAUSES]:
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield f"{len(group):>5}  {text}"
        yield f"       {group[0].id}{others}"
        if is_about_values(group[0]):
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


def over_budget(results: Iterable[CheckResult]) -> list[str]:
    """A line that names the chapters that took more than their time budget, if any did.

    It is information: a busy machine and a slow device take longer, too.
    """
    taken: dict[str, float] = defaultdict(float)
    for result in results:
        taken[result.surface] += result.duration_s / WORKERS
    over = [
        f"{name} {taken[name]:.0f} s of {chapter.budget_s}"
        for name, chapter in chapters().items()
        if taken[name] > chapter.budget_s
    ]
    return textwrap.wrap(f"over their time budget: {', '.join(over)}", WIDTH) if over else []


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
