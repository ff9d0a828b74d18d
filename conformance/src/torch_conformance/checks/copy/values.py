# SPDX-License-Identifier: BSD-3-Clause
"""Values of every data type keep their bits, and tensors of no elements or of many arrive whole."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import DTYPES, Device, check, ramp
from torch_conformance.checks.copy._copies import View


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
