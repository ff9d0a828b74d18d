# SPDX-License-Identifier: BSD-3-Clause
"""Copies read and write views of any strides and offsets, and keep strides where torch does."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, far_apart, ramp
from torch_conformance.checks.copy._copies import (
    BASE,
    DIRECTIONS,
    LAYOUTS,
    READABLE,
    UNTOUCHED,
    View,
)

_SIZES = ("uint8", "float32", "complex128")

#: What is written to a part of a float8 tensor, made of float8 numbers on the host.
_FLOAT8_SOURCES: dict[str, Callable[[torch.Tensor, Device], torch.Tensor]] = {
    "same": lambda x, dev: x.to(dev.device()),
    "same_from_host": lambda x, dev: x,
    "float32": lambda x, dev: x.float().to(dev.device()),
    "float32_from_host": lambda x, dev: x.float(),
    "int32": lambda x, dev: x.float().to(torch.int32).to(dev.device()),
}


@check(
    "copy/float8_strided",
    "COPY-033",
    cases=_FLOAT8_SOURCES,
    dtypes=("float8_e4m3fn", "float8_e5m2"),
)
def float8_is_written_to_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ into strided float8 tensors converts and writes exactly their elements."""
    for name, view in LAYOUTS.items():
        expected = torch.zeros(BASE).to(dtype)
        made = _FLOAT8_SOURCES[case](ramp(view(expected).shape).to(dtype), dev)
        actual = expected.to(dev.device(), copy=True)
        view(expected).copy_(made.cpu())
        view(actual).copy_(made)
        assert torch.equal(actual.cpu().view(torch.uint8), expected.view(torch.uint8)), name


@check("copy/d2h", "COPY-004", cases=READABLE, dtypes=_SIZES)
def device_to_host_reads_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A view of any strides is read correctly by cpu()."""
    base = ramp(BASE, dtype)
    actual = READABLE[case](base.to(dev.device())).cpu()
    dev.assert_equal(actual, READABLE[case](base))


@check("copy/h2d", "COPY-004", cases=READABLE, dtypes=_SIZES)
def host_to_device_reads_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A host view of any strides arrives correctly."""
    source = READABLE[case](ramp(BASE, dtype))
    dev.assert_equal(source.to(dev.device()), source)


@check("copy/d2d", "COPY-005", cases=READABLE, dtypes=_SIZES)
def device_to_device_reads_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A view of any strides is copied into a contiguous tensor on the same device."""
    base = ramp(BASE, dtype)
    expected = READABLE[case](base)
    target = torch.zeros(expected.shape, dtype=dtype, device=dev.device())
    target.copy_(READABLE[case](base.to(dev.device())))
    dev.assert_equal(target, expected)


@check("copy/h2d_into", "COPY-004", cases=LAYOUTS, dtypes=_SIZES)
def host_to_device_writes_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ from the host writes exactly the elements of a device view and no others."""
    expected = torch.full(BASE, UNTOUCHED, dtype=dtype)
    source = ramp(LAYOUTS[case](expected).shape, dtype)
    actual = expected.to(dev.device(), copy=True)
    LAYOUTS[case](expected).copy_(source)
    LAYOUTS[case](actual).copy_(source)
    dev.assert_equal(actual, expected)


@check("copy/d2h_into", "COPY-004", cases=LAYOUTS, dtypes=_SIZES)
def device_to_host_writes_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ from the device writes exactly the elements of a host view and no others."""
    expected = torch.full(BASE, UNTOUCHED, dtype=dtype)
    actual = expected.clone()
    source = ramp(LAYOUTS[case](expected).shape, dtype)
    LAYOUTS[case](expected).copy_(source)
    LAYOUTS[case](actual).copy_(source.to(dev.device()))
    assert torch.equal(actual, expected)


@check("copy/d2d_into", "COPY-005", cases=LAYOUTS, dtypes=_SIZES)
def device_to_device_writes_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ on the device writes exactly the elements of a view and no others."""
    expected = torch.full(BASE, UNTOUCHED, dtype=dtype)
    source = ramp(LAYOUTS[case](expected).shape, dtype)
    actual = expected.to(dev.device(), copy=True)
    LAYOUTS[case](expected).copy_(source)
    LAYOUTS[case](actual).copy_(source.to(dev.device()))
    dev.assert_equal(actual, expected)


@check("copy/both_strided", ("COPY-004", "COPY-005"), cases=DIRECTIONS, dtypes=_SIZES)
def both_sides_may_be_strided(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ between views of different strides pairs their elements and writes no others."""
    source_on, target_on = DIRECTIONS[case](dev)
    source = ramp((6, 16), dtype)
    expected = torch.full((8, 12), UNTOUCHED, dtype=dtype)
    actual = expected.to(target_on, copy=True)
    expected[:, ::2].copy_(source[:, 1::2].t())
    actual[:, ::2].copy_(source.to(source_on)[:, 1::2].t())
    dev.assert_equal(actual, expected)


@check("copy/far:h2d", ("COPY-004", "COPY-005"))
def offsets_of_the_target_have_more_than_31_bits(dev: Device) -> None:
    """A copy from the host writes elements more than 2 GiB apart in one storage where they are."""
    memory, source = far_apart(dev), ramp((3, 5), torch.uint8)
    memory.copy_(source)
    dev.assert_equal(torch.stack(list(memory)), source)


_FAR_READS: dict[str, View] = {"d2h": lambda x: x.cpu(), "d2d": lambda x: x.contiguous()}


@check("copy/far", ("COPY-004", "COPY-005"), cases=_FAR_READS)
def offsets_of_the_source_have_more_than_31_bits(dev: Device, case: str) -> None:
    """Elements more than 2 GiB apart in one storage are read where they are."""
    memory, source = far_apart(dev), ramp((3, 5), torch.uint8)
    for row, values in zip(memory, source, strict=True):
        row.copy_(values)
    dev.assert_equal(_FAR_READS[case](memory), source)


@check("copy/clone", "COPY-006", cases=("transposed", "sliced", "permuted", "channels_last"))
def clone_follows_the_memory_format_rules(dev: Device, case: str) -> None:
    """clone keeps the strides of a dense view and makes any other view contiguous, as on CPU."""
    base = ramp(BASE)
    for memory_format in (torch.preserve_format, torch.contiguous_format):
        expected = LAYOUTS[case](base).clone(memory_format=memory_format)
        actual = LAYOUTS[case](base.to(dev.device())).clone(memory_format=memory_format)
        assert actual.stride() == expected.stride()
        dev.assert_equal(actual, expected)


@check("copy/strides_kept", "COPY-006", cases=("h2d", "d2h"))
def moving_a_dense_view_keeps_its_strides(dev: Device, case: str) -> None:
    """to() preserves the strides of a dense, non-overlapping view in both directions."""
    source_on, target_on = DIRECTIONS[case](dev)
    for name in ("transposed", "permuted", "channels_last"):
        expected = LAYOUTS[name](ramp(BASE))
        moved = LAYOUTS[name](ramp(BASE).to(source_on)).to(target_on)
        assert moved.stride() == expected.stride(), name
        dev.assert_equal(moved, expected)
