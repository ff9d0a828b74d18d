# SPDX-License-Identifier: BSD-3-Clause
"""Capabilities of a backend: what its descriptor declares, and probes for the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch_conformance.authoring.check import Check
from torch_conformance.running.capability_probes import PROBES, dtype_probe
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import MEANING
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import Outcome

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device

PREFIX = "probe/"
# Before the name of a dtype: whether tensors of it come back from the device as they went.
DTYPE = "dtype_"
PROBE_DEADLINE = 20.0


def to_probe(descriptor: Descriptor) -> list[Check]:
    """One check for each capability that the descriptor leaves open; it passes if it is there."""
    return [
        check_of(name) for name in MEANING if name in PROBES and name not in descriptor.capabilities
    ]


def check_of(name: str) -> Check:
    """The probe of a capability, or of a dtype, in the form in which the runner runs things."""
    probe = PROBES.get(name) or dtype_probe(name.removeprefix(DTYPE))

    def body(dev: Device) -> None:
        if not probe(dev):
            dev.unsupported("absent")

    return Check(PREFIX + name, (), body, deadline=PROBE_DEADLINE)


def capabilities(
    descriptor: Descriptor, results: Iterable[Result]
) -> dict[str, dict[str, bool | str]]:
    """{name: {value, source}} for the report, from what was declared and what was found."""
    found = {r.id.removeprefix(PREFIX): r.outcome is Outcome.PASS for r in results}
    declared = descriptor.capabilities
    return {
        name: {
            "value": declared.get(name, found.get(name, False)),
            "source": "declared" if name in declared else "probed",
        }
        for name in MEANING
    }
