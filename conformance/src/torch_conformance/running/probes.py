# SPDX-License-Identifier: BSD-3-Clause
"""Capabilities of a backend: what its descriptor declares, and probes for the rest."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from torch_conformance.authoring.check import Check
from torch_conformance.results.report import Capability
from torch_conformance.running.capability_probes import PROBES, dtype_probe
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import COSTLY, MEANING
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import Outcome

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device

PREFIX = "probe/"
# Before the name of a dtype: whether tensors of it come back from the device as they went.
DTYPE = "dtype_"
PROBE_DEADLINE = 20.0
# Outcomes of a probe that mean broken.
_BROKEN = {
    Outcome.FAIL: "its probe found that",
    Outcome.ERROR: "its probe raised",
    Outcome.CRASH: "its probe crashed:",
    Outcome.TIMEOUT: "its probe hung:",
    Outcome.DEVICE_LOST: "its probe lost the device:",
}


def to_probe(descriptor: Descriptor, needed: Container[str] = COSTLY) -> list[Check]:
    """One check for each capability that the descriptor leaves open; it passes if it is there.

    Of the costly capabilities there are only those `needed`.
    """
    known = declarations(descriptor).keys() | {name for name in COSTLY if name not in needed}
    startup = descriptor.deadlines.startup
    return [check_of(name, startup) for name in MEANING if name in PROBES and name not in known]


def declarations(descriptor: Descriptor) -> dict[str, bool]:
    """What the descriptor says of capabilities; a dtype that it calls unsupported is denied."""
    denied = {name: False for name in descriptor.dtypes.unsupported if name in MEANING}
    return denied | descriptor.capabilities


def check_of(name: str, startup: float = 0.0) -> Check:
    """The probe of a capability, or of a dtype, in the form in which the runner runs things.

    `startup` is how many seconds it may take to load the backend.
    """
    probe = PROBES.get(name) or dtype_probe(name.removeprefix(DTYPE))

    def body(dev: Device) -> None:
        absence = probe.absence(dev)
        if absence is not None:
            dev.unsupported(absence)

    deadline = PROBE_DEADLINE + (startup if probe.loads else 0.0)
    return Check(PREFIX + name, (), body, deadline=deadline, file=probe.file)


def capabilities(descriptor: Descriptor, results: Iterable[Result]) -> dict[str, Capability]:
    """The table of the report, from what was declared and what was found.

    A costly capability that nothing needed is not in it.
    """
    found = {r.id.removeprefix(PREFIX): r for r in results}
    declared = declarations(descriptor)
    return {
        name: _entry(declared.get(name), found.get(name))
        for name in MEANING
        if name not in COSTLY or name in declared or name in found
    }


def _entry(declared: bool | None, result: Result | None) -> Capability:
    if declared is not None:
        return Capability(value=declared, source="declared")
    return Capability(
        value=result is not None and result.outcome is Outcome.PASS,
        source="probed",
        broken=broken(result) if result else None,
    )


def broken(result: Result) -> str | None:
    """What a probe saw of a capability that is broken; None for one that is present or absent."""
    how = _BROKEN.get(result.outcome)
    first, *_ = result.message.splitlines() or [""]
    return None if how is None else f"{how} {first}".rstrip()
