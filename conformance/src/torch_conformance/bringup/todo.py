# SPDX-License-Identifier: BSD-3-Clause
"""What to implement next: what failed checks say is missing, by how many of them wait for it.

A check stops at the first thing that it misses, so the numbers say how many checks get further with
a step, not how many of them will pass then. Only a report is needed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from torch_conformance.results import summary
from torch_conformance.results.report import Report
from torch_conformance.spec.capabilities import KEYS, MEANING
from torch_conformance.spec.catalogue import LEVELS, TIERS, Requirement
from torch_conformance.spec.outcome import BAD, Outcome
from torch_conformance.spec.reason import MissingCapability
from torch_conformance.spec.result import CheckResult

MAX_STEPS = 20
MAX_CORRECTIONS = 5
_SEVERE = (Outcome.DEVICE_LOST, Outcome.CRASH, Outcome.TIMEOUT, Outcome.FAIL)

DOCS = "https://docs.pytorch.org/docs/main/accelerator/"
# What kinds of steps there are, in the order in which equally frequent ones are listed.
OPERATOR, AUTOCAST, DTYPE, FUNCTION = "operator", "autocast", "dtype", "function"
HOOK, GUARD, ALLOCATOR, CAPABILITY = "hook", "guard", "allocator", "capability"
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

# Functions of torch.<type> that PyTorch and its users call. A missing attribute of another name is
# a mistake inside of the backend.
FUNCTIONS = frozenset(
    (
        *("device_count", "is_available", "current_device", "set_device", "device", "device_of"),
        *("Stream", "Event", "stream", "current_stream", "default_stream", "set_stream"),
        *("synchronize", "get_device_name", "get_device_properties", "get_device_capability"),
        *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
        *("memory_stats", "memory_summary", "mem_get_info", "empty_cache"),
        *("reset_peak_memory_stats", "reset_accumulated_memory_stats"),
        *("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed"),
        *("get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all"),
        *("default_generators", "is_initialized", "init", "_lazy_call", "_lazy_init"),
        *("_is_in_bad_fork", "is_bf16_supported", "get_amp_supported_dtype"),
    )
)

# Methods of the guard by what their default implementations say that the backend does not support.
GUARD_METHODS = {
    "acquiring a default stream": "getDefaultStream",
    "acquiring a stream from pool": "getStreamFromGlobalPool",
    "create a new Stream": "getNewStream",
    "getting stream native handle": "getStreamNativeHandle",
    "events": "record, block, queryEvent and destroyEvent",
    "getting device capabilities": "getDeviceCapability",
    "querying streams": "queryStream",
    "synchronizing streams": "synchronizeStream",
    "synchronizing events": "synchronizeEvent",
    "synchronizing all streams on device": "synchronizeDevice",
    "elapsedTime": "elapsedTime",
}


@dataclass(frozen=True)
class Missing:
    """Something that is not implemented."""

    kind: str
    name: str

    @property
    def order(self) -> tuple[int, str]:
        """Where it stands among equally frequent ones."""
        return list(KINDS).index(self.kind), self.name

    @property
    def action(self) -> str:
        """What to do about it."""
        action = KINDS[self.kind][0]
        if self.kind == CAPABILITY:
            key = KEYS.get(self.name)
            where = f"; the descriptor's key {key!r} says how" if key else ""
            return f"{action} ({MEANING.get(self.name, 'unknown')}{where})"
        if self.kind == OPERATOR and re.search(r"(^|[._])out$", self.name):
            return f"{action}; PyTorch derives the functional and the in-place form"
        return action


# What a message says is missing: pattern, kind, and the name with the groups of the match.
SIGNS = (
    (r"from the 'Autocast\w+' backend", AUTOCAST, "dispatch key AutocastPrivateUse1"),
    (r"Could not run '(aten::[\w.]+)'", OPERATOR, "{0}"),
    (r"fallback function is registered for schema (aten::\w+(?:\.\w+)?)", OPERATOR, "{0}"),
    (r"(\w+_overrideable) not implemented", OPERATOR, "aten::{0}"),
    (r"\"(\w+)\" not implemented for '(\w+)'", DTYPE, "{0} for {1}"),
    (r"Try to call torch\.\w+\.(\w+)\. The backend must register", FUNCTION, "{0}"),
    (r"module miss some necessary func", FUNCTION, "get_amp_supported_dtype"),
    (r"(?:module|type object) '[\w.]+' has no attribute '(\w+)'", FUNCTION, "{0}"),
    (r"'[\w.]*Module\w*' object has no attribute '(\w+)'", FUNCTION, "{0}"),
    (r"RegisterPrivateUse1HooksInterface`\s*and implement `(\w+)`", HOOK, "{0}"),
    (r"Backend doesn't support ([\w ]+)\.", GUARD, "{0}"),
    (r"Allocator for \w+ is not a DeviceAllocator", ALLOCATOR, "c10::DeviceAllocator"),
)
_SIGNS = [(re.compile(pattern), kind, name) for pattern, kind, name in SIGNS]

# Outcomes whose message tells what was missing, also where the expectations know it already.
_TELLING = BAD | {Outcome.XFAIL}


def missing(result: CheckResult, denied: frozenset[str] = frozenset()) -> list[Missing]:
    """What one check waits for; capabilities that are `denied` are nobody's plan."""
    if result.outcome is Outcome.UNSUPPORTED:
        lacking = result.reason.names if isinstance(result.reason, MissingCapability) else ()
        return [] if denied & set(lacking) else [Missing(CAPABILITY, name) for name in lacking]
    if result.outcome not in _TELLING:
        return []
    # Reports of an earlier suite tell of an excused check only what its entry says.
    found = _read(result.observed) or (_read(result.excused.text) if result.excused else None)
    return [found] if found else []


def _read(message: str) -> Missing | None:
    """The first thing that a message of PyTorch or of Python says is missing."""
    for pattern, kind, name in _SIGNS:
        match = pattern.search(message)
        if match:
            text = name.format(*match.groups())
            if kind == FUNCTION and text not in FUNCTIONS:
                continue
            return Missing(kind, GUARD_METHODS.get(text, text) if kind == GUARD else text)
    return None


def steps(report: Report) -> list[tuple[Missing, list[CheckResult]]]:
    """Steps and the checks that wait for them, those that most wait for first."""
    denied = frozenset(
        name
        for name, entry in report.run.capabilities.items()
        if entry.source == "declared" and not entry.value
    )
    waiting: dict[Missing, list[CheckResult]] = defaultdict(list)
    for result in report.checks:
        for step in missing(result, denied):
            waiting[step].append(result)
    return sorted(waiting.items(), key=lambda entry: (-len(entry[1]), entry[0].order))


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
        yield f"{len(results):>5}  {step.kind} {step.name}: {step.action}"
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
    groups = summary.grouped(wrong, MAX_CORRECTIONS)
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
