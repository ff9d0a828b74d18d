# SPDX-License-Identifier: BSD-3-Clause
"""What to implement next: what failed checks say is missing, by how many of them wait for it.

A check stops at the first thing that it misses, so the numbers say how many checks get further with
a step, not how many of them will pass then. Only a report is needed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from torch_conformance.results import causes
from torch_conformance.results.missing import (
    ALLOCATOR,
    AUTOCAST,
    CAPABILITY,
    DTYPE,
    FUNCTION,
    GUARD,
    HOOK,
    OPERATOR,
    Missing,
    read,
)
from torch_conformance.results.report import Report
from torch_conformance.spec.capabilities import KEYS, MEANING
from torch_conformance.spec.catalogue import LEVELS, TIERS, Requirement
from torch_conformance.spec.outcome import BAD, Outcome
from torch_conformance.spec.reason import DeclaredUnsupported, MissingCapability
from torch_conformance.spec.result import CheckResult

MAX_STEPS = 20
MAX_CORRECTIONS = 5
_SEVERE = (Outcome.DEVICE_LOST, Outcome.CRASH, Outcome.TIMEOUT, Outcome.FAIL)

DOCS = "https://docs.pytorch.org/docs/main/accelerator/"
# What to do about each kind, and where to read more: in the order in which equally frequent steps
# are listed.
KINDS = {
    OPERATOR: ("register a kernel for PrivateUse1", "operators.html"),
    AUTOCAST: ("register a fallthrough for all, and casts for autocast's lists", "amp.html"),
    DTYPE: ("let the kernel take this data type", "operators.html"),
    FUNCTION: ("define it in the device module", "device.html"),
    HOOK: ("override it in at::PrivateUse1HooksInterface", "hooks.html"),
    GUARD: ("override it in c10::impl::DeviceGuardImplInterface", "guard.html"),
    ALLOCATOR: ("derive the allocator from c10::DeviceAllocator", "allocator.html"),
    CAPABILITY: ("implement it, or declare it false", "index.html"),
}
FALLBACK = "runs on the CPU by fallback: a kernel of its own keeps the data on the device"
# What PyTorch's messages call data types, where that is not torch's own name for them.
_SCALAR_TYPES = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


def _is_aid(step: Missing) -> bool:
    """Whether only the suite needs it, to see more."""
    return step.kind == CAPABILITY and step.name in KEYS


def _rank(entry: tuple[Missing, list[CheckResult]]) -> tuple[bool, int, int, str]:
    """What most checks wait for is first, and what only the suite needs is last."""
    step, waiting = entry
    return _is_aid(step), -len(waiting), list(KINDS).index(step.kind), step.name


def _action(step: Missing) -> str:
    """What to do about it."""
    action = KINDS[step.kind][0]
    if _is_aid(step):
        key = KEYS[step.name]
        return f"last, because only tests need it; the descriptor's key {key!r} names it"
    if step.kind == CAPABILITY:
        return f"{action} ({MEANING.get(step.name, 'unknown')})"
    if step.kind == OPERATOR and re.search(r"(^|[._])out$", step.name):
        return f"{action}; PyTorch derives the functional and the in-place form"
    return action


# Outcomes whose message tells what was missing, also where the expectations know it already.
_TELLING = BAD | {Outcome.XFAIL}


def missing(result: CheckResult, denied: frozenset[str] = frozenset()) -> list[Missing]:
    """What one check waits for; capabilities and data types that are `denied` are not planned."""
    if result.outcome is Outcome.UNSUPPORTED:
        lacking = result.reason.names if isinstance(result.reason, MissingCapability) else ()
        return [] if denied & set(lacking) else [Missing(CAPABILITY, name) for name in lacking]
    if result.outcome not in _TELLING:
        return []
    # Reports of an earlier suite tell of an excused check only what its entry says.
    found = read(result.observed) or (read(result.excused.text) if result.excused else None)
    return [found] if found and not _is_of(found, denied) else []


def _is_of(step: Missing, denied: frozenset[str]) -> bool:
    """Whether it is about a data type that the descriptor denies."""
    if step.kind != DTYPE:
        return False
    called = step.name.rpartition(" ")[2]
    return _SCALAR_TYPES.get(called, called.lower()) in denied


def _denied(report: Report) -> frozenset[str]:
    """The capabilities and data types that the descriptor says the backend is not to have."""
    table = report.run.capabilities.items()
    reasons = (result.reason for result in report.checks)
    return frozenset(
        [name for name, entry in table if entry.source == "declared" and not entry.value]
        + [reason.dtype for reason in reasons if isinstance(reason, DeclaredUnsupported)]
    )


def steps(report: Report) -> list[tuple[Missing, list[CheckResult]]]:
    """Steps and the checks that wait for them, those that most wait for first."""
    denied = _denied(report)
    waiting: dict[Missing, list[CheckResult]] = defaultdict(list)
    for result in report.checks:
        for step in missing(result, denied):
            waiting[step].append(result)
    return sorted(waiting.items(), key=_rank)


def lines(
    report: Report, catalogue: Mapping[str, Requirement], room: int = MAX_STEPS
) -> Iterator[str]:
    """The ranked list in words."""
    backend = report.run.backend
    yield from _obstacles(report.checks)
    yield from _corrections(backend, report.checks)
    yield f"what to implement next on {backend}, by the number of checks that wait for it"
    ranked = steps(report)
    fallen = _fallen_back(report.checks)
    if not ranked and not fallen:
        yield "       nothing: no check says that something is missing"
    for step, results in ranked[:room]:
        first = min(results, key=lambda result: (_urgency(result), result.id))
        yield f"{len(results):>5}  {step.kind} {step.name}: {_action(step)}"
        yield f"       {_cite(first, catalogue, DOCS + KINDS[step.kind][1])}"
    for name, results in fallen[: max(0, room - len(ranked))]:
        yield f"{len(results):>5}  {name}: {FALLBACK}"
    if len(ranked) > room:
        yield f"       ... and {len(ranked) - room} steps more"


def _corrections(backend: str, results: Iterable[CheckResult]) -> Iterator[str]:
    """Crashes and wrong results of what is there: they come before any new feature."""
    wrong = [r for r in results if r.unexpected and not missing(r) and not _is_obstacle(r)]
    if not wrong:
        return
    yield f"what to correct first on {backend}: {len(wrong)} failures of what is there"
    groups = causes.grouped(wrong, MAX_CORRECTIONS)
    for text, group in sorted(groups, key=lambda entry: _severity(entry[1])):
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield f"{len(group):>5}  {text}"
        yield f"       {group[0].id}{others}"


def _severity(group: list[CheckResult]) -> tuple[int, int]:
    """Crashes before hangs before wrong results, and then the most frequent."""
    outcome = group[0].outcome
    return (_SEVERE.index(outcome) if outcome in _SEVERE else len(_SEVERE)), -len(group)


def _obstacles(results: Iterable[CheckResult]) -> Iterator[str]:
    """What the smoke tier found wrong with harness or descriptor: nothing else counts before."""
    for result in sorted(results, key=lambda result: result.id):
        if _is_obstacle(result):
            text = (result.message or "").splitlines() or [""]
            yield f"first  {result.id}: {text[0]}"
            yield from (f"       {line}" for line in text[1:])


def _is_obstacle(result: CheckResult) -> bool:
    return result.blames in ("harness", "descriptor")


def _fallen_back(results: Iterable[CheckResult]) -> list[tuple[str, list[CheckResult]]]:
    users: dict[str, list[CheckResult]] = defaultdict(list)
    for result in results:
        for name in result.fallbacks:
            users[name].append(result)
    return sorted(users.items(), key=lambda entry: (-len(entry[1]), entry[0]))


def _urgency(result: CheckResult) -> tuple[int, int]:
    return TIERS.index(result.tier), LEVELS.index(result.level)


def _cite(result: CheckResult, catalogue: Mapping[str, Requirement], link: str) -> str:
    """The requirement behind a check, the check, and where to read more."""
    requirement = result.requirements[0]
    known = catalogue.get(requirement)
    return f"{requirement} {result.id}  {known.source.url if known else link}"
