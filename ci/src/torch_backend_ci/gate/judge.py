# SPDX-License-Identifier: BSD-3-Clause
"""The judgement: from the runs of all lanes, before and after, to the verdict. No files here."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from torch_backend_ci.gate.classes import classify
from torch_backend_ci.gate.policy import Policy
from torch_backend_ci.gate.runs import Run
from torch_backend_ci.gate.since import MOST, Findings
from torch_backend_ci.gate.verdict import (
    Cause,
    Check,
    Class,
    Lane,
    Means,
    Verdict,
    outcome_of,
    outcome_of_all,
)
from torch_backend_ci.surface.model import Finding
from torch_conformance.results.comparison import (
    Comparison,
    IncomparableError,
    compare,
    side_of,
)
from torch_conformance.results.reader import Document, plain
from torch_conformance.spec.result import CheckResult

LONGEST = 4000  # characters of a message, as in the verdict
LONGEST_TEXT = 1000  # of a problem or a note
MOST_TEXTS = 20
#: Classes of which `retired` may say that they are meant.
MAY_RETIRE = frozenset({Class.MISSING, Class.WITHDRAWN, Class.TO_FALLBACK})
#: Classes that a finding may explain.
EXPLAINED = frozenset(
    {Class.NEW_FAILURE, Class.WITHDRAWN, Class.TO_FALLBACK, Class.FLAKY, Class.MISSING}
)


@dataclass
class _Judged:
    """A configuration, and its checks that changed."""

    lane: Lane
    checks: list[Check]


@dataclass
class _Compared:
    """The baseline of a configuration, and the result of the suite's comparison."""

    results: Mapping[str, CheckResult] = field(default_factory=dict)
    to_fallback: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    """What was asked differently: suite, torch."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def judge(
    policy: Policy,
    candidate: Mapping[str, Run],
    baseline: Mapping[str, Run] | None,
    findings: Findings,
    head_sha: str | None = None,
    problems: Iterable[str] = (),
) -> Verdict:
    """The verdict on the runs of `candidate`; `problems` are of what was handed in as a whole."""
    names = [*policy.lanes, *sorted(candidate.keys() - policy.lanes.keys())]
    asked = [name for name in names if name in candidate or policy.requires(name)]
    judged = [
        _lane(policy, name, candidate.get(name, _NOTHING), baseline, findings) for name in asked
    ]
    lanes = tuple(one.lane for one in judged)
    checks = sorted((check for one in judged for check in one.checks), key=_order)
    shown = checks[: policy.limits.checks]
    wrong = _texts([*problems, *_undecided(policy), *_mixed(policy, candidate)])
    return Verdict(
        outcome=outcome_of_all(wrong, lanes),
        head_sha=head_sha,
        problems=wrong,
        notes=_texts(_of_retired(policy, candidate, baseline)),
        lanes=lanes,
        checks=tuple(shown),
        left_out=len(checks) - len(shown),
        findings=_causes(shown, findings),
    )


_NOTHING = Run(problems=["no report arrived"])


def _lane(
    policy: Policy,
    name: str,
    run: Run,
    baseline: Mapping[str, Run] | None,
    findings: Findings,
) -> _Judged:
    before = None if baseline is None else baseline.get(name)
    compared = _compared(policy, run, before)
    kinds = dict(_kinds(run, compared))
    checks = [
        _check(policy, name, id, kind, run.results.get(id), compared, findings)
        for id, kind in kinds.items()
        if kind is not Class.UNCHANGED
    ]
    problems = _texts([*run.problems, *compared.problems, *_without_result(checks)])
    means = Counter(check.means.value for check in checks)
    return _Judged(
        Lane(
            name=name,
            required=policy.requires(name),
            outcome=outcome_of(problems, means),
            backend=_short(run.example.run.backend) if run.example else None,
            torch=_torch_of(run),
            baseline=(_torch_of(before) or "unknown") if before and before.example else None,
            counts=dict(sorted(Counter(r.outcome.value for r in run.results.values()).items())),
            classes=dict(sorted(Counter(kind.value for kind in kinds.values()).items())),
            means=dict(sorted(means.items())),
            problems=problems,
            notes=_texts([*_unlisted(policy, name), *_unbuilt(run, findings), *compared.notes]),
            shards=run.shards,
        ),
        checks,
    )


def _compared(policy: Policy, run: Run, before: Run | None) -> _Compared:
    """Compare by the suite's own rules; what cannot be compared is a problem."""
    if before is None:
        said = "there is no run to compare with: every bad check counts as new"
        required = policy.without_baseline == "infrastructure"
        return _Compared(problems=[said] if required else [], notes=[] if required else [said])
    if before.whole is None:
        return _Compared(problems=[f"the run to compare with: {why}" for why in before.problems])
    if run.whole is None:
        return _Compared(results=before.results)
    try:
        made = compare(
            side_of(before.whole), side_of(run.whole), policy.may_differ, allow_removed=True
        )
    except IncomparableError as error:
        cure = f"\n  if that is meant: may_differ of the policy: {', '.join(error.names)}"
        said = f"{error}{cure if error.names else ''}"
        return _Compared(results=before.results, problems=[said])
    return _Compared(
        results=before.results,
        to_fallback=frozenset(c.id for c in made.regressions if c.new == "fallback"),
        changed=frozenset(_changed(before.whole, run.whole)),
        problems=made.lost,
        notes=[*made.notes, *_capabilities(made)],
    )


def _capabilities(made: Comparison) -> Iterator[str]:
    for change in made.capabilities:
        yield f"capability {change.id}: {change.old} -> {change.new}"


def _changed(before: Document, after: Document) -> Iterator[str]:
    if before.run.torch != after.run.torch:
        yield "torch"
    if before.run.source.digest != after.run.source.digest:
        yield "suite"


def _kinds(run: Run, compared: _Compared) -> Iterator[tuple[str, Class]]:
    """The class of every check; of a run that is not whole, nothing is known to be missing."""
    before, after = compared.results, run.results
    for id in sorted(before.keys() | after.keys()):
        kind = classify(before.get(id), after.get(id))
        if kind is Class.UNCHANGED and id in compared.to_fallback:
            kind = Class.TO_FALLBACK
        if kind is not Class.MISSING or run.whole:
            yield id, kind


def _check(
    policy: Policy,
    lane: str,
    id: str,
    kind: Class,
    result: CheckResult | None,
    compared: _Compared,
    findings: Findings,
) -> Check:
    before = compared.results.get(id)
    known = result or before
    assert known is not None
    return Check(
        lane=lane,
        id=id,
        kind=kind,
        means=_means(policy, id, kind, compared),
        before=before.outcome if before else None,
        after=result.outcome if result else None,
        duration_s=result.duration_s if result else None,
        requirements=known.requirements,
        surface=known.surface,
        message=_cut(result.text if result else ""),
        since=findings.since(known.surface, known.text) if kind in EXPLAINED else (),
        repro=_cut((result and result.repro) or ""),
    )


def _means(policy: Policy, id: str, kind: Class, compared: _Compared) -> Means:
    if kind in MAY_RETIRE and any(entry.matches(id) for entry in policy.retired):
        return Means.NOTE
    return policy.missing(compared.changed) if kind is Class.MISSING else policy.means(kind)


def _order(check: Check) -> tuple[object, ...]:
    return check.means.rank, list(Class).index(check.kind), check.lane, check.id


def _without_result(checks: Iterable[Check]) -> Iterator[str]:
    """Which checks make the result of a configuration unusable, by what happened to them."""
    found = sorted(
        (check for check in checks if check.means is Means.INFRASTRUCTURE), key=lambda c: c.kind
    )
    for kind, group in itertools.groupby(found, key=lambda check: check.kind):
        ids = [check.id for check in group]
        named = ", ".join(ids[:MOST]) + (" and others" if len(ids) > MOST else "")
        yield f"{_WITHOUT_RESULT.get(kind, kind.value)}: {len(ids)}: {named}"


_WITHOUT_RESULT = {Class.MISSING: "checks of the run before that have no result now"}


def _mixed(policy: Policy, candidate: Mapping[str, Run]) -> Iterator[str]:
    """All lanes judge one change: their suites have to be the same."""
    first: dict[str, str] = {}
    for name, run in candidate.items():
        digest = run.example.run.source.digest if run.example else None
        if policy.requires(name) and digest:
            first.setdefault(digest, name)
    if len(first) > 1:
        yield f"lanes {', '.join(sorted(first.values()))} were run with different suites"


def _undecided(policy: Policy) -> Iterator[str]:
    if not any(map(policy.requires, policy.lanes)):
        yield "the policy requires no lane: there is nothing to go by"


def _unlisted(policy: Policy, name: str) -> Iterator[str]:
    if name not in policy.lanes:
        yield "the policy does not know this lane: it decides nothing"


def _unbuilt(run: Run, findings: Findings) -> Iterator[str]:
    """Of a run that never was: what may have kept the backend from being built."""
    if not run.parts:
        yield from (f"perhaps since {f.message}" for f in findings.breaks[:MOST])
    if not run.parts and len(findings.breaks) > MOST:
        yield f"and {len(findings.breaks) - MOST} more that break the compilation of backends"


def _of_retired(
    policy: Policy, candidate: Mapping[str, Run], baseline: Mapping[str, Run] | None
) -> Iterator[str]:
    """Entries that have done their work."""
    runs = [*(baseline or {}).values(), *candidate.values()]
    ids = {id for run in runs for id in run.results} if policy.retired else set()
    for entry in policy.retired:
        if not any(map(entry.matches, ids)):
            yield f"`retired` of the policy: {entry.id} is not a check any more; delete the entry"


def _causes(checks: Iterable[Check], findings: Findings) -> tuple[Cause, ...]:
    named = dict.fromkeys(since.finding for check in checks for since in check.since)
    return tuple(_cause(findings.by_identity[identity]) for identity in named)


def _cause(finding: Finding) -> Cause:
    return Cause(
        identity=finding.identity,
        rule=finding.rule,
        severity=finding.severity,
        surface=finding.surface,
        name=_cut(finding.name),
        message=_cut(finding.message),
        hint=_cut(finding.hint) if finding.hint else None,
    )


def _torch_of(run: Run) -> str | None:
    """Its version, where a report tells."""
    return _short(run.example.run.torch.version) or None if run.example else None


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    said = [_cut(plain(text), LONGEST_TEXT) for text in texts]
    rest = len(said) - MOST_TEXTS
    return tuple([*said[: MOST_TEXTS - 1], f"and {rest + 1} more"] if rest > 0 else said)


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."


def _short(text: str | None) -> str | None:
    return text if text is None else text[:200]
