# SPDX-License-Identifier: BSD-3-Clause
"""Operators in functions that torch.compile compiled, against the CPU's eager results.

To compile takes a thousand times as long as to call, so these checks are a part of the widest
selection only, and have few samples each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any, ClassVar

import torch

from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.check import Check
from torch_conformance.authoring.compare import Difference
from torch_conformance.authoring.compiling import freshly_compiled
from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import database, policy
from torch_conformance.opinfo.repro import Recipe
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Incomparable, Seen, Topic, register
from torch_conformance.spec.mismatch import Mismatch

#: Of each operator.
SAMPLES = 3


def is_on_device(sample: Sample) -> bool:
    """Whether anything in the arguments is elsewhere than on the CPU."""
    devices = [tensor.device for tensor in sample.tensors()]
    devices += [value for value in sample.kwargs.values() if isinstance(value, torch.device)]
    return any(device.type != "cpu" for device in devices)


def _compiled(operator: Callable[..., Any]) -> Callable[..., Any]:
    # In a function of ours: Dynamo reads Python, and an operator may be a builtin.
    def call(*args: Any, **kwargs: Any) -> Any:
        return operator(*args, **kwargs)

    return freshly_compiled(call, fallback_random=True)


@cache
def compiles_for_the_cpu() -> bool:
    """Whether this machine can compile for the CPU at all: it may have no C++ compiler."""
    try:
        return bool(_compiled(lambda x: x + 1)(torch.ones(2)).sum() == 4)
    except Exception:
        return False


class InCompiledCode(Topic):
    """What the topics of compiled operators share."""

    number = ""
    quick: ClassVar[tuple[str, ...]] = ()
    standard = frozenset()
    needs = ("compile",)
    _also_on_the_cpu = False

    def operator(self, sample: Sample) -> Callable[..., Any]:
        """The operator, compiled where the sample is on the device."""
        is_compiled = self._also_on_the_cpu or is_on_device(sample)
        return _compiled(self.op.op) if is_compiled else self.op.op

    def judge(self, dev: Device, sample: Sample) -> Difference | str | None:
        """As every topic; where inductor fails for the CPU, too, the backend is not to blame."""
        try:
            wrong = super().judge(dev, sample)
            if self._is_decomposed_by_device(wrong):
                raise Incomparable("PyTorch decomposes it into other sizes than the CPU's")
            if wrong is not None and self._differs_on_the_cpu(dev, sample):
                raise Incomparable("compiled for the CPU, it differs from eager, too")
            return wrong
        except Incomparable:
            raise
        except Exception:
            refused = self._refused_on_the_cpu(sample)
            if refused is None or not compiles_for_the_cpu():
                raise
            reason = f"it cannot be compiled for the CPU: {first_line(refused)}"
            raise Incomparable(reason) from None

    def _is_decomposed_by_device(self, wrong: Difference | str | None) -> bool:
        return (
            self.op.name in policy.DECOMPOSED_BY_DEVICE
            and isinstance(wrong, Difference)
            and wrong.mismatch == Mismatch.SHAPE
        )

    def _compiled_for_the_cpu(self, sample: Sample) -> Seen:
        self._also_on_the_cpu = True
        try:
            return self.act(self.own(sample))
        finally:
            self._also_on_the_cpu = False

    def _differs_on_the_cpu(self, dev: Device, sample: Sample) -> bool:
        eager = self.act(self.own(sample)).values
        found = self._difference(dev, sample, self._compiled_for_the_cpu(sample).values, eager)
        return found is not None

    def _refused_on_the_cpu(self, sample: Sample) -> Exception | None:
        try:
            self._compiled_for_the_cpu(sample)
        except Exception as error:
            return error
        return None


class Compiled(InCompiledCode):
    """Calls the operator from compiled code."""

    name = "compiled"
    sentence = "gives the CPU's results in a compiled function."
    recipe = Recipe("op", ("return torch.compile(lambda *a, **k: op(*a, **k))({call})",))

    def required(self) -> str:
        return "COMPILE-001"

    def dtypes(self) -> set[torch.dtype]:
        return set(super().dtypes()) & {torch.float32}

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        return islice(self.database_samples(dtype), SAMPLES)

    def act(self, sample: Sample) -> Seen:
        return Seen(sample.call(self.operator(sample)))


def checks() -> list[Check]:
    """The checks of every operator; registers them."""
    return register(map(Compiled, database.operators()), __file__)
