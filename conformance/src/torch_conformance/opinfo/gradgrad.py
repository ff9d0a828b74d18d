# SPDX-License-Identifier: BSD-3-Clause
"""Double backward: gradients of gradients against the CPU's."""

from __future__ import annotations

from typing import Any

import torch

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database, policy, precision
from torch_conformance.opinfo.gradient import Gradient, cotangents, differentiated, inputs, outputs
from torch_conformance.opinfo.repro import Recipe
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Seen, register


class GradGrad(Gradient):
    """Differentiates the results twice: to the inputs and to the weights of the first time."""

    name = "gradgrad"
    number = "009"
    sentence = "has the CPU's gradients of gradients."
    quick = ("float32", "complex64", "float64")
    standard = frozenset({"float32"})
    recipe = Recipe(
        "op",
        (
            "result = op({call})",
            "outputs = [result] if isinstance(result, torch.Tensor) else result",
            "outputs = [t for t in outputs if t.requires_grad]",
            "inputs = [t for t in ({tensors},) if t.requires_grad]",
            "ones = [torch.ones_like(t) for t in outputs]",
            "first = torch.autograd.grad(outputs, inputs, ones, create_graph=True)",
            "first = [t for t in first if t.requires_grad]",
            "ones = [torch.ones_like(t) for t in first]",
            "return torch.autograd.grad(first, inputs, ones, allow_unused=True)",
        ),
    )

    def dtypes(self) -> set[torch.dtype]:
        """Single precision, and double where there is."""
        return set(super().dtypes()) & {torch.float32, torch.float64}

    def rule(self) -> precision.Rule:
        return precision.SECOND_DERIVATIVES

    def canonical(self, sample: Sample, values: Any) -> Any:
        return values  # Elements of these dtypes do not come twice.

    def act(self, sample: Sample) -> Seen:
        leaves = inputs(sample)
        found = outputs(sample, self.op.op)
        weights = [weight.requires_grad_() for weight in cotangents(sample, found)]
        first = differentiated(found, leaves, weights, create_graph=True)
        again = [grad for grad in first if grad is not None and grad.requires_grad]
        if not again:
            return Seen([first, []])
        second = differentiated(again, [*leaves, *weights], cotangents(sample, again))
        return Seen([first, second])


def checks() -> list[Check]:
    """The checks of every operator that is twice differentiable; registers them."""
    twice = (
        op
        for op in database.operators()
        if op.supports_autograd and op.supports_gradgrad and policy.has_values(op)
    )
    return register(map(GradGrad, twice), __file__)
