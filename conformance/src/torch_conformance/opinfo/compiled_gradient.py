# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of functions that torch.compile compiled, against the CPU's eager ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database, policy
from torch_conformance.opinfo.compiled import SAMPLES, InCompiledCode
from torch_conformance.opinfo.gradient import Gradient, cotangents, differentiated, inputs, outputs
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Seen, register


class CompiledGradient(InCompiledCode, Gradient):
    """Differentiates what the operator gives in compiled code."""

    name = "compiled_gradient"
    sentence = "has the CPU's gradients in a compiled function."
    number = Gradient.number

    def required(self) -> str:
        return "COMPILE-003"

    def dtypes(self) -> set[torch.dtype]:
        return super().dtypes() & {torch.float32}

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        return islice(super().make(dtype), SAMPLES)

    def act(self, sample: Sample) -> Seen:
        operator = self.operator(sample)
        leaves = inputs(sample)
        found = outputs(sample, operator)
        return Seen(differentiated(found, leaves, cotangents(sample, found)))


def checks() -> list[Check]:
    """The checks of every differentiable operator; registers them."""
    operators = (
        op for op in database.operators() if op.supports_autograd and policy.has_values(op)
    )
    return register(map(CompiledGradient, operators), __file__)
