# SPDX-License-Identifier: BSD-3-Clause
"""Operators in functions that torch.compile compiled, against the CPU's eager results.

To compile takes a thousand times as long as to call, so these checks are a part of the widest
selection only, and have few samples each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database
from torch_conformance.opinfo.repro import Recipe
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Seen, Topic, register

#: Of each operator.
SAMPLES = 3


def is_on_device(sample: Sample) -> bool:
    """Whether anything in the arguments is elsewhere than on the CPU."""
    devices = [tensor.device for tensor in sample.tensors()]
    devices += [value for value in sample.kwargs.values() if isinstance(value, torch.device)]
    return any(device.type != "cpu" for device in devices)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, generated anew."""
    import torch._inductor.config as inductor

    torch._dynamo.reset()

    @torch.compile
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def without_caches(*args: Any, **kwargs: Any) -> Any:
        with inductor.patch(force_disable_caches=True, fallback_random=True):
            return call(*args, **kwargs)

    return without_caches


class Compiled(Topic):
    """Calls the operator from compiled code."""

    name = "compiled"
    number = ""
    sentence = "gives the CPU's results in a compiled function."
    quick = ()
    standard = frozenset()
    needs = ("compile",)
    recipe = Recipe("op", ("return torch.compile(lambda *a, **k: op(*a, **k))({call})",))

    def required(self) -> str:
        return "COMPILE-001"

    def dtypes(self) -> set[torch.dtype]:
        return set(super().dtypes()) & {torch.float32}

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        return islice(self.database_samples(dtype), SAMPLES)

    def act(self, sample: Sample) -> Seen:
        operator = compiled(self.op.op) if is_on_device(sample) else self.op.op
        return Seen(sample.call(operator))


def checks() -> list[Check]:
    """The checks of every operator; registers them."""
    return register(map(Compiled, database.operators()), __file__)
