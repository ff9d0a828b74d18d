# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments: the exception that PyTorch's database names for them, and its message."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import torch

from torch_conformance.authoring.backend import text_of
from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import database, policy, repro
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Incomparable, Topic, first_line, seed_everything
from torch_conformance.opinfo.transfer import CPU, Transfer
from torch_conformance.opinfo.without_backend import without_accelerator


class Error(Topic):
    """Calls the operator with arguments that it must not accept."""

    name = "error"
    number = "007"
    sentence = "raises the documented exception for wrong arguments."
    mutates = True
    recipe = repro.Recipe(
        "op",
        (
            "try:",
            "    op({call})",
            "except Exception as error:",
            "    return repr(error)",
            "return 'nothing is raised'",
        ),
    )

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
        complaint = self._complaint(sample, dev.synchronize)
        if complaint is None:
            return None
        transfer = Transfer(CPU)
        parts = transfer.move((sample.input, sample.args, sample.kwargs))
        on_cpu = replace(sample, input=parts[0], args=parts[1], kwargs=parts[2])
        with without_accelerator():
            of_cpu = self._complaint(on_cpu, lambda: None)
        if not dev.is_accelerator or of_cpu is not None:
            raise Incomparable(f"it does not raise what the database says: {complaint}")
        return complaint

    def _complaint(self, sample: Sample, wait: Callable[[], None]) -> str | None:
        """What is wrong with the exception, which may come as late as the device is waited for."""
        assert sample.error is not None
        kind, pattern = sample.error
        due = f"expected {kind.__name__} with a message like {pattern!r}"
        try:
            sample.call(self.op.op)
            wait()
        except Exception as error:
            text = text_of(error)
            if isinstance(error, kind) and re.search(pattern, text):
                return None
            return f"{type(error).__name__}: {first_line(error)}; {due}"
        return f"nothing was raised; {due}"


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
