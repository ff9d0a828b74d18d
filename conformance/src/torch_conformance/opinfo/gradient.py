# SPDX-License-Identifier: BSD-3-Clause
"""Backward: gradients of every differentiable operator against the CPU's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import cycle
from typing import Any, ClassVar

import torch
from torch import Tensor

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database, policy, ties
from torch_conformance.opinfo.repro import Recipe
from torch_conformance.opinfo.sample import Sample, tensors
from torch_conformance.opinfo.topic import SOME, Seen, Topic, register, supported_dtypes

#: The variant whose incoming gradients have gaps between their elements, as those of a slice have.
STRIDED = "strided incoming gradient"


class Gradient(Topic):
    """Differentiates the results once."""

    name = "gradient"
    number = "008"
    sentence = "has the CPU's gradients."
    quick: ClassVar[tuple[str, ...]] = ("float32", "complex64", "float64")
    standard = frozenset({"float32", "bfloat16", "complex64"})
    derives = True
    most = SOME
    recipe = Recipe(
        "op",
        (
            "result = op({call})",
            "outputs = [result] if isinstance(result, torch.Tensor) else result",
            "outputs = [t for t in outputs if t.requires_grad]",
            "inputs = [t for t in ({tensors},) if t.requires_grad]",
            "torch.autograd.backward(outputs, [torch.ones_like(t) for t in outputs])",
            "return [t.grad for t in inputs]",
        ),
    )

    def dtypes(self) -> set[torch.dtype]:
        """The floating-point and complex dtypes of which the CPU has gradients."""
        backward = supported_dtypes(self.op) & set(self.op.supported_backward_dtypes("cpu"))
        return {dtype for dtype in backward if dtype.is_floating_point or dtype.is_complex}

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        """Samples whose differentiable inputs are leaves; every other has strided weights."""
        variants = cycle(("", STRIDED))
        for sample in self.database_samples(dtype, requires_grad=True):
            leaves = sample.map(lambda t: t.detach().requires_grad_(t.requires_grad))
            if any(tensor.requires_grad for tensor in leaves.tensors()):
                yield replace(leaves, variant=next(variants))

    def act(self, sample: Sample) -> Seen:
        leaves = inputs(sample)
        found = outputs(sample, self.op.op)
        return Seen(differentiated(found, leaves, cotangents(sample, found)))

    def canonical(self, sample: Sample, values: Any) -> Any:
        return ties.ordered(self.op.name, sample, values)


def inputs(sample: Sample) -> list[Tensor]:
    """The tensors to differentiate with respect to, each once."""
    found = {id(tensor): tensor for tensor in sample.tensors() if tensor.requires_grad}
    return list(found.values())


def outputs(sample: Sample, function: Any) -> list[Tensor]:
    """The differentiable results of a call."""
    result = sample.process(sample.call(function))
    found = [tensor for tensor in tensors(result) if tensor.requires_grad]
    if not found:
        raise RuntimeError("no result of the call is differentiable")
    return found


def differentiated(
    results: Sequence[Tensor], leaves: Sequence[Tensor], cotangents: Sequence[Tensor], **how: Any
) -> list[Tensor | None]:
    """The gradients; None for a leaf that the results do not depend on."""
    return list(torch.autograd.grad(results, leaves, cotangents, allow_unused=True, **how))


def cotangents(sample: Sample, results: Sequence[Tensor]) -> list[Tensor]:
    """Fixed weights of the elements of results, all different; on their devices."""
    is_strided = sample.variant == STRIDED
    return [_cotangent(result, is_strided) for result in results]


def _cotangent(result: Tensor, is_strided: bool) -> Tensor:
    shape = result.shape
    if not is_strided:
        weights = _weights(result.numel(), result.dtype)
        return weights.reshape(shape).to(result.device, copy=True)
    memory = _spread(result.numel(), result.dtype)
    return memory.reshape(*shape, 2).to(result.device, copy=True)[..., 1]


@lru_cache(256)
def _weights(count: int, dtype: torch.dtype) -> Tensor:
    weights = torch.linspace(0.5, 1.5, count, dtype=torch.float64)
    if dtype.is_complex:
        weights = torch.complex(weights, weights.flip(0) - 1.75)
    return weights.to(dtype)


@lru_cache(256)
def _spread(count: int, dtype: torch.dtype) -> Tensor:
    """The same weights behind numbers that nobody may read."""
    weights = _weights(count, dtype)
    return torch.stack([torch.full_like(weights, float("nan")), weights], -1)


def checks() -> list[Check]:
    """The checks of every differentiable operator; registers them."""
    return register(map(Gradient, _differentiable()), __file__)


def _differentiable() -> Iterator[Any]:
    return (op for op in database.operators() if op.supports_autograd and policy.has_values(op))
