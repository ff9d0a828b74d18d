# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments: the exception that PyTorch's database names for them, and its message."""

from __future__ import annotations

import re
from dataclasses import replace

import torch

from torch_conformance.authoring.backend import text_of
from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import database, policy, repro, shapes
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Incomparable, Topic, seed_everything
from torch_conformance.opinfo.transfer import CPU, moved
from torch_conformance.opinfo.without_backend import without_accelerator


class Error(Topic):
    """Calls the operator with arguments that it must not accept."""

    name = "error"
    number = "007"
    sentence = "raises the documented exception for wrong arguments."
    mutates = True
    recipe = repro.RAISES

    def __call__(self, dev: Device, dtype: torch.dtype | None = None) -> None:
        """Made for the device: of some backends the database asks less, or other exceptions."""
        seed_everything(dev.check_id, dev.seed)
        made = self.op.error_inputs_func(self.op, str(dev.device()))
        samples = [
            replace(Sample.of(wrong.sample_input), error=(wrong.error_type, wrong.error_regex))
            for wrong in made
        ]
        self.verify(dev, samples)

    def judge(self, dev: Device, sample: Sample) -> str | None:
        found = self._raised(sample, dev.synchronize)
        complaint = _complaint(sample, found)
        if complaint is None:
            return None
        same = moved(sample, CPU)
        with without_accelerator():
            on_cpu = self._raised(same)
        if (wrong := _complaint(sample, on_cpu)) is not None:
            raise Incomparable(f"it does not raise what the database says: {wrong}")
        if found is not None and shapes.refuses_alike(self.op.op, sample, found):
            return None
        return complaint


def _complaint(sample: Sample, found: Exception | None) -> str | None:
    """What is wrong with the exception, or None."""
    assert sample.error is not None
    kind, pattern = sample.error
    if isinstance(found, kind) and re.search(pattern, text_of(found)):
        return None
    return f"{shapes.described(found)}; expected {kind.__name__} with a message like {pattern!r}"


def checks() -> list[Check]:
    """One check for every operator of which the database knows wrong arguments; registers them."""
    bodies = [Error(op) for op in database.operators() if op.error_inputs_func is not None]
    made = [
        Check(
            id=f"opinfo/{Error.name}:{body.case()}",
            requirements=(body.required(),),
            body=body,
            needs=policy.needs(body.op),
            file=__file__,
            line=Error.__call__.__code__.co_firstlineno,
        )
        for body in bodies
    ]
    for check in made:
        REGISTRY.add(check)
    return made
