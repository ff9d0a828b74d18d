# SPDX-License-Identifier: BSD-3-Clause
"""A report as one HTML file that can be attached and read anywhere: no script, nothing to load.

What passed is condensed to ids; what did not is shown with message and repro. Everything that
stands in it came from a report, so all of it is escaped, and a policy in the page forbids it to
load or run anything.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from torch_conformance.results import levels, summary
from torch_conformance.results.reader import Document, Record, plain
from torch_conformance.spec import catalogue
from torch_conformance.spec.capabilities import Capabilities, State
from torch_conformance.spec.outcome import Outcome, is_bad

TEMPLATE = Path(__file__).parent / "page.html"
MAX_ROWS = 2000
MAX_TEXT = 600
MAX_NAMED = 40
MAX_GROUPS = 200

STATES = {
    "green": "Every check is as it should be",
    "red": "Some checks are not as they should be",
    "incomplete": "The run is incomplete: this is no result of the backend",
    "nothing executed": "Nothing was executed: this is no result of the backend",
}


class Group(NamedTuple):
    """Checks that have a text in common."""

    text: str
    size: int
    ids: list[str]
    repro: str = ""

    @property
    def more(self) -> int:
        """How many ids are left out."""
        return self.size - len(self.ids)


class Surface(NamedTuple):
    """The checks of one surface: with a row each, and condensed by outcome."""

    name: str
    size: int
    rows: list[Record]
    condensed: list[tuple[str, list[tuple[str, list[str]]]]]


def render(document: Document) -> str:
    """The page of a report."""
    text: str = _template().render(context(document))
    return f"{text}\n"


@functools.cache
def _template() -> Any:
    # Imported here: no other use of the suite needs a template engine.
    import jinja2

    def clean(value: Any) -> Any:
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return plain(value)
        return value

    environment = jinja2.Environment(
        autoescape=True,
        finalize=clean,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = _short
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def context(document: Document) -> dict[str, Any]:
    """What the template shows."""
    records, run = document.checks, document.run
    present = [o.value for o in Outcome if document.content["totals"].get(o.value)]
    return {
        "document": document,
        "run": run,
        "state": STATES[document.state],
        "good": document.state == "green",
        "verdict": levels.assess(document.content),
        "statements": _statements(),
        "facts": _facts(document),
        "absent": _named(run, State.ABSENT),
        "broken": _named(run, State.BROKEN),
        "outcomes": present,
        "table": _table(records, present),
        "causes": _causes(records),
        "excuses": _by_reason(r for r in records if _is_excused(r) and "waiver" not in r),
        "waivers": _waivers(records),
        "fallbacks": _fallbacks(records),
        "room": MAX_GROUPS,
        "surfaces": _surfaces(records),
    }


def _named(run: dict[str, Any], state: State) -> list[str]:
    """The capabilities of a run that are in this state."""
    known = Capabilities.of(run["capabilities"])
    return sorted(name for name in run["capabilities"] if known.state(name) is state)


@functools.cache
def _statements() -> dict[str, str]:
    return {id: requirement.statement for id, requirement in catalogue.load().items()}


def _facts(document: Document) -> list[tuple[str, str]]:
    run = document.run
    chosen = run["selection"] or {"checks": "unknown", "differs_by": ["unknown"]}
    differs = ", ".join(chosen["differs_by"]) or "no option: the standard selection"
    facts = {
        "Backend": f"{run['backend']} (device type {run['device_type']})",
        "Devices": ", ".join(run.get("devices", [])) or "no names",
        "Driver": _plainly(run.get("driver")),
        "PyTorch": f"{run['torch']['version']} ({run['torch']['git'] or 'commit unknown'})",
        "Suite": f"{run['suite']} ({run['source']['commit'] or 'installed package'})",
        "Digest of the suite": run["source"]["digest"],
        "Python": run["python"],
        "Platform": run["platform"],
        "Started": run["started"],
        "Duration": f"{run['duration_s']:.1f} s",
        "Seed": str(run["seed"]),
        "Options": _plainly({k: v for k, v in run["options"].items() if v}),
        "Selection": f"{chosen['checks']} checks, chosen by {differs}",
        "Descriptor": _plainly(run["descriptor"]),
        "Expectations": _plainly(run["expectations"]),
        "Shards merged": str(len(run.get("merged", []))) if "merged" in run else "none",
        "Digest of the report": document.sha256,
    }
    if "cannot_load" in run:
        facts["Cannot be loaded"] = run["cannot_load"]
    return list(facts.items())


def _plainly(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plainly(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(map(_plainly, value)) or "none"
    return "none" if value is None else str(value)


def _table(records: list[Record], present: list[str]) -> list[tuple[str, list[int]]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        counts[record["surface"]][record["outcome"]] += 1
    rows = [(name, [counts[name][o] for o in present]) for name in sorted(counts)]
    return [*rows, ("all", [sum(cells) for cells in zip(*(c for _, c in rows), strict=True)])]


def _group(text: str, records: list[Record]) -> Group:
    ids = sorted(str(record["id"]) for record in records)
    return Group(text, len(ids), ids[:MAX_NAMED], records[0].get("repro", ""))


def _causes(records: list[Record]) -> list[Group]:
    found = summary.grouped((r for r in records if is_bad(r)), MAX_GROUPS)
    return [_group(text, group) for text, group in found]


def _is_excused(record: Record) -> bool:
    return record["outcome"] != Outcome.PASS and not is_bad(record)


def _by_reason(records: Iterable[Record]) -> list[Group]:
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[f"{record['outcome']}: {record.get('reason', '')}"].append(record)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [_group(text, group) for text, group in ranked]


def _waivers(records: list[Record]) -> list[tuple[str, str, Group]]:
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if "waiver" in record:
            groups[record["waiver"]["list"], record["waiver"]["id"]].append(record)
    return [
        (kind, entry, _group(group[0].get("reason", ""), group))
        for (kind, entry), group in sorted(groups.items())
    ]


def _fallbacks(records: list[Record]) -> list[Group]:
    users: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for name in record.get("fallbacks", ()):
            users[name].append(record)
    ranked = sorted(users.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [_group(name, group) for name, group in ranked]


def _surfaces(records: list[Record]) -> list[Surface]:
    by_name: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_name[record["surface"]].append(record)
    room, surfaces = MAX_ROWS, []
    for name, mine in sorted(by_name.items()):
        others = [record for record in mine if record["outcome"] != Outcome.PASS]
        rows = sorted(others, key=lambda r: (not is_bad(r), r["id"]))[:room]
        room -= len(rows)
        shown = {record["id"] for record in rows}
        rest = [record for record in mine if record["id"] not in shown]
        surfaces.append(Surface(name, len(mine), rows, _condensed(rest)))
    return surfaces


def _condensed(records: list[Record]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Ids by outcome; those that differ in the last word only share a line."""
    outcomes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in sorted(records, key=lambda record: str(record["id"])):
        stem, _, last = record["id"].rpartition(":")
        outcomes[record["outcome"]][stem or last].append(last if stem else "")
    return [(outcome, list(stems.items())) for outcome, stems in sorted(outcomes.items())]


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ..."
