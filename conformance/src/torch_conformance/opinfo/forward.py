# SPDX-License-Identifier: BSD-3-Clause
"""Forward results of every operator, variant and dtype of PyTorch's database against the CPU."""

from __future__ import annotations

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database, policy
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Seen, Topic, register
from torch_conformance.spec.operator_families import of_operator, requirement

WITHOUT_VALUES = "002"
"""The number of the requirements of what is uninitialised or random."""


class Forward(Topic):
    """Calls the operator."""

    name = "forward"
    number = "001"
    sentence = "gives the CPU's results."

    def required(self) -> str:
        if policy.has_values(self.op):
            return super().required()
        return requirement(of_operator(self.op.name), WITHOUT_VALUES)

    def act(self, sample: Sample) -> Seen:
        return Seen(sample.call(self.op.op))


def checks() -> list[Check]:
    """The checks of every operator and dtype that the CPU has; registers them."""
    return register(map(Forward, database.operators()), __file__)
