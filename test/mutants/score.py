# SPDX-License-Identifier: BSD-3-Clause
"""The score of a sample: killed mutants among those that are defects, with its interval."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import sqrt

from mutants.rules import Mutant
from mutants.sample import CALLED, DRIVERS, chapter_of, folder_of, group_of, owners_of
from mutants.verdicts import LOADING, Verdict

from torch_conformance.results.comparison import FALLBACK

Z = 1.96  # a confidence of 95 %


def interval(killed: int, count: int) -> tuple[float, float]:
    """Wilson's score interval (Wilson 1927, doi:10.1080/01621459.1927.10502953) at 95 %."""
    if not count:
        return 0.0, 1.0
    share, square = killed / count, Z * Z
    middle = (share + square / (2 * count)) / (1 + square / count)
    spread = Z * sqrt(share * (1 - share) / count + square / (4 * count**2)) / (1 + square / count)
    return max(0.0, middle - spread), min(1.0, middle + spread)


def markdown(mutants: Mapping[int, Mutant], verdicts: Mapping[int, Verdict], seed: int) -> str:
    """The document of one run."""
    return "\n".join(_lines(mutants, verdicts, seed)) + "\n"


def _lines(
    mutants: Mapping[int, Mutant], verdicts: Mapping[int, Verdict], seed: int
) -> Iterator[str]:
    judged = [(mutants[n], one) for n, one in sorted(verdicts.items()) if not one.broken]
    yield f"# Mutants: {len(judged)} of seed {seed}"
    yield ""
    yield "A mutant is killed if a check of the suite fails on it. The interval is Wilson's, 95 %."
    yield "The suite of drivers (hal_conformance) is asked about those of the driver that survive."
    yield "Equivalent mutants are left out: they compile to the same code, or a person said why."
    yield ""
    yield from _table("Group", judged, lambda mutant: group_of(mutant.file))
    yield from _table("Folder", judged, lambda mutant: folder_of(mutant.file))
    yield from _table("Rule", judged, lambda mutant: mutant.rule)
    yield from _random_calls(judged)
    yield from _chapters(judged)
    alive = [(m, v) for m, v in judged if v.survived]
    yield f"## Survivors: {len(alive)}"
    yield ""
    for mutant, one in alive:
        said = "no check reaches it" if not one.reached else f"{one.ran} checks ran"
        if one.skipped:
            said += f", {one.skipped} that reach it were left out"
        if one.driver_tests:
            said += f", {one.driver_tests} tests of drivers ran"
        if one.differs:
            said += f", another result of {one.differs}"
        elif one.calls:
            said += f", {one.calls} random calls give the same results"
        yield f"- {one.number}: {mutant} ({said})"
    broken = [one for one in verdicts.values() if one.broken]
    yield from (f"- no trial of {mutants[one.number]}: {one.broken}" for one in broken)


def _table(
    title: str, judged: Iterable[tuple[Mutant, Verdict]], key: Callable[[Mutant], str]
) -> Iterator[str]:
    groups: defaultdict[str, list[Verdict]] = defaultdict(list)
    for mutant, verdict in judged:
        groups[key(mutant)].append(verdict)
    yield f"| {title} | mutants | equivalent | killed | by the drivers' suite | score | interval |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for name, verdicts in sorted(groups.items()):
        killed = sum(one.killed for one in verdicts)
        below = sum(one.killed and chapter_of(one.by) == DRIVERS for one in verdicts)
        same = sum(bool(one.equivalent) and not one.killed for one in verdicts)
        count = len(verdicts) - same
        low, high = interval(killed, count)
        share = f"{killed / count:.0%}" if count else "-"
        yield (
            f"| {name} | {len(verdicts)} | {same} | {killed} | {below} | {share} "
            f"| {low:.0%} to {high:.0%} |"
        )
    yield ""


def _random_calls(judged: Iterable[tuple[Mutant, Verdict]]) -> Iterator[str]:
    """What the score is if survivors that random calls do not show are no defects."""
    verdicts = [one for mutant, one in judged if group_of(mutant.file) == CALLED]
    compared = [one for one in verdicts if one.survived and one.calls]
    if not compared:
        return
    same = sum(not one.differs for one in compared)
    killed = sum(one.killed for one in verdicts)
    count = killed + sum(one.survived for one in verdicts) - same
    low, high = interval(killed, count)
    share = f"{killed / count:.0%}" if count else "-"
    yield (
        f"Random calls gave the same results with {same} of {len(compared)} survivors of the group "
        f"{CALLED} as without them. If these are not defects, its score is {share} ({low:.0%} to "
        f"{high:.0%}); the tables count them as defects."
    )
    yield ""


def _chapters(judged: Iterable[tuple[Mutant, Verdict]]) -> Iterator[str]:
    killed = [(mutant, one) for mutant, one in judged if one.killed]
    kills = Counter(chapter_of(one.by) for _, one in killed)
    checked = [(mutant, one) for mutant, one in killed if one.by != LOADING]
    own = sum(chapter_of(one.by) in (DRIVERS, *owners_of(mutant.file)) for mutant, one in checked)
    share = f" ({own / len(checked):.0%})" if checked else ""
    elsewhere = sum(one.outcome == FALLBACK for _, one in killed)
    yield (
        f"In {elsewhere} of the kills the check passes, but by CPU fallback, where it did not "
        "before: `python -m torch_conformance compare` reports that as a regression."
    )
    yield (
        f"A chapter that owns the changed source (owners.yaml) made {own} of the {len(checked)} "
        f"kills by a check{share}; with the others the backend does not load."
    )
    yield ""
    yield "| Chapter | kills |"
    yield "| --- | ---: |"
    yield from (f"| {name} | {count} |" for name, count in kills.most_common())
    yield ""
