# SPDX-License-Identifier: BSD-3-Clause
"""``out=``: the result in the tensor that was given, whatever its strides, or the CPU's refusal."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.observe import address
from torch_conformance.opinfo import database, policy, ties
from torch_conformance.opinfo.layouts import gaps, garbage, transposed
from torch_conformance.opinfo.repro import Recipe
from torch_conformance.opinfo.sample import Sample, tensors
from torch_conformance.opinfo.topic import SOME, Seen, Topic, register
from torch_conformance.opinfo.without_backend import raised_by_cpu

# A dtype that cannot hold the result; the CPU says whether that is an error.
_NARROWER = {True: torch.float32, False: torch.int32}


def _matching(result: Tensor) -> Tensor:
    return garbage(torch.empty_strided(result.size(), result.stride(), dtype=result.dtype))


def _strided(result: Tensor) -> Tensor:
    plain = _matching(result.contiguous())
    return transposed(plain) if result.dim() > 1 else gaps(plain)


def _spread(result: Tensor) -> Tensor:
    return gaps(_matching(result.contiguous()))


def _resized(result: Tensor) -> Tensor:
    return garbage(torch.empty((2, *result.shape, 1), dtype=result.dtype))


def _empty(result: Tensor) -> Tensor:
    return torch.empty(0, dtype=result.dtype)


def _narrow(result: Tensor) -> Tensor:
    narrower = _NARROWER[result.is_complex()] if result.dtype != torch.int32 else torch.bool
    return torch.zeros(result.shape, dtype=narrower)


# For every sample, and once for each operator and dtype.
ALWAYS: dict[str, Callable[[Tensor], Tensor]] = {"fitting": _matching, "strided": _strided}
ONCE: dict[str, Callable[[Tensor], Tensor]] = {
    "to be resized": _resized,
    "empty": _empty,
    "of another dtype": _narrow,
}


class Out(Topic):
    """Calls the operator with out=."""

    name = "out"
    number = "003"
    sentence = "writes the CPU's results to out=."
    mutates = True
    standard = frozenset({"float32", "bfloat16", "int64", "complex64", "bool"})
    most = SOME
    recipe = Recipe("op", ("return op({call})",))

    def make(self, dtype: torch.dtype) -> Iterator[Sample]:
        """Each sample with a tensor to write to, of the shape its result has on the CPU."""
        fresh = True
        for sample in self.database_samples(dtype):
            result = self._result(sample)
            if result is None:
                continue
            for name, prepare in ALWAYS.items():
                if name == "strided" and self.op.name in policy.CPU_OVERRUNS_OUT:
                    prepare = _spread
                yield _with_out(sample, result, prepare, name)
            if fresh and all(t.numel() for t in tensors(result)):
                fresh = False
                for name, prepare in ONCE.items():
                    yield _with_out(sample, result, prepare, name)

    def act(self, sample: Sample) -> Seen:
        outs = list(tensors(sample.kwargs["out"]))
        before = [(address(out), out.stride()) for out in outs]
        with _warnings(sample.variant in ONCE) as said:
            result = list(tensors(sample.call(self.op.op)))
        after = [(address(out), out.stride()) for out in outs]
        kept = {
            "returns out": [address(t) for t in result] == [address(t) for t in outs],
        }
        if sample.variant in ALWAYS:
            kept["keeps the memory and the strides of out"] = after == before
        else:
            kept["warns that out is resized"] = any("resized" in text for text in said)
        return Seen(outs, kept)

    def canonical(self, sample: Sample, values: Any) -> Any:
        found = values[0] if len(values) == 1 else tuple(values)
        return sample.process(ties.resolved(self.op.name, sample, found))

    def _result(self, sample: Sample) -> Tensor | tuple[Tensor, ...] | None:
        """The CPU's result if it is made of new, dense tensors only."""
        if "out" in sample.kwargs:
            return None
        try:
            result = sample.call(self.op.op)
        except Exception as error:
            if not raised_by_cpu(error, lambda: sample.call(self.op.op)):
                raise
            return None  # Without a result there is nothing that out= could hold.
        found = (result,) if isinstance(result, Tensor) else result
        if not isinstance(found, (list, tuple)) or not all(isinstance(t, Tensor) for t in found):
            return None
        if not found or any(t.layout != torch.strided for t in found):
            return None
        return result if isinstance(result, Tensor) else tuple(found)


def _with_out(
    sample: Sample, result: Any, prepare: Callable[[Tensor], Tensor], name: str
) -> Sample:
    prepared = prepare(result) if isinstance(result, Tensor) else tuple(map(prepare, result))
    kwargs, refused = {**sample.kwargs, "out": prepared}, name == "of another dtype"
    known = None if refused else list(tensors(result))
    return replace(sample, kwargs=kwargs, variant=name, refused=refused, known=known)


@contextmanager
def _warnings(heard: bool) -> Iterator[list[str]]:
    """The texts of warnings, those included that PyTorch gives once per process only."""
    said: list[str] = []
    if not heard:
        yield said
        return
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
            said += [str(warning.message) for warning in caught]
    finally:
        torch.set_warn_always(always)


def checks() -> list[Check]:
    """The checks of every operator that has out=; registers them."""
    initialised = (op for op in database.operators() if op.name not in policy.UNINITIALISED)
    return register((Out(op) for op in initialised if op.supports_out), __file__)
