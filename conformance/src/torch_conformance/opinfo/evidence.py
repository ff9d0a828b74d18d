# SPDX-License-Identifier: BSD-3-Clause
"""Whether an operator ran natively, by decomposition, or by falling back to the CPU.

A backend that counts its fallbacks is believed. For any other, the calls that PyTorch's dispatcher
saw while samples ran are looked at: registrations alone do not tell where a boxed kernel computes,
nor what runs behind the kernels that PyTorch generates for structured operators.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import torch

from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import calls
from torch_conformance.opinfo.calls import Call

T = TypeVar("T")

NATIVE, COMPOSITE, FALLBACK = "native", "composite", "fallback"
#: How many samples of a check are observed: which kernel runs may depend on the sample.
OBSERVED = 64
_COMPOSITES = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
# They read numbers, which is never a fallback, however the backend does it.
_READS = frozenset({"item", "_local_scalar_dense", "is_nonzero"})


class Evidence:
    """How one operator runs on a device, from the samples of one check."""

    def __init__(self, op: Any, dev: Device, samples: int) -> None:
        self._names = _candidates(op)
        self._dev = dev
        self._key = torch._C._dispatch_key_for_device(dev.type)
        self._to_observe: set[int] = set()
        if dev.is_accelerator and not dev.has("fallback_counter"):
            # At random: samples that are alike follow each other, or come with a period.
            count = min(samples, OBSERVED)
            self._to_observe |= {*random.Random(samples).sample(range(samples), count)}
        self._used = 0
        self._seen: list[Call] = []

    def observe(self, use: Callable[[], T]) -> T:
        """Use the operator; note what the dispatcher called for some of the samples."""
        self._used += 1
        if self._used - 1 not in self._to_observe:
            return use()
        value, seen = calls.recorded(use)
        self._seen += seen
        return value

    def path(self) -> str:
        """One of the three words."""
        if self._dev.fallbacks():
            return FALLBACK
        registered = _dispatched(self._names, self._key)
        if self._dev.has("fallback_counter"):
            return COMPOSITE if registered == FALLBACK else registered
        return self._observed() if self._seen else registered

    def _observed(self) -> str:
        made = [call for root in self._seen for call in _without_reads(root)]
        kinds = [(call, self._kind(call)) for call in made]
        if any(kind == FALLBACK for _, kind in kinds):
            return FALLBACK
        own = any(kind == NATIVE and call.base in self._names for call, kind in kinds)
        return NATIVE if own else COMPOSITE

    def _kind(self, call: Call) -> str:
        """How one call ran, without what the operators that it is composed of did."""
        # Autograd's nodes are among the calls, too; the dispatcher refuses to look up their names.
        if not self._is_on_device(call):
            return COMPOSITE
        registered = _registered((call.overload,), self._key)
        if registered == COMPOSITE:
            return COMPOSITE
        if not call.devices:
            return registered
        if any(inner.moves(self._dev.type, "cpu") for inner in _without_reads(call)):
            return FALLBACK
        if registered == NATIVE:
            return NATIVE
        # The backend's boxed kernel. It computes on the CPU, out of sight, unless it infers the
        # shape of the result itself, on the meta device.
        infers = any("meta" in inner.devices for inner in _without_reads(call))
        return NATIVE if infers else FALLBACK

    def _is_on_device(self, call: Call) -> bool:
        """Whether a kernel of the device ran; what has no tensors has made one there."""
        here = self._dev.type in call.devices or (not call.devices and call.base in self._names)
        return here and call.name.startswith("aten::")


def _without_reads(call: Call) -> Iterator[Call]:
    """The call and those within it, but for reading numbers."""
    if call.base not in _READS:
        yield call
        for inner in call.children:
            yield from _without_reads(inner)


def _candidates(op: Any) -> tuple[str, ...]:
    """Names the operator may have in the aten namespace, without that of the in-place variant."""
    name = op.name
    bare = name.removeprefix("nn.functional.").removeprefix("special.")
    names = (op.aten_name, name.replace(".", "_"), bare)
    return tuple(dict.fromkeys(n.rstrip("_") for n in names if n))


@cache
def _dispatched(names: tuple[str, ...], key: str) -> str:
    """What the registrations of all overloads say."""
    overloads = tuple(
        f"aten::{name}" + ("" if overload == "default" else f".{overload}")
        for name in (*names, *(f"{name}_" for name in names))
        if hasattr(torch.ops.aten, name)
        for overload in getattr(torch.ops.aten, name).overloads()
    )
    return _registered(overloads, key)


@cache
def _registered(overloads: tuple[str, ...], key: str) -> str:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    # TorchScript has overloads that the dispatcher does not know.
    overloads = tuple(name for name in overloads if torch._C._dispatch_has_kernel(name))
    if not overloads:
        return COMPOSITE
    # The out variant counts, too: structured operators are registered through it.
    if any(has(overload, key) for overload in overloads):
        return NATIVE
    if any(has(o, composite) for o in overloads for composite in _COMPOSITES):
        return COMPOSITE
    return FALLBACK
