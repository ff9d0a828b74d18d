# SPDX-License-Identifier: BSD-3-Clause
"""One value in or out: item, fill_, zero_, record_stream."""

from __future__ import annotations

import pytest
import torch

import torch_puone as puone

VALUES = {
    torch.bool: True,
    torch.uint8: 200,
    torch.int8: -5,
    torch.int16: -3000,
    torch.int32: -(2**30),
    torch.int64: 2**60 + 1,
    torch.uint16: 60000,
    torch.uint32: 2**32 - 1,
    torch.uint64: 2**63 - 1,
    torch.float16: 1.5,
    torch.bfloat16: -2.5,
    torch.float32: 0.1,
    torch.float64: 0.1,
    torch.complex32: 1 - 2j,
    torch.complex64: 1 - 2j,
    torch.complex128: 0.1 - 0.2j,
    torch.float8_e4m3fn: 1.5,
    torch.float8_e5m2: -2.0,
}


@pytest.mark.parametrize("dtype", VALUES, ids=str)
def test_a_filled_value_comes_back(dtype: torch.dtype) -> None:
    expected = torch.full((), VALUES[dtype], dtype=dtype).item()
    x = torch.empty(3, 3, dtype=dtype, device="puone").fill_(VALUES[dtype])
    assert x[1, 1].item() == expected
    x.zero_()
    assert x[2, 2].item() == 0
    x[:, 1].fill_(VALUES[dtype])
    assert [x[0, i].item() for i in range(3)] == [0, expected, 0]
    assert not puone._fallback_counts()


def test_item_waits_for_the_stream() -> None:
    x = torch.zeros(1, device="puone")
    puone._sleep_ms(30)
    x.fill_(3)
    assert x.item() == 3


def test_item_resolves_math_bits() -> None:
    z = torch.tensor(1 + 2j).to("puone")
    assert z.conj().item() == 1 - 2j
    assert z.conj().imag.item() == -2


@pytest.mark.parametrize("size", [0, 2])
def test_a_value_that_does_not_fit_is_refused(size: int) -> None:
    with pytest.raises(RuntimeError, match="overflow"):
        torch.empty(size, dtype=torch.uint8, device="puone").fill_(300)


def test_fill_takes_a_tensor_of_either_side() -> None:
    x = torch.empty(4, device="puone")
    assert x.fill_(torch.tensor(2)).eq(2).all()
    assert x.fill_(torch.tensor(3.0).to("puone")).eq(3).all()
    assert x.copy_(torch.arange(4.0)).fill_(x[2]).eq(2).all()
    with pytest.raises(RuntimeError, match="0-dimension"):
        x.fill_(torch.ones(1))


def test_filling_a_conjugate_view_stores_the_conjugate() -> None:
    z = torch.zeros(2, dtype=torch.complex64, device="puone")
    z.conj().fill_(1 + 2j)
    assert z[0].item() == 1 - 2j


def test_fill_and_zero_reach_expanded_gapped_and_empty_tensors() -> None:
    base = torch.ones(4, 6, device="puone")
    base[::2, 1:3].zero_()
    base[:, 5:].expand(4, 3).fill_(7)
    base[:, :0].zero_().fill_(1)
    expected = torch.ones(4, 6)
    expected[::2, 1:3], expected[:, 5] = 0, 7
    assert torch.equal(base.cpu(), expected)


def test_recorded_memory_is_not_reused_until_the_stream_has_passed() -> None:
    side = puone.Stream()
    x = torch.full((1 << 12,), 5.0, device="puone")
    puone.synchronize()
    with puone.stream(side):
        puone._sleep_ms(80)
        seen = x.clone()
    x.record_stream(side)
    del x
    scribbles = [torch.zeros(1 << 12, device="puone") for _ in range(4)]
    side.synchronize()
    assert seen.eq(5).all().item()
    assert len(scribbles) == 4
