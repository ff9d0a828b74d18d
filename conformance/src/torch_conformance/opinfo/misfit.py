# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that do not fit together: the samples of an operator with one argument changed.

A tensor is longer by one, has a dimension more or none, or a whole number is far away. Where the
CPU raises, and PyTorch's shape function too, the sizes alone forbid the call, and the device has to
raise, too, at the latest when it is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils import _pytree

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import database, policy, repro, shapes
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import Incomparable, Topic, register, supported_dtypes
from torch_conformance.opinfo.without_backend import without_accelerator

_TENSORS: dict[str, Callable[[Tensor], Tensor]] = {
    "longer": lambda x: torch.cat([x, x.narrow(-1, 0, 1)], -1),
    "with a dimension more": lambda x: x.unsqueeze(0),
    "without dimensions": lambda x: x.reshape(-1)[0].clone(),
}
_FAR = (100, -100)


class Misfit(Topic):
    """Calls the operator with arguments that do not fit together."""

    name = "misfit"
    sentence = "refuses arguments that do not fit together."
    mutates = True
    most = 2
    recipe = repro.RAISES

    def required(self) -> str:
        return "OP-030"

    def dtypes(self) -> Iterable[torch.dtype]:
        """One stands for all: sizes are checked before anything is computed."""
        supported = supported_dtypes(self.op)
        names = (getattr(torch, name) for name in self.quick)
        return [next(dtype for dtype in names if dtype in supported)]

    def make(self, dtype: torch.dtype) -> Iterable[Sample]:
        return [each for sample in super().make(dtype) for each in changed(sample)]

    def judge(self, dev: Device, sample: Sample) -> str | None:
        by_shapes = shapes.refusal(self.op.op, sample)
        if by_shapes is None or isinstance(by_shapes, NotImplementedError):
            raise Incomparable("PyTorch's function of shapes does not refuse it")
        with without_accelerator():
            by_cpu = self._raised(self.own(sample))
        if by_cpu is None:
            raise Incomparable("the CPU does not refuse it")
        there, _ = self._moved(dev, sample)
        found = self._raised(there, dev.synchronize)
        if isinstance(found, NotImplementedError) and not isinstance(by_cpu, NotImplementedError):
            raise found  # for want of a kernel, and not because of the sizes
        if isinstance(found, (type(by_cpu), type(by_shapes))):
            return None
        return f"{shapes.described(found)}; the CPU raises {shapes.described(by_cpu)}"


def changed(sample: Sample) -> Iterator[Sample]:
    """The sample with each of its arguments changed in turn, in each way."""
    leaves, form = _pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    for at, leaf in enumerate(leaves):
        for how, value in _instead(leaf):
            parts = _pytree.tree_unflatten([*leaves[:at], value, *leaves[at + 1 :]], form)
            given, args, kwargs = parts
            variant = f"argument {at} {how}"
            yield replace(sample, input=given, args=args, kwargs=kwargs, variant=variant)


def _instead(leaf: object) -> Iterator[tuple[str, object]]:
    if isinstance(leaf, Tensor):
        if leaf.layout == torch.strided and leaf.dim() and leaf.numel():
            for how, change in _TENSORS.items():
                yield how, change(leaf)
    elif type(leaf) is int:
        for value in _FAR:
            yield str(value), value


def checks() -> list[Check]:
    """One check for every operator but those of each element, which any sizes fit."""
    bodies = [Misfit(op) for op in database.operators() if not policy.is_of_each_element(op)]
    return register((body for body in bodies if supported_dtypes(body.op)), __file__)
