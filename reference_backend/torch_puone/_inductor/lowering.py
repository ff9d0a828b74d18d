# SPDX-License-Identifier: BSD-3-Clause
"""What inductor decides by the names of devices that it knows, decided for this one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor import lowering as inductor_lowering
from torch._inductor.codegen.common import pointwise_overrides_data
from torch._inductor.graph import GraphLowering
from torch._inductor.lowering import fallback_handler, lowerings
from torch.utils._pytree import tree_leaves

from .overrides import FUNCTIONS
from .runtime import blocks_use_all_cores
from .source import COSTLY
from .types import STORED

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


def _call_where(overload: torch._ops.OpOverload, when: Callable[..., bool]) -> None:
    """Where `when` holds for the arguments, graphs call the operator, which is not lowered."""
    lowering = lowerings[overload]
    called = fallback_handler(overload, add_to_fallback_set=False)

    @functools.wraps(lowering)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        return (called if when(*args, **kwargs) else lowering)(*args, **kwargs)

    lowerings[overload] = lowered


def leave_to_operators(device: str) -> None:
    """Graphs call operators that are lowered to operations that operations.h does not have."""
    names = [data.name for data in pointwise_overrides_data.values()]
    missing = [name for name in (*names, *OTHERS) if name not in FUNCTIONS]
    for overload in _overloads(missing):
        if overload in lowerings:
            _call_where(overload, lambda *args, **kwargs: _is_on(device, (args, kwargs)))


def compute_on(own: str) -> None:
    """Operations on a tensor of the device and a number of the CPU are the device's.

    Inductor takes the first operand's device, unless another is of a device that it knows.
    """
    is_known = inductor_lowering.is_gpu

    # Only for the function that places operations, which looks this one up by its name.
    inductor_lowering.is_gpu = lambda device: device == own or is_known(device)


def leave_types_to_operators(device: str) -> None:
    """Graphs call operators for element types that the dialect does not have, such as float8."""
    is_unsupported = inductor_lowering.unsupported_input_tensor

    @functools.wraps(is_unsupported)
    def decided(t: torch.Tensor, node: Any = None) -> Any:
        foreign = t.device.type == device and t.dtype not in STORED
        return foreign or is_unsupported(t, node)

    # Inductor has a list for Triton only; its own functions look this one up by its name.
    inductor_lowering.unsupported_input_tensor = decided


def call_pow_with_numbers(device: str) -> None:
    """Powers of integers, one of which is a number of the CPU, keep it as it is.

    Inductor calls the operator for integers, but expands the number to the other's shape before,
    and no operator takes a tensor of another device then.
    """

    def is_mixed(base: Any, exponent: Any) -> bool:
        devices = {ir.get_device_type(operand) for operand in (base, exponent)}
        real = any(operand.get_dtype().is_floating_point for operand in (base, exponent))
        return devices == {device, "cpu"} and not real

    _call_where(_ATEN.pow.Tensor_Tensor, is_mixed)


def call_addcmul_with_a_number(device: str) -> None:
    """Let graphs call the operator where its first operand is a number of the CPU.

    Inductor has a lowering of its own for addcmul, which computes where the first operand is.
    """

    def adds_to_number(self: Any, *factors: Any, **kwargs: Any) -> bool:
        return ir.get_device_type(self) == "cpu" and _is_on(device, factors)

    _call_where(_ATEN.addcmul.default, adds_to_number)


def keep_layouts(device: str) -> None:
    """Leave convolutions the layout of their operands.

    Inductor would make them channels_last, but PyTorch has it that the result of a convolution of
    an out-of-tree device is contiguous (_conv_determine_backend_memory_format in Convolution.cpp).
    """
    decide = GraphLowering.decide_layout_opt

    @functools.wraps(decide)
    def decided(gm: torch.fx.GraphModule, *, is_inference: bool) -> bool:
        values = (node.meta.get("val") for node in gm.graph.nodes if node.op == "placeholder")
        on_device = (isinstance(v, torch.Tensor) and v.device.type == device for v in values)
        return not any(on_device) and decide(gm, is_inference=is_inference)

    # Inductor has no option for one device: its method is replaced, which mypy refuses.
    GraphLowering.decide_layout_opt = staticmethod(decided)  # type: ignore[method-assign]


def store_what_is_costly(device: str) -> None:
    """Store results of costly functions that are used twice, as inductor does on the CPU.

    A softmax has its exponentials in a sum and in quotients, which are two loops; so has a layer
    norm of a GELU its error functions.
    """
    should_store = ir.StorageBox.should_realize_on_reuse

    @functools.wraps(should_store)
    def decided(self: ir.StorageBox, users: int, **kwargs: Any) -> bool:
        is_costly = (
            users > 1
            and isinstance(self.data, ir.Pointwise)
            and ir.get_device_type(self.data) == device
            and not COSTLY.isdisjoint(self.data.inner_fn_opcount().used_ops)
        )
        return is_costly or should_store(self, users, **kwargs)

    # As above: upstream's method is replaced, because inductor has no option for one device.
    ir.StorageBox.should_realize_on_reuse = decided  # type: ignore[method-assign]


def count_positions_in_order(device: str) -> None:
    """Make the operand of argmax and argmin over several dimensions contiguous.

    Inductor may go through dimensions in another order, and would count positions in that one.
    """
    for packet in (_ATEN.argmax, _ATEN.argmin):
        for overload in (getattr(packet, name) for name in packet.overloads()):
            if overload in lowerings:
                lowerings[overload] = _of_contiguous(device, overload, lowerings[overload])


def _of_contiguous(
    device: str, overload: torch._ops.OpOverload, lowering: Callable[..., Any]
) -> Callable[..., Any]:
    called = fallback_handler(overload, add_to_fallback_set=False)

    @functools.wraps(lowering)
    def lowered(x: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        if axis is not None or not _is_on(device, x):
            return lowering(x, axis, *args, **kwargs)
        if not blocks_use_all_cores(x.get_device()):  # inductor makes one block of it
            return called(x, axis, *args, **kwargs)
        if len(x.get_size()) > 1:
            x = ir.ExternKernel.require_contiguous(x)
        return lowering(x, axis, *args, **kwargs)

    return lowered
