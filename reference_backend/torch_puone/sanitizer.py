# SPDX-License-Identifier: BSD-3-Clause
"""The stream sanitizer: finds accesses to memory that nothing orders, in one run.

It follows what every kernel, copy and fill reads and writes, and what streams, events and
synchronisations order. What it finds follows from the order of the program's calls, not from the
schedule. `PUONE_SANITIZE=1` turns it on from the first use of the device; `warn`, `raise` and
`collect` say what happens with reports, and `1` means `warn`. docs/sanitizer.md describes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from . import _C
from ._lazy import _lazy_call, _lazy_init

OnReport = Literal["warn", "raise", "collect"]
Kind = Literal["race", "memory_reuse", "host_race", "uninitialized_read", "event_never_recorded"]

VARIABLE = "PUONE_SANITIZE"
_CHOICES = ("warn", "raise", "collect")


@dataclass(frozen=True)
class Frame:
    """A frame of a Python stack."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Access:
    """One of the accesses of a report.

    Attributes:
        mode: "read", "write", "read and write"; "wait" of an event that was never recorded.
        argument: of the kernel or, where the host accesses pinned memory, of the operator.
        work: "kernel NAME", "memcpy_async", "memset_async" or "the CPU".
        operator: the outermost operator or the node of a backward pass that queued it; "" if none.
        backward: whether `stack` is the one of the forward operator.
        stream: "stream N of puone:D", "the default stream of puone:D" or "the host".
        stack: where it was queued, the outermost frame first.
    """

    mode: str
    argument: str
    work: str
    operator: str
    backward: bool
    stream: str
    stack: tuple[Frame, ...]


@dataclass(frozen=True)
class Report:
    """Something that the sanitizer found.

    Attributes:
        kind: "race", "memory_reuse" (a race with work on the tensor that had the memory before),
            "host_race" (the host changes or reads pinned memory too early), "uninitialized_read",
            "event_never_recorded".
        accesses: two, in the order in which they were issued; one of the last two kinds.
        address, bytes: the memory that both touch.
        allocated_by: the operator that allocated it, "" if that is not known.
        missing: what would order the accesses.
    """

    kind: Kind
    accesses: tuple[Access, ...]
    address: int
    bytes: int
    allocated_by: str
    missing: str
    _text: str

    def __str__(self) -> str:
        return self._text


def enable(on_report: OnReport = "warn") -> None:
    """Wait for all devices, then watch all threads.

    Args:
        on_report: what happens with a report, besides that `reports()` has it: "warn" warns,
            "raise" lets the call that completes the error raise RuntimeError, behind its work
            (for the host's own accesses to pinned memory: the next call that queues work);
            "collect" nothing.

    Memory that was written before counts as initialised. Done again, it changes `on_report`.
    Raises RuntimeError while a graph is being captured. A graph that was captured before is not
    followed; its first launch warns.
    """
    if on_report not in _CHOICES:
        raise ValueError(f"on_report must be one of {', '.join(_CHOICES)}, not {on_report!r}")
    _lazy_init()
    _C.sanitizer_enable(on_report)


def disable() -> None:
    """Stop watching. `reports()` keeps what was found."""
    _C.sanitizer_disable()


def is_enabled() -> bool:
    """Whether the sanitizer watches."""
    return _C.sanitizer_is_enabled()


def reports() -> list[Report]:
    """What was found since the start or `clear()`, each pair of places in the program once."""
    return [_report(found) for found in _C.sanitizer_reports()]


def clear() -> None:
    """Forget the reports."""
    _C.sanitizer_clear()


@contextmanager
def watch(on_report: OnReport = "raise") -> Iterator[list[Report]]:
    """Watch a block of code. The list that it gives has the block's reports when the block ends.

    Blocks may be nested: each has its own reports, and behind it the sanitizer goes on as before.
    `reports()` has those of all. With "raise" the end of a block that nothing has left before
    raises RuntimeError if there are reports: what the host does to pinned memory too early cannot
    raise where it happens.
    """
    _lazy_init()  # which may turn it on, because of the variable
    before = _C.sanitizer_reaction()
    enable(on_report)
    block = _C.sanitizer_begin_block()
    found: list[Report] = []
    try:
        yield found
    finally:
        if before is None:
            disable()
        else:
            enable(before)
        found.extend(map(_report, _C.sanitizer_end_block(block)))
    if found and on_report == "raise":
        raise RuntimeError(str(found[0]))


def _report(found: dict[str, Any]) -> Report:
    return Report(
        kind=found["kind"],
        accesses=tuple(_access(access) for access in found["accesses"]),
        address=found["address"],
        bytes=found["bytes"],
        allocated_by=found["allocated_by"],
        missing=found["advice"],
        _text=found["text"],
    )


def _access(found: dict[str, Any]) -> Access:
    stack = tuple(Frame(file, line, function) for file, line, function in found["frames"])
    return Access(
        mode=found["mode"],
        argument=found["argument"],
        work=found["work"],
        operator=found["operator"],
        backward=found["backward"],
        stream=found["stream"],
        stack=stack[::-1],
    )


def _enable_from_environment() -> None:
    """Queue what PUONE_SANITIZE asks for until the device is used first."""
    value = os.environ.get(VARIABLE, "")
    if value in ("", "0"):
        return
    on_report = "warn" if value == "1" else value
    if on_report not in _CHOICES:
        raise ValueError(f"{VARIABLE} must be 0, 1, {', '.join(_CHOICES)}, not {value!r}")
    _lazy_call(lambda: _C.sanitizer_enable(on_report))
