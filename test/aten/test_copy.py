# SPDX-License-Identifier: BSD-3-Clause
"""Copies in every direction: types, strides, math bits, devices, and what may be late."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

import pytest
import torch
from interpreter import Python

import torch_puone as puone

T = TypeVar("T")

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
Reshape = Callable[[torch.Tensor], torch.Tensor]
LAYOUTS: dict[str, Reshape] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "every_other": lambda x: x[::2, 1::2],
    "one_column": lambda x: x[:, 3],
    "expanded": lambda x: x[:1].expand(5, -1),
    "scalar": lambda x: x[2, 3],
    "empty": lambda x: x[:, :0],
}
MATH_BITS: dict[str, Reshape] = {
    "conj": lambda z: z.conj(),
    "neg": lambda z: z.conj().imag,
    "conj_of_a_slice": lambda z: z[1:, ::2].conj(),
    "neg_transposed": lambda z: z.t().conj().imag,
    "neg_of_conj_view": lambda z: torch.view_as_real(z.conj().resolve_conj())[..., 1],
}


def values(dtype: torch.dtype, *sizes: int) -> torch.Tensor:
    """Numbers that every dtype can hold, with imaginary parts where there are any."""
    count = torch.Size(sizes).numel()
    real = torch.arange(count) % 100
    if dtype.is_complex:
        part = real.to(torch.float64)
        return torch.complex(part, 50 - part).to(dtype).reshape(sizes)
    return real.to(dtype).reshape(sizes)


def bits(x: torch.Tensor) -> torch.Tensor:
    """For comparing dtypes that torch.equal does not know."""
    return x.contiguous().flatten().view(torch.uint8)


class TestDtypes:
    @pytest.mark.parametrize("to", DTYPES, ids=str)
    @pytest.mark.parametrize("source", DTYPES, ids=str)
    @pytest.mark.filterwarnings("ignore:Casting complex")
    def test_a_cast_on_the_device_equals_the_cast_on_the_cpu(
        self, source: torch.dtype, to: torch.dtype
    ) -> None:
        x = values(source, 7, 9)
        cast = x.to("puone").to(to)
        assert cast.device.type == "puone"
        assert torch.equal(bits(cast.cpu()), bits(x.to(to)))
        assert not puone._fallback_counts()

    @pytest.mark.parametrize("dtype", [*DTYPES, *FLOAT8], ids=str)
    def test_every_dtype_survives_the_round_trip(self, dtype: torch.dtype) -> None:
        x = values(torch.float32, 5, 7).to(dtype)
        assert torch.equal(bits(x.to("puone").cpu()), bits(x))
        assert torch.equal(bits(x.to("puone").t().contiguous().cpu()), bits(x.t()))

    @pytest.mark.parametrize("dtype", FLOAT8, ids=str)
    def test_types_without_a_cast_kernel_are_cast_all_the_same(self, dtype: torch.dtype) -> None:
        x = torch.randn(9)
        assert torch.equal(bits(x.to("puone").to(dtype).cpu()), bits(x.to(dtype)))
        assert torch.equal(x.to(dtype).to("puone").float().cpu(), x.to(dtype).float())

    @pytest.mark.parametrize("source", [torch.float32, torch.int64, torch.complex64], ids=str)
    @pytest.mark.parametrize("to", [torch.float64, torch.uint8, torch.complex64], ids=str)
    @pytest.mark.filterwarnings("ignore:Casting complex")
    def test_a_cast_on_the_way_in_or_out_is_right(
        self, source: torch.dtype, to: torch.dtype
    ) -> None:
        x = values(source, 6, 4)
        assert torch.equal(x.to("puone", to).cpu(), x.to(to))
        assert torch.equal(x.to("puone").to("cpu", to), x.to(to))

    def test_discarding_an_imaginary_part_warns(self, python: Python) -> None:
        # In a fresh interpreter: torch warns once per process.
        result = python(
            "import torch, torch_puone\ntorch.ones(1, dtype=torch.complex64).to('puone').float()"
        )
        assert "discards the imaginary part" in result.stderr


class TestLayouts:
    @pytest.mark.parametrize("target", ["contiguous", "transposed", "every_other", "one_column"])
    @pytest.mark.parametrize("source", ["contiguous", "transposed", "every_other", "one_column"])
    @pytest.mark.parametrize("way", ["in", "out", "on", "peer"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
    def test_any_strides_to_any_strides(
        self, source: str, target: str, way: str, dtype: torch.dtype
    ) -> None:
        devices = {
            "in": ("cpu", "puone"),
            "out": ("puone", "cpu"),
            "on": ("puone", "puone"),
            "peer": ("puone:0", "puone:1"),
        }[way]
        src_base = values(torch.float32, 8, 8).to(devices[0])
        dst_base = torch.full((8, 8), 77, dtype=dtype, device=devices[1])
        expected_base = dst_base.cpu().clone()
        dst = LAYOUTS[target](dst_base)
        src = LAYOUTS[source](src_base)
        if src.shape != dst.shape:
            src = src.flatten()[0].expand(dst.shape)
        dst.copy_(src)
        LAYOUTS[target](expected_base).copy_(src.cpu())
        assert torch.equal(dst_base.cpu(), expected_base)

    @pytest.mark.parametrize("name", LAYOUTS)
    def test_every_layout_reads_back_equal(self, name: str) -> None:
        x = values(torch.float32, 8, 8)
        view = LAYOUTS[name](x.to("puone"))
        assert torch.equal(view.cpu(), LAYOUTS[name](x))
        assert torch.equal(view.clone().cpu(), LAYOUTS[name](x))
        assert torch.equal(LAYOUTS[name](x).to("puone").cpu(), LAYOUTS[name](x))

    def test_strides_without_gaps_are_kept_on_the_way(self) -> None:
        x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
        assert x.to("puone").stride() == x.stride()
        assert x.to("puone").cpu().stride() == x.stride()

    def test_the_source_is_broadcast(self) -> None:
        x = torch.zeros(3, 4, device="puone")
        x.copy_(torch.arange(4.0))
        assert torch.equal(x.cpu(), torch.arange(4.0).expand(3, 4))
        y = torch.zeros(3, 4)
        y.copy_(torch.arange(3.0).to("puone").unsqueeze(1))
        assert torch.equal(y, torch.arange(3.0).unsqueeze(1).expand(3, 4))

    def test_many_dimensions(self) -> None:
        x = torch.arange(2.0**12).reshape([2] * 12).permute(*range(11, -1, -1))
        assert torch.equal(x.to("puone").contiguous().cpu(), x)
        device = torch.arange(2.0**12).to("puone").reshape([2] * 12).permute(*range(11, -1, -1))
        assert torch.equal(device.contiguous().cpu(), x)

    def test_overlapping_ranges_are_refused(self) -> None:
        x = torch.arange(6.0).to("puone")
        with pytest.raises(RuntimeError, match=r"memory location|overlap"):
            x[1:].copy_(x[:-1])
        with pytest.raises(RuntimeError, match=r"memory location|overlap"):
            torch.zeros(1, device="puone").expand(3).copy_(x[:3])

    def test_a_copy_onto_itself_does_nothing(self) -> None:
        x = torch.arange(6.0).to("puone")
        x.copy_(x)
        x[1:].copy_(x[1:])
        assert torch.equal(x.cpu(), torch.arange(6.0))


class TestMathBits:
    @pytest.mark.parametrize("name", MATH_BITS)
    @pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
    def test_a_view_with_a_math_bit_reads_back_equal(self, name: str, dtype: torch.dtype) -> None:
        z = values(dtype, 6, 6)
        view, expected = MATH_BITS[name](z.to("puone")), MATH_BITS[name](z)
        assert view.is_conj() == expected.is_conj()
        assert view.is_neg() == expected.is_neg()
        resolved = expected.resolve_conj().resolve_neg()
        assert torch.equal(view.cpu().resolve_conj().resolve_neg(), resolved)
        assert torch.equal(view.resolve_conj().resolve_neg().cpu(), resolved)
        assert torch.equal(expected.to("puone").resolve_conj().resolve_neg().cpu(), resolved)
        assert torch.equal(view.clone().cpu(), resolved)

    @pytest.mark.parametrize("source", ["cpu", "puone:0", "puone:1"])
    @pytest.mark.parametrize("target", ["cpu", "puone:0", "puone:1"])
    def test_all_combinations_of_bits_on_both_sides(self, source: str, target: str) -> None:
        conj = [lambda z: z, lambda z: z.conj()]
        neg: list[Reshape] = [lambda z: z.real, lambda z: z.conj().imag]
        for views, (i, j) in itertools.product((conj, neg), itertools.product(range(2), range(2))):
            base = values(torch.complex64, 4, 4)
            src, dst = base.to(source), torch.zeros(4, 4, dtype=torch.complex64, device=target)
            expected = torch.zeros(4, 4, dtype=torch.complex64)
            views[i](dst).copy_(views[j](src))
            views[i](expected).copy_(views[j](base))
            assert torch.equal(dst.cpu(), expected), (views is neg, i, j)

    def test_an_unsigned_source_goes_into_a_negative_view(self) -> None:
        z = torch.zeros(3, dtype=torch.complex64, device="puone")
        z.conj().imag.copy_(torch.tensor([1, 2, 3], dtype=torch.uint8).to("puone"))
        assert torch.equal(z.imag.cpu(), torch.tensor([-1.0, -2.0, -3.0]))

    def test_conj_physical_in_place_reads_and_writes_the_same_memory(self) -> None:
        z = values(torch.complex64, 5)
        device = z.to("puone")
        device.copy_(device.conj())
        assert torch.equal(device.cpu(), z.conj().resolve_conj())

    def test_operators_resolve_the_bits_of_their_arguments(self) -> None:
        z = values(torch.complex64, 4, 4)
        d = z.to("puone")
        assert torch.equal((d.conj() + 1).cpu(), z.conj() + 1)
        assert torch.allclose((d.conj() @ d).cpu(), z.conj() @ z)
        d.conj().mul_(2j)
        assert torch.equal(d.cpu(), z.clone().conj().mul_(2j).conj().resolve_conj())


class TestDevices:
    @pytest.mark.parametrize("shape", ["contiguous", "transposed", "every_other"])
    def test_a_copy_to_a_peer_sees_what_both_streams_had_queued(self, shape: str) -> None:
        source = torch.zeros(64, 64, device="puone:0")
        target = torch.zeros(64, 64, device="puone:1")
        with puone.device(0):
            puone._sleep_ms(20)
            source.fill_(1)
        with puone.device(1):
            puone._sleep_ms(40)
            target.fill_(2)
        view = LAYOUTS[shape](target)
        view.copy_(LAYOUTS[shape](source))
        assert view.eq(1).all().item()

    def test_what_the_peer_queues_after_the_copy_sees_it(self) -> None:
        source = torch.ones(1000, device="puone:0")
        with puone.device(0):
            puone._sleep_ms(30)
        assert source.to("puone:1").sum().item() == 1000

    def test_dtype_and_device_change_at_once(self) -> None:
        x = values(torch.int32, 5, 5)
        moved = x.to("puone:0").to("puone:1", torch.float64)
        assert moved.device.index == 1
        assert torch.equal(moved.cpu(), x.double())


def while_busy(work: Callable[[], T]) -> T:
    """What `work` returns while the stream is busy, which it must not wait for.

    The stream says whether it was busy all the time, so a slow machine only costs another attempt.
    """
    for ms in (200, 1000, 5000):
        puone._sleep_ms(ms)
        seen = work()
        if not puone.current_stream().query():
            return seen
        puone.synchronize()
    raise AssertionError("the stream was done each time: the copy waits for it")


class TestNonBlocking:
    def test_a_copy_from_pinned_memory_returns_before_it_has_run(self) -> None:
        source = torch.ones(1 << 16).pin_memory()
        target = torch.empty(1 << 16, device="puone")
        while_busy(lambda: target.copy_(source, non_blocking=True))
        assert target.sum().item() == 1 << 16

    def test_a_copy_to_pinned_memory_returns_before_it_has_run(self) -> None:
        source = torch.ones(1 << 16, device="puone")
        target = torch.zeros(1 << 16).pin_memory()

        def copy() -> float:
            target.zero_()
            target.copy_(source, non_blocking=True)
            return target.sum().item()

        assert while_busy(copy) == 0
        puone.current_stream().synchronize()
        assert target.sum().item() == 1 << 16

    def test_pageable_memory_may_be_overwritten_at_once(self) -> None:
        source = torch.ones(1 << 12)
        target = torch.empty(1 << 12, device="puone")
        puone._sleep_ms(50)
        target.copy_(source, non_blocking=True)
        source.zero_()
        assert target.sum().item() == 1 << 12

    def test_pageable_memory_is_complete_on_return(self) -> None:
        source = torch.ones(1 << 12, device="puone")
        target = torch.zeros(1 << 12)
        puone._sleep_ms(50)
        target.copy_(source, non_blocking=True)
        assert target.sum().item() == 1 << 12

    def test_a_pinned_block_is_not_reused_while_a_copy_reads_it(self) -> None:
        target = torch.empty(1 << 14, device="puone")
        puone.synchronize()
        puone._sleep_ms(100)
        target.copy_(torch.ones(1 << 14).pin_memory(), non_blocking=True)
        scribbles = [torch.zeros(1 << 14).pin_memory() for _ in range(4)]
        assert target.sum().item() == 1 << 14
        assert len(scribbles) == 4

    def test_a_blocking_copy_waits_even_when_it_casts(self) -> None:
        source = torch.ones(1 << 12)
        target = torch.empty(1 << 12, dtype=torch.float64, device="puone")
        puone._sleep_ms(50)
        target.copy_(source)
        assert puone.current_stream().query()
