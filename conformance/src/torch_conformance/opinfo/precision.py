# SPDX-License-Identifier: BSD-3-Clause
"""Whether a result that differs from the CPU's is as precise as the CPU's.

The CPU rounds, too, and some of its kernels round more often than a device does. Asked only after a
comparison within tolerance failed: both results are then measured against double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_conformance.opinfo.sample import Sample, tensors


class Grant(NamedTuple):
    """How far a device may be off."""

    factor: float
    """Times the error of the CPU: the errors of two algorithms of the same precision differ that
    much where a sample is ill-conditioned."""
    limit: float
    """Beyond this part of the largest result, an error of the CPU is not a rounding error but
    another result."""


RESULTS = Grant(5.0, 0.05)
# Derivatives are made of many operators. Those of factorisations were measured to be between 1/6.3
# and 6.3 of each other, as often less as more; what the CPU loses by keeping 16 bits between the
# steps is up to 9% of the largest (masked.softmin).
DERIVATIVES = Grant(8.0, 0.1)
# A device that is closer to the truth than the CPU is right if it is that close: in units of the
# dtype's last place at 1, and of the largest result. Fused kernels of the CPU lose most digits.
PLACES = 4

_DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def as_precise(
    act: Callable[[Sample], Any],
    sample: Sample,
    actual: Any,
    expected: Any,
    grant: Grant = RESULTS,
) -> bool:
    """Whether no result is further from the truth than the CPU's, but for what is granted."""
    try:
        exact = act(in_double(sample))
    except Exception:
        return False  # Some operators have no double precision.
    triples = [list(tensors(value)) for value in (actual, expected, exact)]
    if len({len(found) for found in triples}) != 1:
        return False
    return all(_close(a, e, x, grant) for a, e, x in zip(*triples, strict=True))


def in_double(sample: Sample) -> Sample:
    """The same numbers in double precision."""

    def wide(tensor: Tensor) -> Tensor:
        dtype = _DOUBLE.get(tensor.dtype, tensor.dtype)
        return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)

    changed = sample.map(wide)
    return replace(
        changed,
        args=tuple(map(_wider, changed.args)),
        kwargs={name: _wider(value) for name, value in changed.kwargs.items()},
    )


def _wider(value: Any) -> Any:
    """A dtype that is asked for, in double precision; anything else as it is."""
    return _DOUBLE.get(value, value) if isinstance(value, torch.dtype) else value


def _close(actual: Tensor, expected: Tensor, exact: Tensor, grant: Grant) -> bool:
    if expected.dtype not in _DOUBLE:
        return torch.equal(actual, expected)
    wide = _DOUBLE[expected.dtype]
    if exact.dtype != wide or exact.shape != expected.shape:
        return False
    places = torch.finfo(expected.dtype).eps
    actual, expected = actual.to(wide), expected.to(wide)
    finite = actual.isfinite() & expected.isfinite() & exact.isfinite()
    lost = ~expected.isfinite() & actual.isfinite() & exact.isfinite()
    found = (actual[lost] - exact[lost]).abs() <= PLACES * places * exact[lost].abs()
    # Where the CPU has nothing (fmod of a large quotient), only the truth will do.
    if not found.all():
        return False
    rest = ~finite & ~lost
    if not _same_infinities(actual[rest], expected[rest]):
        return False
    if not finite.any():
        return True
    truth = exact[finite]
    ours, theirs = ((x[finite] - truth).abs().amax() for x in (actual, expected))
    largest = truth.abs().amax()
    if theirs > grant.limit * largest:
        return bool(ours <= theirs and ours <= PLACES * places * largest)
    return bool(ours <= grant.factor * theirs)


def _same_infinities(actual: Tensor, expected: Tensor) -> bool:
    """Whether both have the same infinities and NaNs; a complex number is infinite in one way."""
    if actual.is_complex():
        return torch.equal(actual.isfinite(), expected.isfinite())
    return bool(torch.isclose(actual, expected, rtol=0, atol=0, equal_nan=True).all())
