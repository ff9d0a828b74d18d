# SPDX-License-Identifier: BSD-3-Clause
"""Operators on views whose conjugation or negation has not been carried out yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database
from torch_conformance.opinfo.layouts import dense_only
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import SOME, Seen, Topic, register


def _lazily_conjugated(tensor: Tensor) -> Tensor:
    """The same values, as the conjugate view of their conjugates."""
    return tensor.conj().resolve_conj().conj() if tensor.is_complex() else tensor


def _lazily_negated(tensor: Tensor) -> Tensor:
    """The same values, as the negative view of their negatives."""
    signed = tensor.is_floating_point() or tensor.is_complex()
    return torch._neg_view(-tensor) if signed else tensor


BITS: dict[str, Callable[[Tensor], Tensor]] = {
    "conjugate views": _lazily_conjugated,
    "negative views": _lazily_negated,
}


class MathBits(Topic):
    """Calls the operator with conjugate or negative views."""

    name = "math_bits"
    number = "006"
    sentence = "gives the CPU's results for conjugate and negative views."
    quick = ("complex64", "float32", "float64")
    standard = frozenset({"complex64"})
    most = SOME

    def dtypes(self) -> set[torch.dtype]:
        """Complex dtypes, and the real ones of which their parts can be."""
        lazy = {torch.float32, torch.float64, torch.complex64, torch.complex128}
        return lazy & set(super().dtypes())

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        """The first sample with each bit, the others with one of them in turns."""
        names = [name for name in BITS if dtype.is_complex or BITS[name] is _lazily_negated]
        for index, sample in enumerate(self.database_samples(dtype)):
            known = self._known(sample)
            for name in names if index == 0 else [names[index % len(names)]]:
                yield sample.map(dense_only(BITS[name]), variant=name, known=known)

    def _known(self, sample: Sample) -> Any:
        """The result for plain tensors: with lazy ones, the CPU itself is wrong here and there."""
        try:
            return self.act(self.own(sample)).values
        except Exception:
            return None  # The CPU will say so again.

    def act(self, sample: Sample) -> Seen:
        return Seen(sample.call(self.op.op))


def checks() -> list[Check]:
    """The checks of every operator that has complex or floating-point inputs; registers them."""
    return register(map(MathBits, database.operators()), __file__)
