# SPDX-License-Identifier: BSD-3-Clause
"""Operators without a kernel for the device: they run on the CPU and are counted, or raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, noise, ramp, while_held
from torch_conformance.authoring.origin import is_verdict
from torch_conformance.checks.operator._programs import scoped_library

#: Operators with a CPU kernel only: schema, kernel, and a call that doubles the first of two
#: tensors. A call that returns nothing changes that tensor.
_CPU_ONLY: dict[str, tuple[str, Callable[..., Any], Callable[[Any, Tensor, Tensor], Any]]] = {
    "value": ("twice(Tensor x) -> Tensor", lambda x: x * 2, lambda op, a, b: op(a)),
    "mutation": (
        "twice_(Tensor(a!) x) -> ()",
        lambda x: _discard(x.mul_(2)),
        lambda op, a, b: op(a.t()),
    ),
    "twice": (
        "add_to_(Tensor x, Tensor(a!) y) -> ()",
        lambda x, y: _discard(y.add_(x)),
        lambda op, a, b: op(a, a),
    ),
    "optional": (
        "pick(Tensor x, Tensor? y, Tensor?[] z) -> Tensor",
        lambda x, y, z: x + (y if y is not None else 0) + sum(t for t in z if t is not None),
        lambda op, a, b: op(a, None, [None, b]),
    ),
}


def _cpu_only(library: torch.library.Library, schema: str, kernel: Callable[..., Any]) -> Any:
    """Define an operator with a CPU kernel only."""
    library.define(schema)
    name = schema.partition("(")[0]
    library.impl(name, kernel, "CPU")
    return getattr(torch.ops.conformance_check, name)


@check("operator/cpu_only", "OP-024", cases=_CPU_ONLY)
def operators_without_a_device_kernel_fall_back_or_say_so(dev: Device, case: str) -> None:
    """An operator with a CPU kernel only either gives the right result on the device or raises."""
    schema, kernel, call = _CPU_ONLY[case]
    a, b = (ramp((3, 4)).to(dev.device(), copy=True) for _ in range(2))
    with scoped_library() as library:
        operator = _cpu_only(library, schema, kernel)
        try:
            result = call(operator, a, b)
        except NotImplementedError as error:
            assert schema.partition("(")[0] in str(error)
            return
    doubled = a if result is None else result
    assert doubled.device.type == dev.type
    dev.assert_equal(doubled, ramp((3, 4)) * 2)


@check("operator/cpu_only:list", "OP-024")
def lists_without_a_device_kernel_are_written_or_refused(dev: Device) -> None:
    """An operator with a CPU kernel only changes every tensor of a list of the device or raises."""
    a, b = (ramp((3, 4)).to(dev.device(), copy=True) for _ in range(2))
    with scoped_library() as library:
        operator = _cpu_only(
            library,
            "fill_all(Tensor(a!)[] x, float value) -> ()",
            lambda x, value: _discard([t.fill_(value) for t in x]),
        )
        try:
            operator([a, b.t()], 3.0)
        except NotImplementedError as error:
            assert "fill_all" in str(error)
            return
    for written in (a, b):
        dev.assert_equal(written, torch.full((3, 4), 3.0))


@check("operator/fallback_order", "OP-024", needs=("delay",))
def operators_without_a_device_kernel_wait_for_their_operands(dev: Device) -> None:
    """An operator with a CPU kernel only sees the work queued before it, or raises."""
    x = torch.zeros(4096, device=dev.device())
    dev.synchronize()
    with scoped_library() as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda t: t / 2, "CPU")
        dev.delay(40)
        x.fill_(6)
        try:
            result = torch.ops.conformance_check.halve(x)
        except NotImplementedError:
            return
    dev.assert_equal(result, torch.full((4096,), 3.0))


@check("operator/fallback_device", "OP-006", needs=("multi_device",))
def operators_without_a_device_kernel_return_where_their_operands_live(dev: Device) -> None:
    """An operator with a CPU kernel only returns on the device of its operand, or raises."""
    x = ramp((3, 4)).to(dev.device(1))
    before = torch.accelerator.current_device_index()
    with scoped_library() as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda t: t / 2, "CPU")
        try:
            result = torch.ops.conformance_check.halve(x)
        except NotImplementedError:
            return
    assert result.device == x.device
    assert torch.accelerator.current_device_index() == before
    dev.assert_equal(result, ramp((3, 4)) / 2)


def _discard(_: Any) -> None:
    """The kernel of an operator that returns nothing."""


def _first_row(dev: Device, x: Tensor) -> Tensor | None:
    """What a view operator with a CPU kernel only returns; None where it raises."""
    with scoped_library() as library:
        library.define("first_row(Tensor(a) x) -> Tensor(a)")
        library.impl("first_row", lambda t: t.as_strided((4,), (1,)), "CPU")
        try:
            row: Tensor = torch.ops.conformance_check.first_row(x)
        except (RuntimeError, NotImplementedError):
            assert dev.is_accelerator
            return None
    return row


@check("operator/fallback_view:function", "OP-039")
def a_view_never_becomes_a_copy(dev: Device) -> None:
    """A view operator with a CPU kernel only either has the storage of its input or raises."""
    x = ramp((3, 4)).to(dev.device(), copy=True)
    row = _first_row(dev, x)
    if row is not None:
        assert row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@check("operator/fallback_view:in_place", "OP-039")
def writes_to_a_view_are_never_lost(dev: Device) -> None:
    """A write to the view that an operator with a CPU kernel only returns reaches its input."""
    x = ramp((3, 4)).to(dev.device(), copy=True)
    row = _first_row(dev, x)
    if row is not None:
        row.fill_(9)
        dev.assert_equal(x[0], torch.full((4,), 9.0))


@check("operator/fallback_counter", "OP-025", needs=("fallback_counter", "accelerator"))
def the_backend_counts_its_fallbacks(dev: Device) -> None:
    """An operator that has no device kernel is counted under its name; data movement is not."""
    dev.reset_fallback_counts()
    x = ramp((4, 6)).to(dev.device())
    x.t()[1:].contiguous().cpu()
    assert sum(dev.fallback_counts().values()) == 0, "moving data was counted as a fallback"
    with scoped_library() as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda t: t / 2, "CPU")
        for _ in range(3):
            torch.ops.conformance_check.halve(x)
    counts = dev.fallback_counts()
    found = {name: n for name, n in counts.items() if "halve" in name}
    assert list(found.values()) == [3], counts
    dev.reset_fallback_counts()
    assert not dev.fallback_counts()


_LAUNCHED: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + 1,
    "relu": torch.relu,
    "sum": lambda x: x.sum(),
    "mm": lambda x: x @ x,
    "softmax": lambda x: x.softmax(1),
    "cat": lambda x: torch.cat([x, x]),
    "fill": lambda x: torch.empty_like(x).fill_(x[0, 0]),
}


@check(
    "operator/fallback_hidden",
    ("OP-025", "STREAM-047"),
    needs=("fallback_counter", "accelerator", "delay"),
    cases=tuple(_LAUNCHED),
)
def what_waits_for_its_stream_is_counted(dev: Device, case: str) -> None:
    """An operator that returns only when its stream is free is a fallback, and counted as one."""
    x = noise((16, 16)).to(dev.device())
    _LAUNCHED[case](x)  # What is loaded the first time may take longer.
    dev.synchronize()
    dev.reset_fallback_counts()
    try:
        while_held(dev, lambda: _LAUNCHED[case](x))
    except AssertionError as error:
        if not is_verdict(error, __file__):
            raise
        assert dev.fallback_counts(), "it waits for its stream, and no fallback was counted"
