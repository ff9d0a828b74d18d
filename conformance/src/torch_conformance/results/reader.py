# SPDX-License-Identifier: BSD-3-Clause
"""The one way in for reports: whatever is read has the schema and does not contradict itself.

A report that is not what it says is refused as a whole, with every reason: a verdict, a comparison
or a level computed from it would be worth nothing.
"""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from torch_conformance.results import migration, version_1
from torch_conformance.results.report import Demand, Report, Run, totals
from torch_conformance.results.version_1 import CheckResult1, Report1
from torch_conformance.selecting import selection
from torch_conformance.selecting.selection import Selection
from torch_conformance.spec import strict
from torch_conformance.spec.catalogue import LEVELS, TIERS
from torch_conformance.spec.ids import ID, REQUIREMENT_ID
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult
from torch_conformance.spec.typed import problem

MAX_PROBLEMS = 20
# Values of --dtypes that contain the standard selection.
WIDE_ENOUGH = (("standard",), ("full",))

T = TypeVar("T", Report, Report1)


class ReportError(Exception):
    """A report that cannot be used; the text names the file and every reason."""

    def __init__(self, name: str, problems: list[str]) -> None:
        shown = [plain(problem)[:300] for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            shown.append(f"... and {len(problems) - MAX_PROBLEMS} more")
        super().__init__(f"{name} is not a valid report:\n  " + "\n  ".join(shown))
        self.problems = shown


@dataclass(frozen=True)
class Document:
    """A report that was read and found valid."""

    name: str
    report: Report
    sha256: str
    foreign: bool = False
    """Whether another runner made it, so that much of what a report says is unknown."""

    @property
    def run(self) -> Run:
        """What was run, where and how."""
        return self.report.run

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """The results."""
        return self.report.checks

    @property
    def complete(self) -> bool:
        """Whether every selected check was executed or decided."""
        return self.report.complete

    @property
    def shard(self) -> tuple[int, int] | None:
        """Which part of a run this is, or None for a whole one."""
        return self.report.run.shard

    @property
    def state(self) -> str:
        """`green`, or why it is not: `incomplete`, `nothing executed`, `red`."""
        return self.report.state


def load(file: Path) -> Document:
    """Read and verify a report file; raises ReportError."""
    try:
        data = strict.read(file)
    except strict.Malformed as error:
        raise ReportError(str(file), [str(error)]) from None
    return parse(data, str(file))


def parse(data: bytes, name: str) -> Document:
    """Verify a report; raises ReportError."""
    try:
        content = strict.loads(data)
    except strict.Malformed as error:
        raise ReportError(name, [str(error)]) from None
    return verified(content, name, hashlib.sha256(data).hexdigest())


def verified(content: Any, name: str, sha256: str) -> Document:
    """Verify what strict.loads made of a report with this digest; raises ReportError.

    A report of an earlier suite is read as one of today, in today's names.
    """
    content = migration.current(content)
    if isinstance(content, dict) and content.get("schema") == version_1.SCHEMA:
        report = version_1.migrated(_typed(content, name, Report1, CheckResult1))
    else:
        report = _typed(content, name, Report, CheckResult)
    problems = list(_contradictions(report))
    if problems:
        raise ReportError(name, problems)
    return Document(name, report, sha256)


def plain(text: str) -> str:
    """Text of unknown origin fit for a terminal: control characters are replaced."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def _typed(content: Any, name: str, kind: type[T], check: type[msgspec.Struct]) -> T:
    """Plain values as a report of this class; raises ReportError with what breaks its schema."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        problems = list(_violations(content, kind, check)) or [problem(content, kind, error)]
        raise ReportError(name, problems) from None


def _violations(content: Any, kind: type[T], check: type[msgspec.Struct]) -> Iterator[str]:
    """Report a fault in one of 20,000 checks with the id of that check, and so the next one."""
    if not isinstance(content, dict) or not isinstance(content.get("checks"), list):
        return
    head = {**content, "checks": []}
    try:
        msgspec.convert(head, kind)
    except msgspec.ValidationError as error:
        yield problem(head, kind, error)
    for index, record in enumerate(content["checks"]):
        try:
            msgspec.convert(record, check)
        except msgspec.ValidationError as error:
            id = record.get("id") if isinstance(record, dict) else None
            where = id if isinstance(id, str) else f"checks[{index}]"
            yield f"{where}: {problem(record, check, error)}"


def _contradictions(report: Report) -> Iterator[str]:
    """What the schema cannot say: sums, uniqueness, and statements that exclude each other."""
    yield from _counted(report)
    yield from _selected(report)
    yield from _merged(report)
    try:
        datetime.datetime.fromisoformat(report.run.started)
    except ValueError:
        yield f"run.started: {report.run.started!r} is not a point in time"
    requirements = report.requirements
    yield from (f"{id!r} is not a requirement" for id in requirements if not _is_requirement(id))
    for result in report.checks:
        yield from (f"{result.id}: {problem}" for problem in _of_result(result, requirements))


def _counted(report: Report) -> Iterator[str]:
    for outcome, count in totals(report.checks).items():
        said = report.totals.get(outcome, 0)
        if said != count:
            yield f"totals.{outcome}: says {said}, the checks have {count}"
    ids = Counter(result.id for result in report.checks)
    yield from (f"{id} has {count} records" for id, count in ids.items() if count > 1)


def _selected(report: Report) -> Iterator[str]:
    """Whether the results are of the checks selected, and the selection is what the options say."""
    run, chosen, options = report.run, report.run.selection, report.run.options
    if run.shard and run.shard[0] > run.shard[1]:
        yield f"run.options.shard: there is no shard {options.shard}"
        return
    if chosen is None:
        if report.complete:
            yield "complete, without saying what was selected"
        return
    yield from _parted(run, chosen)
    by_number = selection.part_size(chosen.checks, *(run.shard or (1, 1)))
    expected = chosen.part.checks if chosen.part else by_number
    if report.complete:
        yield from _completed(report, chosen, expected)
    elif len(report.checks) > expected:
        yield f"{len(report.checks)} records of {expected} selected checks"
    said = [f"--tier={options.tier}"] if options.tier is not None else []
    said += [f"--check={pattern}" for pattern in options.checks]
    if options.dtypes not in WIDE_ENOUGH:
        said.append(f"--dtypes={','.join(options.dtypes)}")
    left_out = (option for option in said if option not in chosen.differs_by)
    yield from (f"run.selection.differs_by: leaves out {option}" for option in left_out)


def _parted(run: Run, chosen: Selection) -> Iterator[str]:
    """Whether the fields of a part are those of a shard, and can be true."""
    own, by_time = chosen.part, run.options.durations
    if own is None:
        if run.shard and by_time:
            yield "run.selection: a shard cut by durations does not say which part it is"
    elif run.shard is None:
        yield "run.selection.part: said of a run that is no shard"
    elif own.checks > chosen.checks or (
        not by_time and own.checks != selection.part_size(chosen.checks, *run.shard)
    ):
        yield f"run.selection.part: {own.checks} of {chosen.checks} checks are no such part"


def _completed(report: Report, chosen: Selection, expected: int) -> Iterator[str]:
    run, results = report.run, report.checks
    digest = chosen.part.digest if chosen.part else chosen.digest
    # Shards of a suite that did not tell their part yet are known by their number of checks only.
    is_told = run.shard is None or chosen.part is not None
    if len(results) != expected:
        yield f"complete, with {len(results)} records of {expected} selected checks"
    elif is_told and selection.digest(result.id for result in results) != digest:
        yield "complete, but the records are not those of the selected checks"
    if run.cannot_load is not None:
        yield "complete, although the backend cannot be loaded"
    if any(result.outcome is Outcome.NOT_RUN for result in results):
        yield "complete, although checks were not run"


def _merged(report: Report) -> Iterator[str]:
    """Whether a report that was merged names all of its shards, and no result any other."""
    said = [entry.shard for entry in report.run.merged or ()]
    unknown = {result.shard for result in report.checks if (result.shard or 0) > len(said)}
    yield from (f"checks are said to be of shard {number}" for number in sorted(unknown, key=str))
    if report.run.merged is None:
        return
    if not said or said != [f"{index + 1}/{len(said)}" for index in range(len(said))]:
        yield f"merged from {' '.join(said) or 'nothing'}, which are not all shards of a run"
    if report.run.options.shard is not None:
        yield f"merged, and a shard: {report.run.options.shard}"


def _of_result(result: CheckResult, requirements: Mapping[str, Demand]) -> Iterator[str]:
    yield from _explained(result)
    if not ID.fullmatch(result.id) or result.surface != result.id.partition("/")[0]:
        yield f"is not an id of surface {result.surface!r}"
    unknown = [id for id in result.requirements if id not in requirements]
    if unknown:
        yield f"names requirement {unknown[0]!r}, which the report does not list"
        return
    named = [requirements[id] for id in result.requirements]
    tier = _first((demand.tier for demand in named), TIERS)
    if result.tier != tier:
        yield f"tier is {result.tier!r}, by its requirements {tier!r}"
    level = _first((demand.level for demand in named), LEVELS)
    if result.level != level:
        yield f"level is {result.level!r}, by its requirements {level!r}"


def _first(names: Iterable[str], order: tuple[str, ...]) -> str:
    return min(names, key=order.index)


def _explained(result: CheckResult) -> Iterator[str]:
    """Whether a result says what is wrong, or why nothing is, and not both."""
    outcome, excused = result.outcome, result.excused
    if excused and excused.list != outcome:
        yield f"{outcome} by an entry of list {excused.list!r}"
    if result.unexpected:
        if result.message is None or result.repro is None:
            yield f"{outcome} needs 'message' and 'repro'"
        if result.reason is not None:
            yield f"{outcome} cannot have a 'reason'"
        if outcome is Outcome.FLAKY and not result.attempts:
            yield f"{outcome} needs 'attempts', or a 'reason' of kind 'excused'"
        return
    if result.message is not None or result.repro is not None:
        yield f"{outcome} cannot have 'message' or 'repro'"
    if (result.reason is None) != (outcome is Outcome.PASS):
        yield f"{outcome} {'cannot have' if result.reason else 'needs'} a 'reason'"
    elif outcome is Outcome.XFAIL and not excused:
        yield f"{outcome} needs a 'reason' of kind 'excused'"


def _is_requirement(id: str) -> bool:
    return REQUIREMENT_ID.fullmatch(id) is not None
