# SPDX-License-Identifier: BSD-3-Clause
"""An audit for people (text, Markdown) and for programs (JSON)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from torch_backend_ci import document
from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.coupling import document as parts
from torch_backend_ci.surface.coupling.audit import Audit
from torch_backend_ci.surface.coupling.document import Count, Coupling
from torch_backend_ci.surface.coupling.files import Problem, Tree
from torch_backend_ci.surface.coupling.rules import Hit, Rules
from torch_backend_ci.surface.coupling.trend import Trend, trend

WHOLE = "file."  # the rules that take a whole file begin so


@dataclass(frozen=True)
class Report:
    """An audit, counted; of one subsystem, if it was asked for."""

    rules: Rules
    tree: Tree
    subsystem: str | None
    hits: tuple[Hit, ...]
    problems: tuple[Problem, ...]
    total: Count
    subsystems: dict[str, Count]
    trend: Trend | None


def make(
    rules: Rules, audit: Audit, against: Audit | None = None, subsystem: str | None = None
) -> Report:
    """Count an audit, and compare it with an earlier one."""
    if subsystem is not None and subsystem not in rules.subsystems:
        known = ", ".join(f"{name!r}" for name in rules.subsystems)
        raise CiError(f"no subsystem {subsystem!r}; there are {known}")

    def asked_for(file: str) -> bool:
        return subsystem is None or rules.subsystem(file) == subsystem

    groups: dict[str, list[str]] = {name: [] for name in (*rules.subsystems, "other")}
    for file in filter(asked_for, audit.files):
        groups[rules.subsystem(file)].append(file)
    hits = tuple(hit for hit in audit.hits if asked_for(hit.file))
    compared = None
    if against is not None:
        compared = trend(against.tree, (h for h in against.hits if asked_for(h.file)), hits)
    return Report(
        rules=rules,
        tree=audit.tree,
        subsystem=subsystem,
        hits=hits,
        problems=tuple(problem for problem in audit.problems if asked_for(problem.file)),
        total=_count([file for group in groups.values() for file in group], hits),
        subsystems={name: _count(group, hits) for name, group in groups.items() if group},
        trend=compared,
    )


def _count(files: Sequence[str], hits: Iterable[Hit]) -> Count:
    among = set(files)
    inside = [hit for hit in hits if hit.file in among]
    vendor = sum(hit.rule.startswith(WHOLE) for hit in inside)
    coupled = {hit.file for hit in inside if not hit.rule.startswith(WHOLE)}
    generic = len(files) - vendor
    return Count(
        files=len(files),
        vendor_files=vendor,
        generic_files=generic,
        coupled_files=len(coupled),
        percent=round(100 * len(coupled) / generic, 1) if generic else 0.0,
        hits=len(inside) - vendor,
    )


# JSON


def as_json(report: Report, limit: int) -> str:
    """Everything; `limit` is for people."""
    del limit
    return document.dumps(
        Coupling(
            vendor=report.rules.vendor.key,
            tree=_tree(report.tree),
            subsystem=report.subsystem,
            total=report.total,
            subsystems=report.subsystems,
            rules=_by_rule(report),
            hits=_hits(report.hits, report.rules),
            problems=tuple(parts.Problem(p.file, p.problem) for p in report.problems),
            trend=_trend(report.trend, report.rules) if report.trend else None,
        )
    )


def _tree(tree: Tree) -> parts.Tree:
    return parts.Tree(tree.layout, tree.version, tree.git_version)


def _trend(since: Trend, rules: Rules) -> parts.Trend:
    new, gone = _hits(since.new, rules), _hits(since.gone, rules)
    return parts.Trend(_tree(since.since), since.before, new, gone)


def _by_rule(report: Report) -> dict[str, int]:
    hits = Counter(hit.rule for hit in report.hits)
    return {rule: hits[rule] for rule in report.rules.rules}


def _hits(hits: Iterable[Hit], rules: Rules) -> tuple[parts.Hit, ...]:
    return tuple(_hit(hit, rules) for hit in hits)


def _hit(hit: Hit, rules: Rules) -> parts.Hit:
    replacement = rules.replacement(hit)
    return parts.Hit(
        rule=hit.rule,
        file=hit.file,
        line=hit.line,
        symbol=hit.symbol,
        subsystem=rules.subsystem(hit.file),
        scope=hit.scope or UNSET,
        replacement=replacement.use if replacement else UNSET,
        since=replacement.since if replacement else UNSET,
    )


# Text


def as_text(report: Report, limit: int) -> str:
    """A summary, and the hits as compilers print theirs."""
    total = report.total
    lines = [
        _title(report),
        f"{total.files} files: {total.vendor_files} are {_vendor(report)}'s as a whole, and of "
        f"{total.generic_files} generic ones {total.coupled_files} ({total.percent} %) are coupled "
        f"in {total.hits} places",
        "",
        f"{'coupled':>9} {'of':>6} {'%':>6} {'hits':>6} {'whole':>6}  subsystem",
    ]
    lines += [
        f"{c.coupled_files:9} {c.generic_files:6} {c.percent:6} {c.hits:6} {c.vendor_files:6}  "
        f"{name}"
        for name, c in report.subsystems.items()
    ]
    lines += ["", *(f"{n:6}  {r:<18} {report.rules.rules[r]}" for r, n in _by_rule(report).items())]
    lines += ["", *_shown([h for h in report.hits if h.line], limit, _line(report))]
    if report.trend:
        lines += ["", _trend_title(report, report.trend)]
        lines += _shown(report.trend.new, limit, _line(report, "new: "))
        lines += _shown(report.trend.gone, limit, _line(report, "gone: "))
    lines += [f"problem: {p.file}: {p.problem}" for p in report.problems]
    return "\n".join(lines) + "\n"


def _line(report: Report, prefix: str = "") -> Callable[[Hit], str]:
    def line(hit: Hit) -> str:
        replacement = report.rules.replacement(hit)
        end = f" -> {replacement.use} (since {replacement.since})" if replacement else ""
        return f"{prefix}{hit.file}:{hit.line}: {hit.rule}: {hit.symbol}{end}"

    return line


def _shown(hits: Sequence[Hit], limit: int, line: Callable[[Hit], str]) -> list[str]:
    lines = [line(hit) for hit in hits[:limit]]
    if rest := len(hits) - len(lines):
        lines.append(f"... and {rest} more (--limit, or --format json)")
    return lines


def _title(report: Report) -> str:
    where = f", {report.subsystem}" if report.subsystem else ""
    return f"Coupling to {_vendor(report)}: {_name(report.tree)}{where}"


def _trend_title(report: Report, since: Trend) -> str:
    return (
        f"Since {_name(since.since)}: {len(since.new)} new, {len(since.gone)} gone; "
        f"{since.before} -> {len(report.hits)}"
    )


def _name(tree: Tree) -> str:
    return f"torch {tree.version or '(unknown version)'} ({tree.layout})"


def _vendor(report: Report) -> str:
    return report.rules.vendor.title


# Markdown


def as_markdown(report: Report, limit: int) -> str:
    """Counts, the files with most hits, replacements: fit to be committed."""
    total = report.total
    lines = [
        f"# {_title(report)}",
        "",
        f"Of {total.files} files {total.vendor_files} are {_vendor(report)}'s as a whole. Of "
        f"the {total.generic_files} generic ones {total.coupled_files} ({total.percent} %) are "
        f"coupled, in {total.hits} places.",
    ]
    lines += _section("Subsystems", _SUBSYSTEM_HEAD, _subsystem_rows(report))
    rules = report.rules.rules
    by_rule = [(f"`{rule}`", rules[rule], n) for rule, n in _by_rule(report).items() if n]
    lines += _section("Rules", ("rule", "what it is", "hits"), by_rule)
    inside = [hit for hit in report.hits if not hit.rule.startswith(WHOLE)]
    by_file = Counter(hit.file for hit in inside)
    files = [(f"`{file}`", n) for file, n in _most(by_file, limit)]
    lines += _section(f"Files with most hits (of {len(by_file)})", ("generic file", "hits"), files)
    lines += _replacements(report, inside, limit)
    if report.trend:
        lines += _trend_section(report, report.trend, limit)
    if report.problems:
        problems = [(f"`{p.file}`", p.problem) for p in report.problems]
        lines += _section("Problems", ("file", "problem"), problems)
    return "\n".join(lines) + "\n"


_SUBSYSTEM_HEAD = ("subsystem", "generic files", "coupled", "%", "hits", "vendor's files")


def _subsystem_rows(report: Report) -> list[tuple[object, ...]]:
    return [
        (name, c.generic_files, c.coupled_files, c.percent, c.hits, c.vendor_files)
        for name, c in report.subsystems.items()
    ]


def _replacements(report: Report, hits: list[Hit], limit: int) -> list[str]:
    python = [hit for hit in hits if hit.rule.startswith("py.")]
    known = {hit: r for hit in python if (r := report.rules.replacement(hit))}
    uses = Counter((hit.symbol, r.use, r.since, r.note or "") for hit, r in known.items())
    rows = [
        (f"`{symbol}`", f"`{use}`", since, note, n)
        for (symbol, use, since, note), n in _most(uses, limit)
    ]
    title = f"Replacements ({len(known)} of {len(python)} Python hits have one)"
    return _section(title, ("coupled", "device-agnostic", "since", "note", "hits"), rows)


def _trend_section(report: Report, since: Trend, limit: int) -> list[str]:
    new = Counter(report.rules.subsystem(hit.file) for hit in since.new)
    gone = Counter(report.rules.subsystem(hit.file) for hit in since.gone)
    change = {name: new[name] - gone[name] for name in new | gone}
    order = sorted(change, key=lambda name: (-abs(change[name]), name))[:limit]
    rows = [(name, new[name], gone[name], f"{change[name]:+}") for name in order]
    return _section(_trend_title(report, since), ("subsystem", "new", "gone", "change"), rows)


def _most(counter: Counter[Any], limit: int) -> list[tuple[Any, int]]:
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    table = [list(head), ["---"] * len(head), *cells]
    return ["", f"## {title}", "", *("| " + " | ".join(row) + " |" for row in table)]


FORMATS: dict[str, Callable[[Report, int], str]] = {
    "text": as_text,
    "json": as_json,
    "markdown": as_markdown,
}
