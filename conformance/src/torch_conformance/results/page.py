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

import msgspec

from torch_conformance.results import causes, levels
from torch_conformance.results.reader import Document, plain
from torch_conformance.results.report import Run
from torch_conformance.spec import catalogue
from torch_conformance.spec.capabilities import Capabilities, State
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

TEMPLATE = Path(__file__).parent / "page.html"
MAX_ROWS = 2000
MAX_TEXT = 600
MAX_NAMED = 40
MAX_GROUPS = 200

STATES = {
    "green": "Every check is as it should be",
    "red": "Some checks are not as they should be",
    "incomplete": "The run is incomplete: it does not say whether the backend conforms",
    "nothing executed": "Nothing was executed: the run does not say whether the backend conforms",
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
    rows: list[CheckResult]
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
    results, run = document.checks, document.run
    present = [outcome for outcome in Outcome if document.report.totals.get(outcome)]
    excused = [result for result in results if _is_excused(result)]
    return {
        "run": run,
        "totals": document.report.totals,
        "state": document.state,
        "told": STATES[document.state],
        "good": document.state == "green",
        "verdict": levels.assess(document.report),
        "statements": _statements(),
        "facts": _facts(document),
        "absent": _named(run, State.ABSENT),
        "broken": _named(run, State.BROKEN),
        "outcomes": present,
        "table": _table(results, present),
        "causes": _causes(results),
        "excuses": _by_reason(result for result in excused if not result.excused),
        "waivers": _waivers(results),
        "fallbacks": _fallbacks(results),
        "room": MAX_GROUPS,
        "surfaces": _surfaces(results),
    }


def _named(run: Run, state: State) -> list[str]:
    """The capabilities of a run that are in this state."""
    known = Capabilities.of(run.capabilities)
    return sorted(name for name in run.capabilities if known.state(name) is state)


@functools.cache
def _statements() -> dict[str, str]:
    return {id: requirement.statement for id, requirement in catalogue.load().items()}


def _facts(document: Document) -> list[tuple[str, str]]:
    run, options = document.run, msgspec.to_builtins(document.run.options)
    facts = {
        "Backend": f"{run.backend} (device type {run.device_type})",
        "Devices": ", ".join(run.devices) or "no names",
        "Driver": _plainly(run.driver),
        "PyTorch": f"{run.torch.version} ({run.torch.git or 'commit unknown'})",
        "Suite": f"{run.suite} ({run.source.commit or 'installed package'})",
        "Digest of the suite": run.source.digest,
        "Python": run.python,
        "Platform": run.platform,
        "Started": run.started,
        "Duration": f"{run.duration_s:.1f} s",
        "Seed": str(run.seed),
        "Options": _plainly({key: value for key, value in options.items() if value}),
        "Selection": _selection(document),
        "Descriptor": _plainly(msgspec.to_builtins(run.descriptor)),
        "Expectations": _plainly(msgspec.to_builtins(run.expectations)),
        "Shards merged": "none" if run.merged is None else str(len(run.merged)),
        "Digest of the report": document.sha256,
    }
    if run.cannot_load is not None:
        facts["Cannot be loaded"] = run.cannot_load
    return list(facts.items())


def _selection(document: Document) -> str:
    chosen = document.run.selection
    if chosen is None:
        return "unknown checks, chosen by unknown"
    differs = ", ".join(chosen.differs_by) or "no option: the standard selection"
    return f"{chosen.checks} checks, chosen by {differs}"


def _plainly(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plainly(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(map(_plainly, value)) or "none"
    return "none" if value is None else str(value)


def _table(results: Iterable[CheckResult], present: list[Outcome]) -> list[tuple[str, list[int]]]:
    counts: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for result in results:
        counts[result.surface][result.outcome] += 1
    rows = [(name, [counts[name][o] for o in present]) for name in sorted(counts)]
    return [*rows, ("all", [sum(cells) for cells in zip(*(c for _, c in rows), strict=True)])]


def _group(text: str, results: list[CheckResult]) -> Group:
    ids = sorted(result.id for result in results)
    return Group(text, len(ids), ids[:MAX_NAMED], results[0].repro or "")


def _causes(results: Iterable[CheckResult]) -> list[Group]:
    found = causes.grouped((r for r in results if r.unexpected), MAX_GROUPS)
    return [_group(text, group) for text, group in found]


def _is_excused(result: CheckResult) -> bool:
    return result.outcome is not Outcome.PASS and not result.unexpected


def _by_reason(results: Iterable[CheckResult]) -> list[Group]:
    groups: dict[str, list[CheckResult]] = defaultdict(list)
    for result in results:
        groups[f"{result.outcome}: {result.text}"].append(result)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [_group(text, group) for text, group in ranked]


def _waivers(results: Iterable[CheckResult]) -> list[tuple[str, str, Group]]:
    groups: dict[tuple[str, str], list[CheckResult]] = defaultdict(list)
    for result in results:
        if result.excused:
            groups[result.excused.list, result.excused.entry].append(result)
    return [
        (kind, entry, _group(group[0].text, group))
        for (kind, entry), group in sorted(groups.items())
    ]


def _fallbacks(results: Iterable[CheckResult]) -> list[Group]:
    users: dict[str, list[CheckResult]] = defaultdict(list)
    for result in results:
        for name in result.fallbacks:
            users[name].append(result)
    ranked = sorted(users.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [_group(name, group) for name, group in ranked]


def _surfaces(results: Iterable[CheckResult]) -> list[Surface]:
    by_name: dict[str, list[CheckResult]] = defaultdict(list)
    for result in results:
        by_name[result.surface].append(result)
    room, surfaces = MAX_ROWS, []
    for name, mine in sorted(by_name.items()):
        others = [result for result in mine if result.outcome is not Outcome.PASS]
        rows = sorted(others, key=lambda r: (not r.unexpected, r.id))[:room]
        room -= len(rows)
        shown = {result.id for result in rows}
        rest = [result for result in mine if result.id not in shown]
        surfaces.append(Surface(name, len(mine), rows, _condensed(rest)))
    return surfaces


def _condensed(results: list[CheckResult]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Ids by outcome; those that differ in the last word only share a line."""
    outcomes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda result: result.id):
        stem, _, last = result.id.rpartition(":")
        outcomes[result.outcome][stem or last].append(last if stem else "")
    return [(outcome, list(stems.items())) for outcome, stems in sorted(outcomes.items())]


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ..."
