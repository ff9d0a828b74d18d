# SPDX-License-Identifier: BSD-3-Clause
"""In-place variants: the result, in the tensor that was given, and known to autograd as changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.observe import address
from torch_conformance.opinfo import database
from torch_conformance.opinfo.repro import Recipe
from torch_conformance.opinfo.sample import Sample, tensors
from torch_conformance.opinfo.topic import Incomparable, Seen, Topic, register


class InPlace(Topic):
    """Calls the in-place variant of the operator."""

    name = "inplace"
    number = "004"
    sentence = "in place gives the CPU's result in the tensor it was called on."
    mutates = True
    standard = frozenset({"float32", "bfloat16", "int64", "complex64", "bool"})
    recipe = Recipe("inplace_variant", ("op({call})", "return {input}"))

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        """The database's samples, those included of which the result does not fit the input."""
        for made in self.op.sample_inputs_func(self.op, "cpu", dtype, False):
            grows = bool(made.broadcasts_input)
            variant = "result larger than the input" if grows else ""
            yield replace(Sample.of(made), refused=grows, variant=variant)

    def trust(self, sample: Sample, expected: Seen) -> None:
        """Some CPU kernels accept a result larger than the input, which no backend has to."""
        if sample.refused:
            raise Incomparable(f"the CPU itself accepts a {sample.variant}")
        super().trust(sample, expected)

    def act(self, sample: Sample) -> Seen:
        targets = list(tensors(sample.input))
        before = [(address(target), target._version) for target in targets]
        result = sample.call(self.op.inplace_variant)
        pairs = list(zip(targets, before, strict=True))
        return Seen(
            sample.input,
            {
                # A function of a list returns nothing.
                "returns its input": result is None or result is sample.input,
                "keeps the memory": all(address(t) == at for t, (at, _) in pairs),
                "increases the version": all(t._version > version for t, (_, version) in pairs),
            },
        )


def checks() -> list[Check]:
    """The checks of every operator that has an in-place variant; registers them."""
    having = (op for op in database.operators() if op.inplace_variant is not None)
    return register(map(InPlace, having), __file__)
