# SPDX-License-Identifier: BSD-3-Clause
"""Two opinions on the same change: what the comparison finds, and what the compiler says.

The probe is written for the torch before, and compiled with both. A line that the torch after
refuses is about the declarations that the line uses, which are known from the torch before. Where
the two opinions meet they must agree; where they do not, one of them is wrong and says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity
from torch_backend_ci.surface.probe.result import Covered, Place, ProbeError, ProbeResult, Use

RULE = "probe_disagreement"
AGREES, DISAGREES, NOT_COVERED = "agrees", "disagrees", "not_covered"

ANY = frozenset(Use)
OVERRIDING = frozenset({Use.OVERRIDES})
DERIVING = frozenset({Use.DERIVES})

# Breaking rule -> the uses of the declaration that cannot survive it. What is not here may leave
# a use as it is: a call with every argument given does not miss a default.
FATAL_TO: Mapping[str, frozenset[Use]] = {
    **dict.fromkeys(
        (
            *("class_removed", "class_renamed"),
            *("virtual_removed", "virtual_renamed", "method_removed", "method_renamed"),
            *("function_removed", "function_renamed", "constructor_removed"),
            *("field_removed", "field_renamed"),
            *("enum_removed", "enum_renamed", "enumerator_removed", "enumerator_renamed"),
            *("alias_removed", "alias_renamed", "constant_removed", "constant_renamed"),
            *("macro_removed", "macro_renamed", "made_deleted"),
        ),
        ANY,
    ),
    "virtual_signature_changed": OVERRIDING,
    "no_longer_virtual": OVERRIDING,
    "made_final": OVERRIDING | DERIVING,
    "made_abstract": DERIVING,
}

# Breaking rule about a function that makes classes abstract which do not implement it.
ABSTRACTING = frozenset({"pure_virtual_added", "made_pure"})


def agree(findings: Sequence[Finding], before: ProbeResult, after: ProbeResult) -> list[Finding]:
    """The findings with `probe` set, and one more for each line that no finding explains."""
    if before.errors:
        raise CiError(f"the probe does not fit this base, torch {before.torch}: {before.errors[0]}")
    if before.written_for != after.written_for:
        raise CiError(
            f"the probe was written for torch {before.written_for} on one side and for "
            f"{after.written_for} on the other: nothing can be compared"
        )
    lines = _Lines(before)
    judged = [
        dataclasses.replace(finding, probe=_opinion(finding, lines, after))
        if finding.domain == Domain.CPP
        else finding
        for finding in findings
    ]
    return [*judged, *_unexplained(findings, lines, after)]


class _Lines:
    """What each line of the probe uses."""

    def __init__(self, probe: ProbeResult) -> None:
        self.covers = probe.covers
        self.about = probe.about
        self._by_name: dict[str, list[Covered]] = {}
        for use in probe.uses:
            self._by_name.setdefault(use.name, []).append(use)

    def uses(self, declaration: Declaration) -> set[Use]:
        """What the probe does with a declaration; an overload that it does not use is another."""
        at = Place(declaration.file, declaration.line)
        return {
            u.use
            for u in self._by_name.get(declaration.name, ())
            if u.use == Use.EXPANDS or u.declared == at
        }

    def derives(self, name: str) -> bool:
        return Use.DERIVES in self.covers.get(name, frozenset())


def _opinion(finding: Finding, lines: _Lines, after: ProbeResult) -> str:
    fails = any(_explains(finding, lines.about(error)) for error in after.errors)
    if fails and finding.severity in (Severity.COMPILE_BREAK, Severity.SILENT_BREAK):
        return AGREES
    if not _must_fail(finding, lines):
        return AGREES if _is_used(finding, lines) and not fails else NOT_COVERED
    stopped = any(error.fatal for error in after.errors)
    return NOT_COVERED if stopped else DISAGREES


def _must_fail(finding: Finding, lines: _Lines) -> bool:
    """Whether the probe does with the declaration what the change makes impossible."""
    if finding.severity != Severity.COMPILE_BREAK:
        return False
    if finding.rule in ABSTRACTING:
        implemented = Use.OVERRIDES in lines.covers.get(finding.name, frozenset())
        return lines.derives(_scope(finding.name)) and not implemented
    fatal = FATAL_TO.get(finding.rule, frozenset())
    return finding.before is not None and bool(fatal & lines.uses(finding.before))


def _is_used(finding: Finding, lines: _Lines) -> bool:
    """Whether the probe would have seen a break: one opinion that nothing breaks is worth it."""
    if finding.severity == Severity.COMPILE_BREAK or finding.before is None:
        return False
    return bool(lines.uses(finding.before))


def _explains(finding: Finding, about: frozenset[str]) -> bool:
    """Whether the finding is about what an error is about, or about its class."""
    return finding.name in about or any(
        _scope(name) == finding.name or _scope(finding.name) == name for name in about
    )


def _unexplained(
    findings: Sequence[Finding], lines: _Lines, after: ProbeResult
) -> Iterator[Finding]:
    """A finding for every refused line that no change accounts for."""
    told = [finding for finding in findings if finding.severity != Severity.COSMETIC]
    explained: set[str] = set()  # files with a line that is
    for error in after.errors:
        about = lines.about(error)
        if any(_explains(finding, about) for finding in told) or _names_header(error, told):
            explained.add(error.place.file)
        elif about or error.place.file not in explained:
            yield _disagreement(error, about, after)
        # else: a line that uses nothing is refused because of one before it


def _names_header(error: ProbeError, findings: Iterable[Finding]) -> bool:
    return any(f.domain == Domain.HEADER and f.name in error.text for f in findings)


def _disagreement(error: ProbeError, about: frozenset[str], after: ProbeResult) -> Finding:
    known = catalogue.load()
    names = sorted(about) or [str(error.place)]
    surfaces = [known.surface_of_symbol(n) or known.surface_of_macro(n) for n in names]
    name, surface = next(
        ((n, s) for n, s in zip(names, surfaces, strict=True) if s), (names[0], "build")
    )
    declaration = Declaration(
        Domain.CPP, "probe", name, surface, error.text, error.place.file, error.place.line
    )
    return Finding(
        rule=RULE,
        severity=Severity.COMPILE_BREAK,
        surface=surface,
        domain=Domain.CPP,
        name=name,
        message=f"The probe does not compile with torch {after.torch}, and no difference of the "
        f"declarations says why: {error}.",
        before=None,
        after=declaration,
        concerns=("overriders", "callers", "registrars"),
        probe=DISAGREES,
    )


def _scope(name: str) -> str:
    return name.rpartition("::")[0]


__all__ = ["AGREES", "DISAGREES", "FATAL_TO", "NOT_COVERED", "RULE", "agree"]
