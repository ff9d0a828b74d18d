# SPDX-License-Identifier: BSD-3-Clause
"""Operators that graphs call as they are, because no operation of the dialect computes them.

Inductor decides that from tables that name the devices it knows: an operator without a lowering is
called, and one that is lowered to an unknown operation is an error. For the device, lowerings to
operations that operations.h does not have are replaced by calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.codegen.common import pointwise_overrides_data
from torch._inductor.lowering import fallback_handler, lowerings
from torch.utils._pytree import tree_leaves

from .overrides import FUNCTIONS

_ATEN = torch.ops.aten
#: Operations without a function, besides inductor's own table of special functions.
OTHERS = ("erfinv", "frexp", "ldexp", "lgamma", "nextafter")


def _overloads(names: list[str]) -> Iterator[torch._ops.OpOverload]:
    for name in names:
        for namespace in (_ATEN, torch.ops.prims):
            packet = getattr(namespace, name, None)
            if packet is not None:
                yield from (getattr(packet, each) for each in packet.overloads())


def _is_on(device: str, args: Any) -> bool:
    return any(
        isinstance(leaf, ir.IRNode) and ir.get_device_type(leaf) == device
        for leaf in tree_leaves(args)
    )


def _or_called(
    device: str, overload: torch._ops.OpOverload, lowering: Callable[..., Any]
) -> Callable[..., Any]:
    called = fallback_handler(overload, add_to_fallback_set=False)

    @functools.wraps(lowering)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        return (called if _is_on(device, (args, kwargs)) else lowering)(*args, **kwargs)

    return lowered


def leave_to_operators(device: str) -> None:
    names = [data.name for data in pointwise_overrides_data.values()]
    missing = [name for name in (*names, *OTHERS) if name not in FUNCTIONS]
    for overload in _overloads(missing):
        if overload in lowerings:
            lowerings[overload] = _or_called(device, overload, lowerings[overload])
