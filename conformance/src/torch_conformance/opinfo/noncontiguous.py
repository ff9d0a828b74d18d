# SPDX-License-Identifier: BSD-3-Clause
"""Operators on tensors that are not contiguous, or not at the start of their storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.compare import Difference
from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import database, layouts, policy, shapes
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import SOME, Incomparable, Seen, Topic, first_line, register

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "gaps": layouts.gaps,
    "transposed": layouts.transposed,
    "offset": layouts.offset,
    "expanded": layouts.expanded,
}


class Noncontiguous(Topic):
    """Calls the operator with its tensors in other arrangements of memory."""

    name = "noncontiguous"
    number = "005"
    sentence = "gives the CPU's results for tensors of any strides."
    standard = frozenset({"float32", "int64", "complex64", "bool"})
    most = SOME

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        """The first sample in every layout, the others in one layout each, in turns."""
        names = [n for n in LAYOUTS if n != "expanded" or policy.bears_repetition(self.op)]
        for index, sample in enumerate(self.database_samples(dtype)):
            for name in names if index == 0 else [names[index % len(names)]]:
                change = layouts.dense_only(LAYOUTS[name])
                yield sample.map(change, variant=name, origin=sample)

    def act(self, sample: Sample) -> Seen:
        return Seen(sample.call(self.op.op))

    def judge(self, dev: Device, sample: Sample) -> Difference | str | None:
        try:
            return super().judge(dev, sample)
        except Incomparable:
            raise
        except Exception as error:
            # A product that wants its rows dense says so by its function of shapes, which the
            # CPU's kernel need not ask, and a device may.
            assert sample.origin is not None
            strided, dense = (
                shapes.refuses_alike(self.op.op, each, error) for each in (sample, sample.origin)
            )
            if strided and not dense:
                raise Incomparable(f"PyTorch refuses the strides: {first_line(error)}") from None
            raise

    def _difference(
        self, dev: Device, sample: Sample, actual: Any, expected: Any
    ) -> Difference | None:
        found = super()._difference(dev, sample, actual, expected)
        if found is not None:
            # Kernels that are called by others only may take it for granted that rows are dense.
            plain = sample.map(layouts.dense_only(Tensor.contiguous))
            known = replace(sample, known=self._values(plain))
            self.trust(known, Seen(self.canonical(sample, expected)))
        return found


def checks() -> list[Check]:
    """The checks of every operator that reads tensors; registers them."""
    return register(map(Noncontiguous, database.operators()), __file__)
