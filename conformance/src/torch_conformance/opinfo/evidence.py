# SPDX-License-Identifier: BSD-3-Clause
"""Whether an operator ran natively, by decomposition, or by falling back to the CPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from torch_conformance.authoring.device import Device

NATIVE, COMPOSITE, FALLBACK = "native", "composite", "fallback"
_COMPOSITES = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


def evidence(op: Any, dev: Device) -> str:
    """How the operator ran: by the backend's own count of fallbacks, then by the dispatcher."""
    if dev.fallbacks():
        return FALLBACK
    found = _dispatched(_candidates(op), torch._C._dispatch_key_for_device(dev.type))
    if found == FALLBACK and dev.has("fallback_counter"):
        return COMPOSITE  # The backend would have counted a fallback.
    return found


def _candidates(op: Any) -> tuple[str, ...]:
    """Names the operator may have in the aten namespace."""
    name = op.name
    names = (op.aten_name, name.replace(".", "_"), name.rpartition(".")[2])
    return tuple(dict.fromkeys(n for n in names if n))


@cache
def _dispatched(names: tuple[str, ...], key: str) -> str:
    overloads = [
        f"aten::{name}" + ("" if overload == "default" else f".{overload}")
        for name in names
        if hasattr(torch.ops.aten, name)
        for overload in getattr(torch.ops.aten, name).overloads()
    ]
    # TorchScript has overloads that the dispatcher does not know.
    overloads = [name for name in overloads if torch._C._dispatch_has_kernel(name)]
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    # The out variant counts, too: structured operators are registered through it.
    if any(has(overload, key) for overload in overloads):
        return NATIVE
    if not overloads or any(has(o, composite) for o in overloads for composite in _COMPOSITES):
        return COMPOSITE
    return FALLBACK
