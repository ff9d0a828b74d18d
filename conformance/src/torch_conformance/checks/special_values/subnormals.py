# SPDX-License-Identifier: BSD-3-Clause
"""Subnormal numbers are computed exactly, and conversions round to them."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, Inputs, check, tensors
from torch_conformance.checks.special_values._values import FLOATS, Unary


def _subnormal(m: Inputs, dtype: torch.dtype) -> Tensor:
    info = torch.finfo(dtype)
    least, tiny = info.smallest_normal * info.eps, info.smallest_normal
    return m.of(torch.tensor([least, -least, 3 * least, tiny / 2, -tiny / 2, tiny], dtype=dtype))


#: Of subnormal numbers x; each result is exact.
_OF_SUBNORMAL: dict[str, Unary] = {
    "neg": lambda x: [-x, x.abs()],
    "add": lambda x: [x + x, x - x.flip(0)],
    "scaled": lambda x: [x * 2, x * 4, 2 * x],
    "compare": lambda x: [x > 0, x == 0, x < x.flip(0), x.sign(), x.signbit()],
    "truth": lambda x: [x.bool(), x.logical_not(), x.count_nonzero(), x.any(), x.nonzero()],
    "choose": lambda x: [torch.maximum(x, -x), x.max(), x.clamp(min=0), x.relu(), x.argmax()],
    "sum": lambda x: [x.sum(), x.view(2, 3).sum(0), x.cumsum(0)],
    "copy": lambda x: [x.clone(), x.flip(0), torch.cat([x, x]), torch.where(x > 0, x, x)],
    "sort": lambda x: list(x.sort()),
    "fmod": lambda x: x.fmod(x.abs().max()),
    "in_place": lambda x: x.clone().add_(x).sub_(x),
    "foreach": lambda x: torch._foreach_add([x, x], [x, x]),
}


@check("special_values/subnormal", "SPECIAL-003", cases=_OF_SUBNORMAL, dtypes=FLOATS)
def subnormal_numbers_are_not_zero(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Numbers below the smallest normal one are computed exactly, and are not zero."""
    work = _OF_SUBNORMAL[case]
    expected = tensors(work(_subnormal(Inputs(torch.device("cpu"), torch.float64), dtype)))
    actual = tensors(work(_subnormal(Inputs(dev.device(), dtype), dtype)))
    for got, wanted in zip(actual, expected, strict=True):
        dev.assert_equal(got, wanted.to(got.dtype) if wanted.is_floating_point() else wanted)


@check("special_values/subnormal_cast", "SPECIAL-003", dtypes=FLOATS)
def subnormal_numbers_are_converted(dev: Device, dtype: torch.dtype) -> None:
    """A conversion to each floating data type rounds to its subnormal numbers."""
    host = Inputs(torch.device("cpu"), dtype)
    for other in dev.dtypes("floating"):
        numbers = torch.cat([_subnormal(host, dtype), _subnormal(host, other) * 1.25])
        dev.assert_equal(numbers.to(dev.device()).to(other), numbers.to(other))
