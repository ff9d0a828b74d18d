# SPDX-License-Identifier: BSD-3-Clause
"""Two snapshots, compared by meaning.

A module per domain says which differences there are; rules/ says what each means for a backend.
Nothing that is written for people (text, file, line) is compared, so a declaration that moves, or
has another layout, gives nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace

from torch_backend_ci.surface.diff import cpp, device_module, header, operators, python_api, symbol
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity, Snapshot

COSMETIC = Severity.COSMETIC

Named = Mapping[str, list[Declaration]]  # the declarations of one domain by name, sorted

COMPARE: Mapping[Domain, Callable[[Named, Named], Iterator[Finding]]] = {
    Domain.CPP: cpp.findings,
    Domain.HEADER: header.findings,
    Domain.PYTHON: python_api.findings,
    Domain.OPERATOR: operators.findings,
    Domain.DEVICE_MODULE: device_module.findings,
}


def diff(before: Snapshot, after: Snapshot) -> list[Finding]:
    """Every difference that has a rule, worst first.

    Domains that only one of the snapshots looked at are not compared (`skipped_domains`), nor what
    a header declares that one of the torches could not compile: that is a finding on the header.
    """
    unread = _unread(before) | _unread(after)
    old, new = _named(before, unread), _named(after, unread)
    found = [
        finding
        for domain, compare in COMPARE.items()
        if domain in before.domains & after.domains
        for finding in compare(old[domain], new[domain])
    ]
    if Domain.SYMBOL in before.domains & after.domains:
        told = {f.name for f in found if f.domain is Domain.CPP and f.severity is not COSMETIC}
        found += symbol.findings(old[Domain.SYMBOL], new[Domain.SYMBOL], told)
    return sorted(_merged(found), key=order)


def order(finding: Finding) -> tuple[object, ...]:
    """Worst first, then what more known backends use, then by surface, name and rule."""
    return (
        finding.severity.rank,
        -len(finding.used_by),
        finding.surface,
        finding.name,
        finding.rule,
        finding.identity,
    )


def skipped_domains(before: Snapshot, after: Snapshot) -> list[Domain]:
    """The domains that only one of two snapshots looked at."""
    return [domain for domain in Domain if domain in before.domains ^ after.domains]


def _merged(found: Iterable[Finding]) -> Iterator[Finding]:
    """Findings of one rule about one declaration, made one: two new arguments are one change."""
    alike: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        alike[finding.identity].append(finding)
    for one, *others in alike.values():
        messages = dict.fromkeys(f.message for f in (one, *others))
        yield replace(one, message=" ".join(messages)) if others else one


def _named(snapshot: Snapshot, unread: Set[str]) -> Mapping[Domain, Named]:
    """The declarations of each domain by name, but for those of `unread` headers."""
    named: dict[Domain, dict[str, list[Declaration]]] = {domain: {} for domain in Domain}
    for declaration in snapshot.declarations:
        domain = declaration.domain
        if domain is not Domain.CPP or declaration.file not in unread:
            named[domain].setdefault(declaration.name, []).append(declaration)
    return named


def _unread(snapshot: Snapshot) -> set[str]:
    """Headers with an error that gave no declaration: they were left out."""
    faulty = {d.file for d in snapshot.declarations if d.kind == "header" and d.facts.get("error")}
    return faulty - {d.file for d in snapshot.declarations if d.domain is Domain.CPP}


__all__ = ["COMPARE", "diff", "order", "skipped_domains"]
