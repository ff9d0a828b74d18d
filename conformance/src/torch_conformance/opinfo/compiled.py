# SPDX-License-Identifier: BSD-3-Clause
"""Operators in functions that torch.compile compiled, against the CPU's eager results.

To compile takes a thousand times as long as to call, so these checks are a part of the widest
selection only, and have few samples each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar

import torch

from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.check import Check
from torch_conformance.authoring.compare import Difference
from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import database
from torch_conformance.opinfo.repro import Recipe
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Incomparable, Seen, Topic, register

#: Of each operator.
SAMPLES = 3


def is_on_device(sample: Sample) -> bool:
    """Whether anything in the arguments is elsewhere than on the CPU."""
    devices = [tensor.device for tensor in sample.tensors()]
    devices += [value for value in sample.kwargs.values() if isinstance(value, torch.device)]
    return any(device.type != "cpu" for device in devices)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled without what earlier compilations left."""
    import torch._inductor.config as inductor

    torch._dynamo.reset()

    @torch.compile
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def without_caches(*args: Any, **kwargs: Any) -> Any:
        with inductor.patch(force_disable_caches=True, fallback_random=True):
            return call(*args, **kwargs)

    return without_caches


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
        return compiled(self.op.op) if is_compiled else self.op.op

    def judge(self, dev: Device, sample: Sample) -> Difference | str | None:
        """As every topic; but what inductor does not compile for the CPU, it need not compile."""
        try:
            return super().judge(dev, sample)
        except Incomparable:
            raise
        except Exception:
            refused = self._refused_on_the_cpu(sample)
            if refused is None:
                raise
            reason = f"it cannot be compiled for the CPU: {first_line(refused)}"
            raise Incomparable(reason) from None

    def _refused_on_the_cpu(self, sample: Sample) -> Exception | None:
        self._also_on_the_cpu = True
        try:
            self.act(self.own(sample))
        except Exception as error:
            return error
        finally:
            self._also_on_the_cpu = False
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
