# SPDX-License-Identifier: BSD-3-Clause
"""Forward results of every operator, variant and dtype of PyTorch's database against the CPU."""

from __future__ import annotations

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database, policy
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Seen, Topic, register


class Forward(Topic):
    """Calls the operator."""

    name = "forward"
    requirement = "OPINFO-001"
    sentence = "gives the CPU's results."

    def required(self) -> str:
        without_values = policy.UNINITIALISED | policy.RANDOM
        return "OPINFO-002" if self.op.name in without_values else self.requirement

    def act(self, sample: Sample) -> Seen:
        return Seen(sample.call(self.op.op))


def checks() -> list[Check]:
    """The checks of every operator and dtype that the CPU has; registers them."""
    return register(map(Forward, database.operators()), __file__)
