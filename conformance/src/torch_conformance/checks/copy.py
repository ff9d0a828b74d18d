# SPDX-License-Identifier: BSD-3-Clause
"""Copies: host to device, device to host, within a device, between devices, and to Python."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torch_conformance.authoring.api import (
    DTYPES,
    Device,
    apart,
    check,
    far_apart,
    in_thread,
    raised,
    ramp,
    while_held,
)

View = Callable[[torch.Tensor], torch.Tensor]
_CopyTo = Callable[[torch.Tensor, torch.device], torch.Tensor]

_BASE = (8, 12)

#: Views of an (8, 12) tensor; every element of the result is a separate memory location.
LAYOUTS: dict[str, View] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[1::2, ::3],
    "row_slice": lambda x: x[2:5],
    "offset": lambda x: x.flatten()[3:],
    "odd_offset_strided": lambda x: x.flatten()[1::5],
    "permuted": lambda x: x.view(2, 4, 3, 4).permute(3, 1, 0, 2),
    "channels_last": lambda x: x.view(2, 4, 4, 3).permute(0, 3, 1, 2),
    "diagonal": lambda x: x.diagonal(),
    "rank_eight": lambda x: x.view(2, 2, 2, 2, 2, 3, 1, 1).permute(7, 3, 5, 0, 6, 2, 4, 1),
    "zero_dim": lambda x: x[3, 5],
    "blocks": lambda x: x.view(2, 4, 4, 3)[:, 1:3],
    "every_second_block": lambda x: x.view(4, 2, 4, 3)[1:, ::2],
    "rows_of_blocks": lambda x: x.view(2, 4, 4, 3)[:, :, 1:3],
    "blocks_reordered": lambda x: x.view(2, 4, 4, 3).transpose(0, 1)[1:],
    "single": lambda x: x.view(8, 1, 12, 1)[::2, :, 3:7],
    "single_strided": lambda x: x.as_strided((4, 1, 5, 1), (24, 7, 2, 3), 3),
    "empty": lambda x: x[:0],
    "empty_inner": lambda x: x[:, 4:4],
}

#: Views in which several elements share one location: they can be read, not written.
OVERLAPPING: dict[str, View] = {
    "expanded_rows": lambda x: x[:1].expand(5, -1),
    "expanded_columns": lambda x: x[:, 2:3].expand(-1, 7),
    "expanded_scalar": lambda x: x[3, 5].expand(4, 4),
    "windows": lambda x: x.flatten().unfold(0, 4, 2),
    "as_strided": lambda x: x.as_strided((5, 6), (1, 1), 2),
}

_READABLE = {**LAYOUTS, **OVERLAPPING}

_CPU = torch.device("cpu")

#: Where a copy reads and where it writes.
_Ends = Callable[[Device], tuple[torch.device, torch.device]]
_DIRECTIONS: dict[str, _Ends] = {
    "h2d": lambda dev: (_CPU, dev.device()),
    "d2h": lambda dev: (dev.device(), _CPU),
    "d2d": lambda dev: (dev.device(), dev.device()),
}

_SIZES = ("uint8", "float32", "complex128")
_UNTOUCHED = 123  # no value of a ramp, nor what memory holds by chance


# ---- host and device -------------------------------------------------------------------------


@check("copy/roundtrip", "COPY-001", dtypes=DTYPES)
def host_device_roundtrip_preserves_values(dev: Device, dtype: torch.dtype) -> None:
    """A contiguous tensor comes back from the device unchanged."""
    source = ramp((5, 7), dtype)
    there = source.to(dev.device())
    assert there.device.type == dev.type
    assert there.dtype == dtype
    back = there.cpu()
    assert back.device.type == "cpu"
    assert torch.equal(back, source)


@check(
    "copy/extended_dtype",
    "COPY-002",
    dtypes=("uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2"),
)
def storage_only_dtypes_roundtrip(dev: Device, dtype: torch.dtype) -> None:
    """Data types that have few operators can still be moved; compared as raw bytes."""
    raw = ramp((4, 8), torch.uint8)
    source = raw.view(dtype)
    back = source.to(dev.device()).cpu()
    assert back.dtype == dtype
    assert torch.equal(back.view(torch.uint8), raw)


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
        expected = torch.zeros(_BASE).to(dtype)
        made = _FLOAT8_SOURCES[case](ramp(view(expected).shape).to(dtype), dev)
        actual = expected.to(dev.device(), copy=True)
        view(expected).copy_(made.cpu())
        view(actual).copy_(made)
        assert torch.equal(actual.cpu().view(torch.uint8), expected.view(torch.uint8)), name


@check("copy/bit_exact", "COPY-003", dtypes=("float16", "bfloat16", "float32", "float64"))
def special_values_keep_their_bits(dev: Device, dtype: torch.dtype) -> None:
    """NaN payloads, infinities, negative zero and subnormals survive bit by bit."""
    size = torch.empty(0, dtype=dtype).element_size()
    integral = {2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    tiny = torch.finfo(dtype).smallest_normal
    values = torch.tensor(
        [float("inf"), float("-inf"), 0.0, -0.0, tiny, -tiny, 1.0, float("nan")], dtype=dtype
    )
    bits = values.view(integral).clone()
    bits[4] = 3  # a subnormal
    bits[7] += 5  # a NaN with a payload
    source = bits.view(dtype)
    device = source.to(dev.device())
    assert torch.equal(device.cpu().view(integral), bits), "host to device and back"
    assert torch.equal(device.clone().cpu().view(integral), bits), "clone on the device"
    strided = device.view(4, 2).t().contiguous()
    assert torch.equal(strided.cpu().view(integral), bits.view(4, 2).t()), "strided on the device"


@check("copy/d2h", "COPY-004", cases=_READABLE, dtypes=_SIZES)
def device_to_host_reads_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A view of any strides is read correctly by cpu()."""
    base = ramp(_BASE, dtype)
    actual = _READABLE[case](base.to(dev.device())).cpu()
    dev.assert_equal(actual, _READABLE[case](base))


@check("copy/h2d", "COPY-004", cases=_READABLE, dtypes=_SIZES)
def host_to_device_reads_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A host view of any strides arrives correctly."""
    source = _READABLE[case](ramp(_BASE, dtype))
    dev.assert_equal(source.to(dev.device()), source)


@check("copy/d2d", "COPY-005", cases=_READABLE, dtypes=_SIZES)
def device_to_device_reads_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A view of any strides is copied into a contiguous tensor on the same device."""
    base = ramp(_BASE, dtype)
    expected = _READABLE[case](base)
    target = torch.zeros(expected.shape, dtype=dtype, device=dev.device())
    target.copy_(_READABLE[case](base.to(dev.device())))
    dev.assert_equal(target, expected)


@check("copy/h2d_into", "COPY-004", cases=LAYOUTS, dtypes=_SIZES)
def host_to_device_writes_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ from the host writes exactly the elements of a device view and no others."""
    expected = torch.full(_BASE, _UNTOUCHED, dtype=dtype)
    source = ramp(LAYOUTS[case](expected).shape, dtype)
    actual = expected.to(dev.device(), copy=True)
    LAYOUTS[case](expected).copy_(source)
    LAYOUTS[case](actual).copy_(source)
    dev.assert_equal(actual, expected)


@check("copy/d2h_into", "COPY-004", cases=LAYOUTS, dtypes=_SIZES)
def device_to_host_writes_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ from the device writes exactly the elements of a host view and no others."""
    expected = torch.full(_BASE, _UNTOUCHED, dtype=dtype)
    actual = expected.clone()
    source = ramp(LAYOUTS[case](expected).shape, dtype)
    LAYOUTS[case](expected).copy_(source)
    LAYOUTS[case](actual).copy_(source.to(dev.device()))
    assert torch.equal(actual, expected)


@check("copy/d2d_into", "COPY-005", cases=LAYOUTS, dtypes=_SIZES)
def device_to_device_writes_any_layout(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ on the device writes exactly the elements of a view and no others."""
    expected = torch.full(_BASE, _UNTOUCHED, dtype=dtype)
    source = ramp(LAYOUTS[case](expected).shape, dtype)
    actual = expected.to(dev.device(), copy=True)
    LAYOUTS[case](expected).copy_(source)
    LAYOUTS[case](actual).copy_(source.to(dev.device()))
    dev.assert_equal(actual, expected)


@check("copy/both_strided", ("COPY-004", "COPY-005"), cases=_DIRECTIONS, dtypes=_SIZES)
def both_sides_may_be_strided(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ between views of different strides pairs their elements and writes no others."""
    source_on, target_on = _DIRECTIONS[case](dev)
    source = ramp((6, 16), dtype)
    expected = torch.full((8, 12), _UNTOUCHED, dtype=dtype)
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
    base = ramp(_BASE)
    for memory_format in (torch.preserve_format, torch.contiguous_format):
        expected = LAYOUTS[case](base).clone(memory_format=memory_format)
        actual = LAYOUTS[case](base.to(dev.device())).clone(memory_format=memory_format)
        assert actual.stride() == expected.stride()
        dev.assert_equal(actual, expected)


@check("copy/strides_kept", "COPY-006", cases=("h2d", "d2h"))
def moving_a_dense_view_keeps_its_strides(dev: Device, case: str) -> None:
    """to() preserves the strides of a dense, non-overlapping view in both directions."""
    source_on, target_on = _DIRECTIONS[case](dev)
    for name in ("transposed", "permuted", "channels_last"):
        expected = LAYOUTS[name](ramp(_BASE))
        moved = LAYOUTS[name](ramp(_BASE).to(source_on)).to(target_on)
        assert moved.stride() == expected.stride(), name
        dev.assert_equal(moved, expected)


#: Copies of an empty tensor on the host or of one on the device.
_EMPTY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "h2d": lambda host, there: host.to(there.device),
    "d2h": lambda host, there: there.cpu(),
    "d2d": lambda host, there: torch.empty_like(there).copy_(there),
    "clone": lambda host, there: there.clone(),
}


@check("copy/empty", "COPY-007", cases=_EMPTY, dtypes=("float32", "bool"))
def empty_tensors_can_be_copied(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Copies of zero elements keep shape and data type."""
    for shape in ((0,), (0, 3), (2, 0, 4)):
        host = torch.empty(shape, dtype=dtype)
        result = _EMPTY[case](host, torch.empty(shape, dtype=dtype, device=dev.device()))
        assert tuple(result.shape) == shape
        assert result.dtype == dtype


_PRIMES = (4099, 4097)  # whatever the size of a chunk, a part of one is left

#: The view of a long vector that is moved, and the data type that it becomes on the device.
_LARGE: dict[str, tuple[View, torch.dtype]] = {
    "contiguous": (lambda x: x, torch.int32),
    "strided": (lambda x: x.view(_PRIMES).t(), torch.int32),
    "cast": (lambda x: x, torch.float32),
}


@check("copy/large", "COPY-008", cases=_LARGE)
def sixty_four_megabytes_are_copied_whole(dev: Device, case: str) -> None:
    """A copy larger than a staging buffer, and no multiple of one, is complete."""
    view, dtype = _LARGE[case]
    source = view(torch.arange(math.prod(_PRIMES), dtype=torch.int32))
    there = source.to(dev.device()).to(dtype)
    assert torch.equal(there.cpu(), source.to(dtype))


# ---- broadcasting and errors -----------------------------------------------------------------


@check("copy/broadcast", "COPY-009", cases=_DIRECTIONS)
def copy_broadcasts_its_source(dev: Device, case: str) -> None:
    """copy_ broadcasts a smaller source into the destination."""
    source_on, target_on = _DIRECTIONS[case](dev)
    for shape in ((4,), (3, 1), (1, 1), ()):
        source = ramp(shape)
        target = torch.zeros(3, 4, device=target_on)
        target.copy_(source.to(source_on))
        dev.assert_equal(target, source.expand(3, 4))


@check("copy/shape_mismatch", "COPY-009", cases=_DIRECTIONS)
def copy_rejects_shapes_that_do_not_broadcast(dev: Device, case: str) -> None:
    """copy_ with an incompatible shape raises RuntimeError and leaves the destination alone."""
    source_on, target_on = _DIRECTIONS[case](dev)
    target = torch.ones(3, 4, device=target_on)
    error = raised(lambda: target.copy_(torch.zeros(5, device=source_on)), by=dev.synchronize)
    assert isinstance(error, RuntimeError)
    dev.assert_equal(target, torch.ones(3, 4))


@check("copy/self", "COPY-010")
def copying_a_tensor_to_itself_changes_nothing(dev: Device) -> None:
    """x.copy_(x) returns x and leaves its values, for dense and strided views."""
    source = ramp(_BASE)
    x = source.to(dev.device())
    assert x.copy_(x) is x
    view = x[::2, 1:]
    view.copy_(view)
    dev.assert_equal(x, source)


@check("copy/overlap:expanded", "COPY-010")
def a_destination_that_overlaps_itself_is_rejected(dev: Device) -> None:
    """copy_ into an expanded tensor raises RuntimeError."""
    source = torch.ones(3, 4, device=dev.device())
    target = torch.zeros(4, device=dev.device()).expand(3, 4)
    assert isinstance(raised(lambda: target.copy_(source), by=dev.synchronize), RuntimeError)


@check("copy/overlap:shifted", "COPY-010")
def a_destination_that_overlaps_its_source_is_rejected(dev: Device) -> None:
    """copy_ into a part of its own source raises RuntimeError."""
    x = torch.zeros(6, device=dev.device())
    assert isinstance(raised(lambda: x[1:].copy_(x[:-1]), by=dev.synchronize), RuntimeError)


# ---- conversions -----------------------------------------------------------------------------


def _dtypes(dev: Device) -> list[torch.dtype]:
    return list(dev.dtypes("all"))


def _converts(
    dev: Device, dtype: torch.dtype, copy: Callable[[torch.Tensor, torch.dtype], torch.Tensor]
) -> None:
    """`copy` converts from a data type to every other one as the CPU does."""
    source = ramp((5, 6), dtype, positive=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex to real warns; that is a check of its own
        for target_dtype in _dtypes(dev):
            expected = torch.zeros(5, 6, dtype=target_dtype).copy_(source)
            actual = copy(source, target_dtype)
            assert actual.dtype == target_dtype
            dev.assert_equal(actual, expected)


@check("copy/cast", "COPY-011", cases=_DIRECTIONS, dtypes=DTYPES)
def casting_copies_agree_with_the_cpu(dev: Device, case: str, dtype: torch.dtype) -> None:
    """copy_ from this data type to every other one converts as the CPU does."""
    source_on, target_on = _DIRECTIONS[case](dev)

    def copy(source: torch.Tensor, to: torch.dtype) -> torch.Tensor:
        return torch.zeros(5, 6, dtype=to, device=target_on).copy_(source.to(source_on))

    _converts(dev, dtype, copy)


@check("copy/cast:to", "COPY-011", dtypes=DTYPES)
def conversions_agree_with_the_cpu(dev: Device, dtype: torch.dtype) -> None:
    """to() from this data type to every other one converts as the CPU does."""
    _converts(dev, dtype, lambda source, to: source.to(dev.device()).to(to))


@check("copy/cast_negative", "COPY-011", cases=_DIRECTIONS)
def negative_numbers_are_cut_towards_zero(dev: Device, case: str) -> None:
    """Negative numbers convert between all signed types as on the CPU."""
    source_on, target_on = _DIRECTIONS[case](dev)
    values = torch.tensor([-2.75, -0.5, -1.0, -100.25, 0.75, 3.0])
    signed = [dtype for dtype in _dtypes(dev) if dtype.is_signed and not dtype.is_complex]
    for source_dtype in signed:
        source = values.to(source_dtype)
        for target_dtype in signed:
            actual = torch.zeros(6, dtype=target_dtype, device=target_on)
            actual.copy_(source.to(source_on))
            dev.assert_equal(actual, source.to(target_dtype))


@check("copy/cast_wide", "COPY-011", cases=_DIRECTIONS)
def whole_numbers_wrap_and_round(dev: Device, case: str) -> None:
    """Large integers wrap in narrower types and round to the nearest floating point number."""
    source_on, target_on = _DIRECTIONS[case](dev)
    source = torch.tensor([2**24 + 1, 2**24 + 3, 2**53 + 1, -(2**31) - 5, 300, -129, 65535, 2**62])
    for dtype in _dtypes(dev):
        if dtype.is_complex:
            continue
        actual = torch.zeros(8, dtype=dtype, device=target_on).copy_(source.to(source_on))
        dev.assert_equal(actual, source.to(dtype))


@check("copy/cast_strided", "COPY-011", cases=_DIRECTIONS)
def casting_copies_honour_strides(dev: Device, case: str) -> None:
    """Conversion and strides on both sides at once give what the CPU gives."""
    source_on, target_on = _DIRECTIONS[case](dev)
    source = ramp(_BASE, torch.int32)
    expected = torch.full((12, 16), float(_UNTOUCHED))
    actual = expected.to(target_on, copy=True)
    expected[:, ::2].copy_(source.t())
    actual[:, ::2].copy_(source.to(source_on).t())
    dev.assert_equal(actual, expected)


@check("copy/cast_rounding", "COPY-011", dtypes=("float16", "bfloat16"))
def narrowing_rounds_to_nearest_even(dev: Device, dtype: torch.dtype) -> None:
    """float32 to a 16 bit type rounds ties to even and keeps NaN and infinity, on the device."""
    step = torch.finfo(dtype).eps
    values = [1 + step * k / 4 for k in range(17)] + [1e30, -1e30, float("inf"), float("nan")]
    source = torch.tensor(values, dtype=torch.float32)
    dev.assert_equal(source.to(dev.device()).to(dtype), source.to(dtype))


@check("copy/cast_bool", "COPY-011", cases=("h2d", "d2d"))
def conversion_to_bool_tests_for_non_zero(dev: Device, case: str) -> None:
    """Fractions, NaN and negative zero convert to bool as on the CPU."""
    source = torch.tensor([0.0, -0.0, 0.25, -3.0, float("nan"), float("inf")])
    source_on, target_on = _DIRECTIONS[case](dev)
    actual = torch.zeros(6, dtype=torch.bool, device=target_on).copy_(source.to(source_on))
    dev.assert_equal(actual, source.to(torch.bool))


_TO_REAL: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "to": lambda source, target: source.to(target.dtype),
    "copy": lambda source, target: target.copy_(source),
}


@check("copy/complex_to_real_warns", "COPY-012", needs=("complex64",), cases=_TO_REAL)
def dropping_the_imaginary_part_warns(dev: Device, case: str) -> None:
    """A conversion from complex to real says that it discards the imaginary part."""
    source = ramp((3,), torch.complex64).to(dev.device())
    target = torch.zeros(3, device=dev.device())
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _TO_REAL[case](source, target)
            dev.synchronize()
    finally:
        torch.set_warn_always(always)
    assert any("imaginary" in str(entry.message) for entry in caught)


# ---- conjugate and negative bits -------------------------------------------------------------

_LAZY_VIEWS: dict[str, View] = {
    "conj": lambda x: x.conj(),
    "conj_transposed": lambda x: x.conj().t(),
    "conj_sliced": lambda x: x.conj()[1::2, ::3],
    "adjoint": lambda x: x.mH,
    "conj_real": lambda x: x.conj().real,
    "conj_imag": lambda x: x.conj().imag,
    "neg": lambda x: torch._neg_view(x),
    "neg_sliced": lambda x: torch._neg_view(x)[::2, 1:],
    "neg_conj": lambda x: torch._neg_view(x.conj()),
    "imag": lambda x: x.imag,
}

_LAZY_COPIES: dict[str, Callable[[torch.Tensor, Device], torch.Tensor]] = {
    "cpu": lambda view, dev: view.cpu(),
    "clone": lambda view, dev: view.clone(),
    "contiguous": lambda view, dev: view.contiguous(),
    "resolve": lambda view, dev: view.resolve_conj().resolve_neg(),
    "copy": lambda view, dev: torch.zeros(view.shape, dtype=view.dtype, device=view.device).copy_(
        view
    ),
}


@check("copy/lazy_source", "COPY-013", cases=_LAZY_VIEWS, dtypes=("complex64", "complex128"))
def lazy_views_are_resolved_when_read(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A conjugate or negative view is resolved by every way of copying it."""
    source = ramp(_BASE, dtype)
    expected = _LAZY_VIEWS[case](source).resolve_conj().resolve_neg()
    for name, copy in _LAZY_COPIES.items():
        copied = copy(_LAZY_VIEWS[case](source.to(dev.device())), dev)
        actual = copied.cpu().resolve_conj().resolve_neg()
        assert torch.equal(actual, expected), f"read by {name}"


@check("copy/lazy_from_host", "COPY-013", cases=_LAZY_VIEWS)
def lazy_host_views_arrive_resolved(dev: Device, case: str) -> None:
    """A conjugate or negative view on the host is right on the device."""
    source = _LAZY_VIEWS[case](ramp(_BASE, torch.complex64))
    expected = source.resolve_conj().resolve_neg()
    dev.assert_equal(source.to(dev.device()).resolve_conj().resolve_neg(), expected)
    target = torch.zeros(source.shape, dtype=source.dtype, device=dev.device())
    dev.assert_equal(target.copy_(source), expected)


@check(
    "copy/lazy_target",
    "COPY-014",
    cases=("conj", "conj_transposed", "conj_sliced", "neg", "neg_sliced", "conj_imag"),
)
def lazy_views_can_be_written(dev: Device, case: str) -> None:
    """copy_ into a conjugate or negative view writes the value whose view reads as the source."""
    for source_on in (torch.device("cpu"), dev.device()):
        expected = torch.full(_BASE, _UNTOUCHED, dtype=torch.complex64)
        actual = expected.to(dev.device(), copy=True)
        view = _LAZY_VIEWS[case](expected)
        source = ramp(view.shape, view.dtype)
        view.copy_(source)
        _LAZY_VIEWS[case](actual).copy_(source.to(source_on))
        dev.assert_equal(actual, expected)


#: A copy, and the data type of its destination where the device has it.
_LAZY_BOTH: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], str]] = {
    "conj_to_conj": (lambda s, t: t.conj().copy_(s.conj()), "complex64"),
    "neg_to_conj": (lambda s, t: t.conj().copy_(torch._neg_view(s)), "complex64"),
    "conj_to_cast": (lambda s, t: t.copy_(s.conj()), "complex128"),
}


@check("copy/lazy_both", "COPY-014", cases=_LAZY_BOTH)
def lazy_views_on_both_sides_cancel_or_combine(dev: Device, case: str) -> None:
    """Source and destination bits are both honoured, also with a conversion in between."""
    copy, wanted = _LAZY_BOTH[case]
    source = ramp((4, 5), torch.complex64)
    expected = torch.zeros(4, 5, dtype=getattr(torch, wanted if dev.has(wanted) else "complex64"))
    actual = expected.to(dev.device(), copy=True)
    copy(source, expected)
    copy(source.to(dev.device()), actual)
    dev.assert_equal(actual, expected)


# ---- asynchronous ----------------------------------------------------------------------------


#: Elements in memory, the step from one to the next that is copied, and the data type it becomes.
_PAGEABLE: dict[str, tuple[int, int, torch.dtype]] = {
    "small": (777, 1, torch.int32),
    "large": (1024 * 1024, 1, torch.int32),
    "strided": (777, 3, torch.int32),
    "cast": (777, 1, torch.float32),
}


@check("copy/pageable_source", "COPY-015", cases=_PAGEABLE)
def a_pageable_source_may_be_changed_at_once(dev: Device, case: str) -> None:
    """After a non_blocking copy from ordinary host memory the source belongs to the caller."""
    count, step, dtype = _PAGEABLE[case]
    source = ramp((count,), torch.int32)[::step]
    expected = source.clone()
    target = torch.zeros(source.shape, dtype=dtype, device=dev.device())
    if dev.has("delay"):
        dev.delay(30)
    target.copy_(source, non_blocking=True)
    source.fill_(-99)
    dev.assert_equal(target, expected.to(dtype))


#: Elements of several pageable sources whose copies are pending together.
_IN_FLIGHT = {"small": 777, "large": 300_001}


@check("copy/pageable_in_flight", "COPY-015", cases=_IN_FLIGHT)
def several_pageable_copies_may_be_pending(dev: Device, case: str) -> None:
    """A pageable buffer, filled again for each of eight non_blocking copies, arrives right."""
    source = torch.zeros(_IN_FLIGHT[case])
    targets = [torch.zeros_like(source, device=dev.device()) for _ in range(8)]
    if dev.has("delay"):
        dev.delay(30)
    for value, target in enumerate(targets, start=1):
        source.fill_(value)
        target.copy_(source, non_blocking=True)
    source.fill_(-99)
    for value, target in enumerate(targets, start=1):
        dev.assert_equal(target, torch.full_like(source, value))


@check("copy/pageable_source_freed", "COPY-015")
def a_pageable_source_may_be_freed_at_once(dev: Device) -> None:
    """A temporary source may die, and its memory be reused, while the copy is pending."""
    expected = ramp((256 * 1024,), torch.int64)
    if dev.has("delay"):
        dev.delay(30)
    target = expected.clone().to(dev.device(), non_blocking=True)
    reused = [torch.full((256 * 1024,), -1, dtype=torch.int64) for _ in range(4)]
    dev.assert_equal(target, expected)
    assert len(reused) == 4


@check("copy/pinned_h2d", "COPY-016", needs=("pinned_memory",))
def a_pinned_source_is_copied_correctly(dev: Device) -> None:
    """A non_blocking copy from pinned memory is right after synchronisation."""
    source = ramp((1024, 257))
    pinned = source.pin_memory()
    assert pinned.is_pinned()
    dev.assert_equal(pinned.to(dev.device(), non_blocking=True), source)


@check("copy/pinned_view:h2d", "COPY-016", needs=("pinned_memory",))
def a_view_of_pinned_memory_is_read_correctly(dev: Device) -> None:
    """A non_blocking copy from a strided part of pinned memory moves that part."""
    source = ramp((64, 48))
    pinned = source.pin_memory()[::2, 1:]
    dev.assert_equal(pinned.to(dev.device(), non_blocking=True), source[::2, 1:])


@check("copy/pinned_view:d2h", "COPY-016", needs=("pinned_memory",))
def a_view_of_pinned_memory_is_written_correctly(dev: Device) -> None:
    """A non_blocking copy to a strided part of pinned memory writes that part only."""
    source = ramp((64, 48))
    expected = torch.full((64, 48), float(_UNTOUCHED))
    target = expected.pin_memory()
    target[::2, 1:].copy_(source[::2, 1:].to(dev.device()), non_blocking=True)
    expected[::2, 1:] = source[::2, 1:]
    dev.synchronize()
    assert torch.equal(target, expected)


@check("copy/pinned_layout_h2d", "COPY-016", needs=("pinned_memory",), cases=_READABLE)
def pinned_memory_of_any_layout_is_read(dev: Device, case: str) -> None:
    """A non_blocking copy from a view of pinned memory reads exactly its elements."""
    source = ramp(_BASE)
    there = _READABLE[case](source.pin_memory()).to(dev.device(), non_blocking=True)
    dev.assert_equal(there, _READABLE[case](source))


@check("copy/pinned_layout_d2h", "COPY-016", needs=("pinned_memory",), cases=LAYOUTS)
def pinned_memory_of_any_layout_is_written(dev: Device, case: str) -> None:
    """A non_blocking copy to a view of pinned memory writes its elements and no others."""
    expected = torch.full(_BASE, float(_UNTOUCHED))
    source = ramp(LAYOUTS[case](expected).shape)
    target = expected.pin_memory()
    LAYOUTS[case](target).copy_(source.to(dev.device()), non_blocking=True)
    LAYOUTS[case](expected).copy_(source)
    dev.synchronize()
    assert torch.equal(target, expected)


#: Pinned memory that a blocking copy reads: elements, the step from one to the next, and the data
#: type that it becomes on the device.
_BLOCKING: dict[str, tuple[int, int, torch.dtype]] = {
    "small": (777, 1, torch.int32),
    "large": (300_001, 1, torch.int32),
    "strided": (777, 3, torch.int32),
    "cast": (777, 1, torch.float32),
}
_BLOCKING_NEEDS = ("pinned_memory", "delay")


@check("copy/blocking_h2d", "COPY-032", cases=_BLOCKING, needs=_BLOCKING_NEEDS)
def a_blocking_copy_has_read_its_pinned_source(dev: Device, case: str) -> None:
    """After a blocking copy from pinned memory the source may be changed at once."""
    count, step, dtype = _BLOCKING[case]
    source = ramp((count,), torch.int32).pin_memory()[::step]
    expected = source.clone()
    target = torch.zeros(source.shape, dtype=dtype, device=dev.device())
    dev.synchronize()
    dev.delay(40)
    target.copy_(source)
    source.fill_(-99)
    dev.assert_equal(target, expected.to(dtype))


@check("copy/blocking_d2h", "COPY-032", cases=_BLOCKING, needs=_BLOCKING_NEEDS)
def a_blocking_copy_has_written_its_pinned_target(dev: Device, case: str) -> None:
    """After a blocking copy to pinned memory the target has the values, without another wait."""
    count, step, dtype = _BLOCKING[case]
    values = ramp((count,), torch.int32)[::step]
    source = values.to(dev.device())
    target = torch.zeros(count, dtype=dtype).pin_memory()[::step]
    dev.synchronize()
    dev.delay(40)
    target.copy_(source)
    assert torch.equal(target, values.to(dtype)), "the copy returned before it wrote"


@check("copy/blocking:on_side_stream", "COPY-032", needs=("streams", *_BLOCKING_NEEDS))
def a_blocking_copy_waits_for_its_own_stream(dev: Device) -> None:
    """A blocking copy on a side stream of the last device is complete when it returns."""
    values = ramp((777,))
    source = values.to(dev.device(dev.count - 1))
    target = torch.zeros(777).pin_memory()
    dev.synchronize()
    with dev.stream(dev.count - 1):
        dev.delay(40)
        target.copy_(source)
        assert torch.equal(target, values), "the copy returned before it wrote"


@check("copy/pinned_h2d_lazy", "COPY-017", needs=("pinned_memory", "async_copy", "delay"))
def a_pinned_copy_to_the_device_does_not_wait(dev: Device) -> None:
    """With work queued before it, a non_blocking copy from pinned memory returns at once."""
    source = ramp((1024, 64)).pin_memory()
    target = torch.zeros(1024, 64, device=dev.device())
    dev.synchronize()
    while_held(dev, lambda: target.copy_(source, non_blocking=True))
    dev.assert_equal(target, source)


@check("copy/pinned_h2d_lazy:strided", "COPY-017", needs=("pinned_memory", "async_copy", "delay"))
def a_pinned_copy_to_a_strided_target_does_not_wait(dev: Device) -> None:
    """A non_blocking copy from pinned memory returns at once for a target that is not dense."""
    source = ramp((1024, 64)).pin_memory()
    target = torch.zeros(1024, 128, device=dev.device())[:, ::2]
    dev.synchronize()
    while_held(dev, lambda: target.copy_(source, non_blocking=True))
    dev.assert_equal(target, source)


@check("copy/pinned_d2h_lazy", "COPY-017", needs=("pinned_memory", "async_copy", "delay"))
def a_copy_to_pinned_memory_does_not_wait(dev: Device) -> None:
    """A non_blocking copy to pinned memory returns at once and is complete after synchronising."""
    source = ramp((1024, 64))
    there = source.to(dev.device())
    target = torch.zeros(1024, 64).pin_memory()
    dev.synchronize()
    while_held(dev, lambda: target.copy_(there, non_blocking=True))
    dev.synchronize()
    assert torch.equal(target, source)


#: Elements of 12 MiB of float32, and some.
_LARGE_COUNT = 3 * (1 << 20) + 5

#: Which of the two tensors is on the host, in pinned memory: the source or the target.
_PINNED_SIDE = {"h2d": (True, False), "d2h": (False, True), "d2d": (False, False)}


@check(
    "copy/large_lazy",
    "COPY-017",
    cases=_PINNED_SIDE,
    needs=("streams", "pinned_memory", "async_copy", "delay"),
)
def a_large_copy_does_not_wait(dev: Device, case: str) -> None:
    """A non_blocking copy of 12 MiB returns before work ahead of it ends, and comes after it."""
    source, target = (
        torch.full((_LARGE_COUNT,), value).pin_memory()
        if pinned
        else torch.full((_LARGE_COUNT,), value, device=dev.device())
        for value, pinned in zip((5.0, 0.0), _PINNED_SIDE[case], strict=True)
    )
    stream = dev.stream()
    dev.synchronize()

    def look() -> bool:
        target.copy_(source, non_blocking=True)
        return stream.query()

    with stream:
        assert while_held(dev, look) is False, "it waited for the work ahead of it"
    dev.synchronize()
    assert bool((target.cpu() == 5).all()), "the copy is not complete"


@check("copy/pinned_reuse", "COPY-018", needs=("pinned_memory", "delay"))
def pinned_memory_is_not_reused_under_a_pending_copy(dev: Device) -> None:
    """Freeing a pinned source early must not hand its block to the next allocation."""
    expected = ramp((64 * 1024,))
    pinned = expected.pin_memory()
    dev.synchronize()
    dev.delay(60)
    target = pinned.to(dev.device(), non_blocking=True)
    del pinned
    thieves = [torch.full((64 * 1024,), -1.0).pin_memory() for _ in range(3)]
    dev.assert_equal(target, expected)
    assert all(thief.is_pinned() for thief in thieves)


@check("copy/data_loader", "COPY-029", needs=("pinned_memory", "threads"))
def a_data_loader_pins_its_batches(dev: Device) -> None:
    """DataLoader(pin_memory=True) yields pinned batches that copy correctly."""
    from torch.utils.data import DataLoader, TensorDataset

    source = ramp((12, 5))
    loader = DataLoader(TensorDataset(source), batch_size=4, pin_memory=True)
    batches = []
    for (batch,) in loader:
        assert batch.is_pinned()
        batches.append(batch.to(dev.device(), non_blocking=True))
    dev.assert_equal(torch.cat(batches), source)


@check("copy/pinned_in_thread", "COPY-029", needs=("pinned_memory", "threads"))
def any_thread_can_pin(dev: Device) -> None:
    """A thread that has not used the device pins memory, as a DataLoader with workers does."""
    source = ramp((12, 5))
    pinned = in_thread(source.pin_memory)
    assert pinned.is_pinned()
    dev.assert_equal(pinned.to(dev.device(), non_blocking=True), source)


@check("copy/device_source_freed", "COPY-018", needs=("delay",))
def a_device_source_may_be_freed_under_a_pending_copy(dev: Device) -> None:
    """Freeing a device source early must not let later work overwrite it before it is read."""
    expected = ramp((64 * 1024,))
    source = expected.to(dev.device())
    target = torch.empty(64 * 1024)
    if dev.has("pinned_memory"):
        target = target.pin_memory()
    dev.synchronize()
    dev.delay(40)
    target.copy_(source, non_blocking=True)
    del source
    thieves = [torch.full((64 * 1024,), -1.0, device=dev.device()) for _ in range(3)]
    dev.synchronize()
    assert torch.equal(target, expected)
    assert len(thieves) == 3


#: Ways to read five elements into Python, with no synchronisation after the copy.
_READS: dict[str, Callable[[torch.Tensor], list[float]]] = {
    "cpu": lambda x: x.cpu().tolist(),
    "copy": lambda x: torch.zeros(5).copy_(x).tolist(),
    "item": lambda x: [element.item() for element in x],
}


@check("copy/d2h_sees_earlier_work", "COPY-019", needs=("delay",), cases=_READS)
def a_blocking_read_waits_for_earlier_work(dev: Device, case: str) -> None:
    """Reading to the host returns the value written by work queued before on the same stream."""
    x = torch.zeros(5, device=dev.device())
    dev.synchronize()
    dev.delay(40)
    x.fill_(3)
    assert _READS[case](x) == [3.0] * 5


@check("copy/h2d_after_earlier_work", "COPY-019", needs=("delay",))
def a_copy_to_the_device_comes_after_earlier_work(dev: Device) -> None:
    """A copy to the device overwrites what was queued before it, never the other way round."""
    x = torch.zeros(4096, device=dev.device())
    source = ramp((4096,))
    dev.synchronize()
    dev.delay(40)
    x.fill_(-1)
    x.copy_(source)
    dev.assert_equal(x, source)


@contextmanager
def _busy_side_stream(dev: Device) -> Iterator[None]:
    """Work goes to a side stream that is busy, and is done after the block."""
    side = dev.stream()
    dev.synchronize()
    with side:
        dev.delay(40)
        yield
    side.synchronize()


@check("copy/stream_order:h2d", "COPY-020", needs=("streams", "delay"))
def copies_to_the_device_run_on_the_current_stream(dev: Device) -> None:
    """A copy from the host, on a side stream, comes after that stream's work."""
    source, target = ramp((2048,)), torch.zeros(2048, device=dev.device())
    with _busy_side_stream(dev):
        target.fill_(-1)
        target.copy_(source, non_blocking=True)
    dev.assert_equal(target, source)


@check("copy/stream_order:d2d", "COPY-020", needs=("streams", "delay"))
def copies_on_the_device_run_on_the_current_stream(dev: Device) -> None:
    """A copy within the device, on a side stream, comes after that stream's work."""
    source, target = (torch.zeros(2048, device=dev.device()) for _ in range(2))
    with _busy_side_stream(dev):
        source.fill_(5)
        target.copy_(source, non_blocking=True)
    dev.assert_equal(target, torch.full((2048,), 5.0))


@check("copy/stream_order:d2h", "COPY-020", needs=("streams", "delay"))
def copies_to_the_host_run_on_the_current_stream(dev: Device) -> None:
    """cpu(), on a side stream, reads what that stream's work has written."""
    source = torch.zeros(2048, device=dev.device())
    with _busy_side_stream(dev):
        source.fill_(5)
        result = source.cpu()
    dev.assert_equal(result, torch.full((2048,), 5.0))


_SENT: dict[str, View] = {"contiguous": lambda x: x, "strided": lambda x: x[::2, 1:]}


@check("copy/to_cpu_non_blocking", "COPY-016", cases=_SENT)
def to_cpu_non_blocking_is_right_after_synchronising(dev: Device, case: str) -> None:
    """to("cpu", non_blocking=True) holds the values once the device was synchronised."""
    if dev.is_accelerator:
        dev.require("pinned_memory")  # torch puts the result there
    source = ramp((300, 40))
    result = _SENT[case](source.to(dev.device())).to("cpu", non_blocking=True)
    dev.synchronize()
    assert torch.equal(result, _SENT[case](source))


# ---- other devices ---------------------------------------------------------------------------

_PEER_VIEWS: dict[str, View] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[1::2, ::3],
    "expanded": lambda x: x[:1].expand(5, -1),
    "conj": lambda x: x.conj(),
    "empty": lambda x: x[:0],
}


@check("copy/peer", "COPY-021", needs=("multi_device", "complex64"), cases=_PEER_VIEWS)
def peer_copies_carry_any_layout(dev: Device, case: str) -> None:
    """A view on one device arrives on another with its values, in both directions."""
    source = ramp(_BASE, torch.complex64)
    expected = _PEER_VIEWS[case](source).resolve_conj()
    for first, second in ((0, 1), (1, 0)):
        there = _PEER_VIEWS[case](source.to(dev.device(first))).to(dev.device(second))
        assert there.device == dev.device(second)
        dev.assert_equal(there.resolve_conj(), expected)


#: The (4, 6) part of an (8, 12) tensor that is written, and the data type of what is copied.
_PEER_TARGETS: dict[str, tuple[View, torch.dtype]] = {
    "strided": (lambda x: x.t()[1::2, ::2].t(), torch.float32),
    "row": (lambda x: x[2:6, :6], torch.float32),
    "cast": (lambda x: x.t()[1::2, ::2].t(), torch.int32),
}


@check("copy/peer_into", "COPY-021", needs=("multi_device",), cases=_PEER_TARGETS)
def peer_copies_write_any_layout(dev: Device, case: str) -> None:
    """copy_ from another device writes exactly the elements of a view, in both directions."""
    part, dtype = _PEER_TARGETS[case]
    source = ramp((4, 6), dtype)
    for first, second in ((0, 1), (1, 0)):
        expected = torch.full((8, 12), float(_UNTOUCHED))
        actual = expected.to(dev.device(second), copy=True)
        part(expected).copy_(source)
        part(actual).copy_(source.to(dev.device(first)))
        dev.assert_equal(actual, expected)


@check("copy/peer_cast", "COPY-021", needs=("multi_device",), dtypes=DTYPES)
def peer_copies_convert(dev: Device, dtype: torch.dtype) -> None:
    """A copy between devices keeps a data type and converts to another one."""
    source = ramp((5, 6), dtype, positive=True)
    for first, second in ((dev.device(0), dev.device(1)), (dev.device(1), dev.device(0))):
        dev.assert_equal(source.to(first).to(second), source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = torch.zeros(5, 6, device=second).copy_(source.to(first))
            dev.assert_equal(actual, source.to(torch.float32))


_NON_BLOCKING = {"blocking": False, "non_blocking": True}


@check("copy/peer_large", "COPY-021", needs=("multi_device",), cases=_NON_BLOCKING)
def peer_copies_carry_every_element(dev: Device, case: str) -> None:
    """Some ten million odd-sized elements arrive whole, in both directions."""
    source = torch.arange(10_000_019, dtype=torch.int32)
    for first, second in ((0, 1), (1, 0)):
        x = source.to(dev.device(first))
        there = x.to(dev.device(second), non_blocking=_NON_BLOCKING[case])
        dev.assert_equal(there, source)


def _copied(x: torch.Tensor, _: torch.device) -> torch.Tensor:
    result = x.to(x.device, copy=True)
    assert apart(result, x)
    return result


#: Copies of a tensor that end on its own device; the other device is given, too.
_PEER_SELF: dict[str, _CopyTo] = {
    "copy": lambda x, _: x.copy_(x),
    "to": _copied,
    "chain": lambda x, other: x.to(other).to(x.device),
}


@check("copy/peer_self", "COPY-021", needs=("multi_device",), cases=_PEER_SELF)
def copies_may_end_where_they_began(dev: Device, case: str) -> None:
    """A copy to the own device, whichever is current, and one there and back keep the values."""
    source = ramp((33, 5))
    for first, second in ((0, 1), (1, 0)):
        result = _PEER_SELF[case](source.to(dev.device(first)), dev.device(second))
        assert result.device == dev.device(first)
        dev.assert_equal(result, source)


@check("copy/peer_waits_for_source", "COPY-022", needs=("multi_device", "delay"))
def a_peer_copy_waits_for_the_source_device(dev: Device) -> None:
    """Work queued on the source device before the copy is seen by the copy."""
    x = torch.zeros(1024, device=dev.device(0))
    dev.synchronize(0)
    dev.delay(40)
    x.fill_(7)
    dev.assert_equal(x.to(dev.device(1), non_blocking=True), torch.full((1024,), 7.0))


@check("copy/peer_before_source_changes", "COPY-022", needs=("multi_device", "delay"))
def a_peer_copy_comes_before_later_work_of_the_source(dev: Device) -> None:
    """Work queued on the source device after the copy does not reach the copy."""
    source = ramp((1024,))
    x = source.to(dev.device(0))
    dev.synchronize(0)
    dev.delay(40)
    there = x.to(dev.device(1), non_blocking=True)
    x.fill_(-1)
    dev.assert_equal(there, source)


@check("copy/peer_after_target_work", "COPY-022", needs=("multi_device", "delay"))
def a_peer_copy_comes_after_earlier_work_of_the_target(dev: Device) -> None:
    """Work queued on the destination device before the copy does not overwrite it."""
    source = ramp((1024,))
    x = source.to(dev.device(1))
    target = torch.zeros(1024, device=dev.device(0))
    dev.synchronize(0)
    dev.synchronize(1)
    dev.delay(40)
    target.fill_(-1)
    target.copy_(x, non_blocking=True)
    dev.assert_equal(target, source)


@check("copy/peer_on_side_stream", "COPY-022", needs=("multi_device", "streams", "delay"))
def a_peer_copy_on_a_side_stream_is_ordered(dev: Device) -> None:
    """A copy on a side stream of the source follows that stream and is seen by the target."""
    x = torch.zeros(1024, device=dev.device(0))
    dev.synchronize()
    side = dev.stream(0)
    with side:
        dev.delay(40)
        x.fill_(7)
        there = x.to(dev.device(1), non_blocking=True)
    dev.assert_equal(there + 1, torch.full((1024,), 8.0))
    side.synchronize()


@check("copy/peer_target_stream", "COPY-022", needs=("multi_device", "streams", "delay"))
def a_peer_copy_follows_the_side_stream_of_its_target(dev: Device) -> None:
    """Where a side stream is current on the destination, the copy is in order with its work."""
    source = ramp((1024,))
    x = source.to(dev.device(1))
    target = torch.zeros(1024, device=dev.device(0))
    dev.synchronize()
    with dev.stream(0):
        dev.delay(40)
        target.fill_(-1)
        target.copy_(x, non_blocking=True)
        seen = target + 1
        target.fill_(-1)
        assert torch.equal(seen.cpu(), source + 1)


@check("copy/peer_source_freed", "COPY-022", needs=("multi_device", "delay"))
def memory_of_a_peer_copy_is_not_used_again_too_early(dev: Device) -> None:
    """A source may be dropped while its copy is queued; what gets its memory comes after that."""
    source = ramp((4096,))
    dev.synchronize()
    x = source.to(dev.device(0))
    dev.delay(40)
    there = x.to(dev.device(1), non_blocking=True)
    del x
    later = [torch.full((4096,), -1.0, device=dev.device(0)) for _ in range(4)]
    dev.assert_equal(there, source)
    dev.assert_equal(later[0], torch.full((4096,), -1.0))


@check("copy/peer_keeps_current_device", "COPY-030", needs=("multi_device",))
def a_peer_copy_leaves_the_current_device(dev: Device) -> None:
    """Copying to, from and between other devices does not change the current device."""
    before = torch.accelerator.current_device_index()
    first, second = (ramp((4,)).to(dev.device(index)) for index in (0, 1))
    copies: dict[str, Callable[[], object]] = {
        "from the host": lambda: ramp((4,)).to(dev.device(1)),
        "to another device": lambda: first.to(dev.device(1)),
        "from another device": lambda: second.to(dev.device(0)),
        "into another device": lambda: second.copy_(first),
        "to the host": second.cpu,
        "to Python": second[0].item,
    }
    for name, copy in copies.items():
        copy()
        assert torch.accelerator.current_device_index() == before, name


# ---- to() ------------------------------------------------------------------------------------


#: A tensor, made from one on the device, and what to() is given that changes nothing about it.
_SAME: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, object]]] = {
    "device": lambda x: (x, x.device),
    "string": lambda x: (x, str(x.device)),
    "dtype": lambda x: (x, x.dtype),
    "other": lambda x: (x, torch.empty(1, device=x.device)),
    "cpu": lambda x: (x.cpu(), "cpu"),
}


@check("copy/to_same", "COPY-031", cases=_SAME)
def to_without_a_change_returns_the_same_tensor(dev: Device, case: str) -> None:
    """to() that changes nothing returns self; with copy=True it returns a new tensor."""
    x, argument = _SAME[case](ramp((3, 4)).to(dev.device()))
    same = x.to(argument)  # type: ignore[call-overload]  # any of the overloads
    assert same is x
    other = x.to(argument, copy=True)
    assert other is not x
    other.zero_()
    dev.assert_equal(x, ramp((3, 4)))


#: Signatures of to() that ask for a device, and the data type they ask for.
_TO_FORMS: dict[str, tuple[_CopyTo, torch.dtype]] = {
    "device": (lambda x, device: x.to(device), torch.float32),
    "string": (lambda x, device: x.to(device.type), torch.float32),
    "dtype": (lambda x, device: x.to(device).to(torch.int16), torch.int16),
    "both": (lambda x, device: x.to(device, torch.int16), torch.int16),
    "like": (lambda x, device: x.to(torch.empty(1, dtype=torch.int16, device=device)), torch.int16),
    "keyword": (
        lambda x, device: x.to(device=device, dtype=torch.int16, non_blocking=True),
        torch.int16,
    ),
}


@check("copy/to_forms", "COPY-023", cases=_TO_FORMS)
def every_form_of_to_reaches_the_device(dev: Device, case: str) -> None:
    """Each signature of to() gives the asked device and data type."""
    to, dtype = _TO_FORMS[case]
    source = ramp((3, 4))
    result = to(source, dev.device())
    assert result.device.type == dev.type
    dev.assert_equal(result, source.to(dtype))


@check("copy/to_memory_format", "COPY-006", cases=_DIRECTIONS)
def to_honours_memory_format(dev: Device, case: str) -> None:
    """to(memory_format=channels_last) gives those strides while moving."""
    source_on, target_on = _DIRECTIONS[case](dev)
    source = ramp((2, 3, 4, 5))
    moved = source.to(source_on).to(target_on, memory_format=torch.channels_last, copy=True)
    assert moved.is_contiguous(memory_format=torch.channels_last)
    dev.assert_equal(moved, source)


@check("copy/to_default_index", "COPY-023", needs=("multi_device",))
def to_without_an_index_means_the_current_device(dev: Device) -> None:
    """to("<type>") follows the current device."""
    assert ramp((2,)).to(dev.type).device == dev.device(torch.accelerator.current_device_index())
    before = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(1)
    try:
        assert ramp((2,)).to(dev.type).device == dev.device(1)
    finally:
        torch.accelerator.set_device_index(before)


#: What a copy needs, where it begins and ends, and the copy to that end.
_DIFFERENTIABLE: dict[str, tuple[tuple[str, ...], _Ends, _CopyTo]] = {
    "to_device": ((), _DIRECTIONS["h2d"], lambda x, end: x.to(end)),
    "to_cpu": ((), _DIRECTIONS["d2h"], lambda x, end: x.cpu()),
    "copy": ((), _DIRECTIONS["h2d"], lambda x, end: torch.zeros(3, 4, device=end).copy_(x)),
    "dtype": (("bfloat16",), _DIRECTIONS["d2d"], lambda x, end: x.to(torch.bfloat16).to(x.dtype)),
    "peer": (
        ("multi_device",),
        lambda dev: (dev.device(0), dev.device(1)),
        lambda x, end: x.to(end),
    ),
}


@check("copy/autograd", "COPY-024", cases=_DIFFERENTIABLE)
def gradients_flow_through_copies(dev: Device, case: str) -> None:
    """A copy is differentiable: the gradient comes back to where the input lives."""
    needs, ends, copy = _DIFFERENTIABLE[case]
    dev.require(*needs)
    start, end = ends(dev)
    leaf = ramp((3, 4)).to(start, copy=True).requires_grad_()
    weight = ramp((3, 4)) * 0.5
    out = copy(leaf, end) * weight.to(end)
    out.backward(torch.ones_like(out))
    assert leaf.grad is not None
    assert leaf.grad.device == leaf.device
    dev.assert_close(leaf.grad, weight)


# ---- Python ----------------------------------------------------------------------------------


@check("copy/item", "COPY-025", dtypes=DTYPES)
def item_returns_the_python_value(dev: Device, dtype: torch.dtype) -> None:
    """item() of a 0-dim, a one-element and an element of a view gives the exact value and type."""
    source = ramp((3, 4), dtype)
    there = source.to(dev.device())
    for index in ((0, 0), (1, 2), (2, 3)):
        expected = source[index].item()
        actual = there[index].item()
        assert type(actual) is type(expected)
        assert actual == expected
    assert there[2:3, 1:2].item() == source[2, 1].item()


@check("copy/tolist", "COPY-025", dtypes=DTYPES)
def tolist_returns_nested_python_values(dev: Device, dtype: torch.dtype) -> None:
    """tolist() gives nested lists of the exact values, also of a transposed view."""
    source = ramp((3, 4), dtype)
    there = source.to(dev.device())
    assert there.tolist() == source.tolist()
    assert there.t().tolist() == source.t().tolist()
    assert there[1, 1].tolist() == source[1, 1].tolist()


@check("copy/item_lazy", "COPY-025", needs=("complex64",))
def item_resolves_conjugate_and_negative_views(dev: Device) -> None:
    """item() and tolist() of lazy views give the resolved value."""
    x = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64, device=dev.device())
    assert x.conj()[0].item() == 1 - 2j
    assert x.conj().imag[1].item() == 4.0
    assert x.conj().tolist() == [1 - 2j, 3 + 4j]


#: A protocol, and pairs of what a tensor holds and what is read from it.
_PROTOCOLS: dict[str, tuple[Callable[[Any], object], list[tuple[Any, object]]]] = {
    "bool": (bool, [(7, True), ([0.0], False)]),
    "int": (int, [(7, 7), (-2.75, -2)]),
    "float": (float, [(7, 7.0)]),
    "index": (range(10).__getitem__, [(7, 7)]),
    "complex": (complex, [(7, 7 + 0j)]),
}


@check("copy/scalar_protocols", "COPY-025", cases=_PROTOCOLS)
def python_scalar_protocols_work(dev: Device, case: str) -> None:
    """bool(), int(), float(), complex() and indexing with a tensor read the device value."""
    read, pairs = _PROTOCOLS[case]
    for held, expected in pairs:
        value = read(torch.tensor(held, device=dev.device()))
        assert type(value) is type(expected)
        assert value == expected


@check("copy/item_needs_one_element", "COPY-025")
def item_of_several_elements_raises(dev: Device) -> None:
    """item() and bool() of a tensor with several or no elements raise RuntimeError."""
    for count in (0, 2):
        x = torch.zeros(count, device=dev.device())
        for read in (x.item, x.__bool__):
            assert isinstance(raised(read), RuntimeError)


def _changed(x: torch.Tensor, row: int, column: int, by: float) -> torch.Tensor:
    y = x.clone()
    y[row, column] += by
    return y


_Pairs = Callable[[torch.Tensor], list[tuple[torch.Tensor, torch.Tensor]]]

#: Pairs of tensors made of a (3, 4) tensor, and whether they are equal.
_PAIRS: dict[str, tuple[_Pairs, bool]] = {
    "same": (lambda x: [(x, x.clone())], True),
    "different": (lambda x: [(x, _changed(x, 2, 3, 1))], False),
    "shape": (lambda x: [(x, x.reshape(4, 3)), (x[:1], x[:1].expand(3, 4))], False),
    "nan": (lambda x: [(_changed(x, 0, 0, math.nan), _changed(x, 0, 0, math.nan))], False),
    "empty": (lambda x: [(x[:0], x.clone()[:0])], True),
    "strided": (lambda x: [(x.t(), x.t().contiguous())], True),
}


@check("copy/equal", "COPY-026", cases=_PAIRS)
def torch_equal_compares_on_the_device(dev: Device, case: str) -> None:
    """torch.equal tells equal from different tensors, by shape and by value."""
    pairs, expected = _PAIRS[case]
    for x, y in pairs(ramp((3, 4)).to(dev.device())):
        assert torch.equal(x, y) is expected


@check("copy/equal_across", "COPY-026", needs=("accelerator",))
def torch_equal_refuses_mixed_devices(dev: Device) -> None:
    """torch.equal of a host and a device tensor raises; it never guesses."""
    x = ramp((3,))
    there = x.to(dev.device())
    assert isinstance(raised(lambda: torch.equal(there, x)), RuntimeError)


@check("copy/numpy", "COPY-001", dtypes=("bool", "uint8", "int64", "float16", "float32", "float64"))
def numpy_interchange_through_the_host(dev: Device, dtype: torch.dtype) -> None:
    """cpu().numpy() and from_numpy().to(device) carry the values both ways."""
    source = ramp((3, 4), dtype)
    array = source.to(dev.device()).cpu().numpy()
    assert array.tolist() == source.tolist()
    dev.assert_equal(torch.from_numpy(array).to(dev.device()), source)


@check("copy/numpy_refused:numpy", "COPY-027", needs=("accelerator", "plain_tensors"))
def numpy_of_a_device_tensor_raises(dev: Device) -> None:
    """numpy() of a device tensor raises TypeError and does not copy behind the user's back."""
    assert isinstance(raised(ramp((3,)).to(dev.device()).numpy), TypeError)


@check("copy/numpy_refused:array", "COPY-027", needs=("accelerator", "plain_tensors"))
def an_array_of_a_device_tensor_raises(dev: Device) -> None:
    """numpy.asarray() of a device tensor raises TypeError, too."""
    import numpy

    x = ramp((3,)).to(dev.device())
    assert isinstance(raised(lambda: numpy.asarray(x)), TypeError)


_PRINTED: dict[str, Callable[[], torch.Tensor]] = {
    "float32": lambda: ramp((2, 3)),
    "float64": lambda: ramp((2, 3), torch.float64),
    "bfloat16": lambda: ramp((2, 3), torch.bfloat16),
    "float64_range": lambda: torch.tensor([1e300, 1e-300, 1 / 3], dtype=torch.float64),
    "int64": lambda: ramp((2, 3), torch.int64),
    "int64_wide": lambda: torch.tensor([2**53 + 1, -(2**62) - 1]),
    "bool": lambda: ramp((5,), torch.bool),
    "complex64": lambda: ramp((2, 2), torch.complex64),
    "zero_dim": lambda: torch.tensor(2.5),
    "empty": lambda: torch.empty(0, 3),
    "special": lambda: torch.tensor([float("nan"), float("inf"), -0.0, 1e-10]),
    "summarised": lambda: ramp((40, 40)),
    "scientific": lambda: torch.tensor([1e-8, 1.0, 1e8]),
}

_PRINTED_VIEWS: dict[str, View] = {
    "strided": lambda x: x[::2, 1:],
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:1].expand(3, -1),
    "conj": lambda x: x.to(torch.complex64).conj(),
    "requires_grad": lambda x: x.detach().requires_grad_(),
    "grad_fn": lambda x: x.detach().requires_grad_() * 2,
}


def _without_device(tensor: torch.Tensor) -> str:
    """repr() of a tensor without its device and with every run of blanks as one."""
    text = " ".join(repr(tensor).split())
    if tensor.device.type == "cpu":
        return text
    mark = f", device='{tensor.device}'"
    assert mark in text, f"the representation does not name {tensor.device}: {text}"
    return text.replace(mark, "")


@check(
    "copy/repr",
    "COPY-028",
    cases=_PRINTED,
    needs=("plain_tensors",),
    case_needs={"bfloat16": "bfloat16", "complex64": "complex64"},
)
def representation_shows_values_and_device(dev: Device, case: str) -> None:
    """repr() of a device tensor reads as the CPU's with the device added."""
    source = _PRINTED[case]()
    if source.is_floating_point() or source.is_complex():
        dev.require("float64")  # torch formats numbers in it, on their device
    assert _without_device(source.to(dev.device())) == _without_device(source)


@check(
    "copy/repr_view",
    "COPY-028",
    cases=_PRINTED_VIEWS,
    needs=("float64", "plain_tensors"),
    case_needs={"conj": "complex64"},
)
def representation_of_views(dev: Device, case: str) -> None:
    """repr() of views and of tensors in a graph reads as the CPU's with the device added."""
    source = ramp((4, 6))
    view = _PRINTED_VIEWS[case]
    assert _without_device(view(source.to(dev.device()))) == _without_device(view(source))


@check("copy/format", "COPY-028", needs=("plain_tensors",))
def format_of_a_scalar_uses_its_value(dev: Device) -> None:
    """An f-string with a format applies it to the value of a 0-dim tensor."""
    x = torch.tensor(3.14159, device=dev.device())
    assert f"{x:.2f}" == "3.14"
    assert f"{torch.tensor(5, device=dev.device()):03d}" == "005"
