# SPDX-License-Identifier: BSD-3-Clause
"""Conjugate and negative views are resolved when they are copied, and can be written."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, ramp
from torch_conformance.checks.copy._copies import BASE, UNTOUCHED, View

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
    source = ramp(BASE, dtype)
    expected = _LAZY_VIEWS[case](source).resolve_conj().resolve_neg()
    for name, copy in _LAZY_COPIES.items():
        copied = copy(_LAZY_VIEWS[case](source.to(dev.device())), dev)
        actual = copied.cpu().resolve_conj().resolve_neg()
        assert torch.equal(actual, expected), f"read by {name}"


@check("copy/lazy_from_host", "COPY-013", cases=_LAZY_VIEWS)
def lazy_host_views_arrive_resolved(dev: Device, case: str) -> None:
    """A conjugate or negative view on the host is right on the device."""
    source = _LAZY_VIEWS[case](ramp(BASE, torch.complex64))
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
        expected = torch.full(BASE, UNTOUCHED, dtype=torch.complex64)
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
