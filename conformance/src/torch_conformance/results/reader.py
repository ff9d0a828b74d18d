# SPDX-License-Identifier: BSD-3-Clause
"""The one way in for reports: whatever is read has the schema and does not contradict itself.

A report that is not what it says is refused as a whole, with every reason: a verdict, a comparison
or a level computed from it would be worth nothing.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from torch_conformance.results import migration
from torch_conformance.results.alike import Kind, kind_of
from torch_conformance.results.report import SCHEMA_FILE, totals
from torch_conformance.selecting import selection
from torch_conformance.spec import strict
from torch_conformance.spec.catalogue import LEVELS, TIERS
from torch_conformance.spec.ids import ID, REQUIREMENT_ID
from torch_conformance.spec.outcome import EXECUTED, Outcome, is_bad

Record = dict[str, Any]
MAX_PROBLEMS = 20
# Values of --dtypes that contain the standard selection.
WIDE_ENOUGH = (["standard"], ["full"])


class ReportError(Exception):
    """A report that cannot be used; the text names the file and every reason."""

    def __init__(self, name: str, problems: list[str]) -> None:
        shown = [plain(problem)[:300] for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            shown.append(f"... and {len(problems) - MAX_PROBLEMS} more")
        super().__init__(f"{name} is not a valid report:\n  " + "\n  ".join(shown))


@dataclass(frozen=True)
class Document:
    """A report that was read and found valid."""

    name: str
    content: dict[str, Any]
    sha256: str

    @property
    def run(self) -> dict[str, Any]:
        """What was run, where and how."""
        found: dict[str, Any] = self.content["run"]
        return found

    @property
    def checks(self) -> list[Record]:
        """The records."""
        found: list[Record] = self.content["checks"]
        return found

    @property
    def complete(self) -> bool:
        """Whether every selected check was executed or decided."""
        return bool(self.content["complete"])

    @property
    def shard(self) -> tuple[int, int] | None:
        """Which part of a run this is, or None for a whole one."""
        return shard_of(self.run)

    @property
    def state(self) -> str:
        """`green`, or why it is not: `incomplete`, `nothing executed`, `red`."""
        outcomes = {Outcome(record["outcome"]) for record in self.checks}
        if not self.complete:
            return "incomplete"
        if not outcomes & EXECUTED:
            return "nothing executed"
        return "red" if any(map(is_bad, self.checks)) else "green"


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

    A report of an earlier suite is in today's names.
    """
    content = migration.current(content)
    problems = list(_violations(content)) or list(_contradictions(content))
    if problems:
        raise ReportError(name, problems)
    return Document(name, content, sha256)


def shard_of(run: dict[str, Any]) -> tuple[int, int] | None:
    """The shard that a run was, as numbers."""
    text = run["options"]["shard"]
    if text is None:
        return None
    index, _, count = text.partition("/")
    return int(index), int(count)


def plain(text: str) -> str:
    """Text of unknown origin fit for a terminal: control characters are replaced."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


@functools.cache
def _validators() -> tuple[Any, Any, Kind]:
    """For the report without its checks, and for one check: so that a fault in one of 20,000
    records is reported for that record. Also returns which checks are alike to it.
    """
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    definitions = schema.pop("$defs")
    check = _inlined(definitions["check"], definitions)
    schema["properties"]["checks"] = {"type": "array"}
    kind = jsonschema.Draft202012Validator
    return kind(_inlined(schema, definitions)), kind(check), kind_of(check)


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema with definitions in the place of references: looking these up takes most time."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: _inlined(item, definitions) for key, item in schema.items() if key != "$ref"}
    if "$ref" in schema:
        return rest | _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return rest


def _violations(content: Any) -> Iterator[str]:
    """What breaks the schema."""
    whole, single, kind = _validators()
    found = list(whole.iter_errors(content))
    yield from map(_told, found)
    if found:
        return
    valid: set[Hashable] = set()
    for index, record in enumerate(content["checks"]):
        if (alike := kind(record)) in valid:
            continue
        id = record.get("id") if isinstance(record, dict) else None
        where = id if isinstance(id, str) else f"checks[{index}]"
        problems = [f"{where}: {_told(error)}" for error in single.iter_errors(record)]
        if not problems:
            valid.add(alike)
        yield from problems


def _told(error: jsonschema.ValidationError) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    return f"{where}: {error.message[-200:]}" if where else error.message[-200:]


def _contradictions(content: dict[str, Any]) -> Iterator[str]:
    """What the schema cannot say: sums, uniqueness, and statements that exclude each other."""
    yield from _counted(content)
    yield from _selected(content)
    run = content["run"]
    yield from _merged(run, content["checks"])
    try:
        datetime.datetime.fromisoformat(run["started"])
    except ValueError:
        yield f"run.started: {run['started']!r} is no point in time"
    requirements = content["requirements"]
    yield from (f"{id!r} is no requirement" for id in requirements if not _is_requirement(id))
    for record in content["checks"]:
        yield from (f"{record['id']}: {problem}" for problem in _of_record(record, requirements))


def _counted(content: dict[str, Any]) -> Iterator[str]:
    for outcome, count in totals(content["checks"]).items():
        said = content["totals"].get(outcome, 0)
        if said != count:
            yield f"totals.{outcome}: says {said}, the checks have {count}"
    ids = Counter(record["id"] for record in content["checks"])
    yield from (f"{id} has {count} records" for id, count in ids.items() if count > 1)


def _selected(content: dict[str, Any]) -> Iterator[str]:
    """Whether the records are the ones selected, and the selection is what the options say."""
    run, chosen = content["run"], content["run"]["selection"]
    options = run["options"]
    shard = shard_of(run)
    if shard and shard[0] > shard[1]:
        yield f"run.options.shard: there is no shard {options['shard']}"
        return
    if chosen is None:
        if content["complete"]:
            yield "complete, without saying what was selected"
        return
    ids = [record["id"] for record in content["checks"]]
    yield from _parted(run)
    own = chosen.get("part") or {}
    expected = own.get("checks", selection.part_size(chosen["checks"], *(shard or (1, 1))))
    if content["complete"]:
        yield from _completed(content, expected)
    elif len(ids) > expected:
        yield f"{len(ids)} records of {expected} selected checks"
    differs = chosen["differs_by"]
    said = [f"--tier={options['tier']}"] if options["tier"] is not None else []
    said += [f"--check={pattern}" for pattern in options["checks"]]
    if options["dtypes"] not in WIDE_ENOUGH:
        said.append(f"--dtypes={','.join(options['dtypes'])}")
    yield from (f"run.selection.differs_by: leaves out {o}" for o in said if o not in differs)


def _parted(run: dict[str, Any]) -> Iterator[str]:
    """Whether the fields of a part belong to a shard, and agree."""
    shard, chosen = shard_of(run), run["selection"]
    own, by_time = chosen.get("part"), run["options"].get("durations")
    if own is None:
        if shard and by_time:
            yield "run.selection: a shard cut by durations does not say which part it is"
    elif shard is None:
        yield "run.selection.part: said of a run that is no shard"
    elif own["checks"] > chosen["checks"] or (
        not by_time and own["checks"] != selection.part_size(chosen["checks"], *shard)
    ):
        yield f"run.selection.part: {own['checks']} of {chosen['checks']} checks are no such part"


def _completed(content: dict[str, Any], expected: int) -> Iterator[str]:
    run, records = content["run"], content["checks"]
    whole_or_part = run["selection"].get("part") or run["selection"]
    # Shards of a suite that did not tell their part yet are known by their number of checks only.
    is_told = shard_of(run) is None or "part" in run["selection"]
    if len(records) != expected:
        yield f"complete, with {len(records)} records of {expected} selected checks"
    elif is_told and selection.digest(r["id"] for r in records) != whole_or_part["digest"]:
        yield "complete, but the records are not those of the selected checks"
    if "cannot_load" in run:
        yield "complete, although the backend cannot be loaded"
    if any(record["outcome"] == Outcome.NOT_RUN for record in records):
        yield "complete, although checks were not run"


def _merged(run: dict[str, Any], records: list[Record]) -> Iterator[str]:
    """Whether a report that was merged names all of its shards, and no record any other."""
    said = [entry["shard"] for entry in run.get("merged", [])]
    unknown = {record["shard"] for record in records if record.get("shard", 0) > len(said)}
    yield from (f"checks are said to be of shard {number}" for number in sorted(unknown))
    if "merged" not in run:
        return
    if not said or said != [f"{index + 1}/{len(said)}" for index in range(len(said))]:
        yield f"merged from {' '.join(said) or 'nothing'}, which are not all shards of a run"
    if run["options"]["shard"] is not None:
        yield f"merged, and a shard: {run['options']['shard']}"


def _of_record(record: Record, requirements: dict[str, dict[str, str]]) -> Iterator[str]:
    if not ID.fullmatch(record["id"]) or record["surface"] != record["id"].partition("/")[0]:
        yield f"is not an id of surface {record['surface']!r}"
    unknown = [id for id in record["requirements"] if id not in requirements]
    if unknown:
        yield f"names requirement {unknown[0]!r}, which the report does not list"
        return
    named = [requirements[id] for id in record["requirements"]]
    for key, order in (("tier", TIERS), ("level", LEVELS)):
        first = min((entry[key] for entry in named), key=order.index)
        if record[key] != first:
            yield f"{key} is {record[key]!r}, by its requirements {first!r}"
    if "waiver" in record and record["waiver"]["list"] != record["outcome"]:
        yield f"{record['outcome']} by an entry of list {record['waiver']['list']!r}"


def _is_requirement(id: str) -> bool:
    return REQUIREMENT_ID.fullmatch(id) is not None
