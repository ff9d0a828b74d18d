# SPDX-License-Identifier: BSD-3-Clause
"""Factories and the operators that only change sizes, strides and storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

import torch_puone as puone


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def ramp(*sizes: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(sizes).numel())).reshape(sizes).to("puone")


class TestFactories:
    def test_empty_takes_sizes_dtype_and_memory_format(self) -> None:
        x = torch.empty(
            2, 3, 4, 5, dtype=torch.int16, device="puone", memory_format=torch.channels_last
        )
        assert x.device == torch.device("puone", 0)
        assert x.dtype == torch.int16
        assert x.is_contiguous(memory_format=torch.channels_last)

    def test_empty_on_another_device_leaves_the_current_one_alone(self) -> None:
        assert torch.empty(3, device="puone:1").device.index == 1
        assert puone.current_device() == 0

    def test_a_device_that_does_not_exist_is_refused(self) -> None:
        with pytest.raises((RuntimeError, ValueError), match=r"100|device"):
            torch.empty(1, device="puone:100")

    def test_empty_strided_keeps_the_strides(self) -> None:
        assert torch.empty_strided((2, 3), (1, 2), device="puone").stride() == (1, 2)

    def test_device_memory_cannot_be_pinned(self) -> None:
        with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
            torch.empty(1, device="puone", pin_memory=True)

    def test_other_layouts_are_refused_by_name(self) -> None:
        with pytest.raises(NotImplementedError):
            torch.empty(2, 2, device="puone", layout=torch.sparse_coo)

    @pytest.mark.usefixtures("deterministic")
    def test_uninitialised_memory_is_filled_in_deterministic_mode(self) -> None:
        assert torch.empty(5, device="puone").isnan().all()
        assert (torch.empty(5, dtype=torch.int32, device="puone") == 2**31 - 1).all()
        grown = torch.ones(2, device="puone").resize_(4)
        assert grown[:2].eq(1).all()
        assert grown[2:].isnan().all()

    def test_a_zero_tensor_has_no_memory_and_reads_as_zeros(self) -> None:
        zeros = torch._efficientzerotensor((3,), device="puone:1")
        assert zeros._is_zerotensor()
        assert zeros.device.index == 1
        x = torch.ones(3, device="puone:1")
        assert torch.equal((x + zeros).cpu(), torch.ones(3))
        assert torch.equal(zeros.cpu(), torch.zeros(3))


VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as_strided": lambda x: x.as_strided((2, 2), (1, 6), 1),
    "view": lambda x: x.view(6, 4),
    "view_dtype": lambda x: x.view(torch.int32),
    "reshape": lambda x: x.reshape(2, 12),
    "unfold": lambda x: x.unfold(1, 3, 2),
    "expand": lambda x: x[:, :1].expand(4, 5),
    "permute": lambda x: x.t(),
    "slice": lambda x: x[1:, ::2],
    "diagonal": lambda x: x.diagonal(1),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(4, 3, 2)),
    "movedim": lambda x: x.movedim(0, 1),
    "split": lambda x: x.split(2, 1)[1],
}


class TestViews:
    @pytest.mark.parametrize("name", VIEWS)
    def test_a_view_shares_storage_and_equals_the_one_on_the_cpu(self, name: str) -> None:
        base = ramp(4, 6)
        view, expected = VIEWS[name](base), VIEWS[name](base.cpu())
        assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
        assert view.stride() == expected.stride()
        assert view.storage_offset() == expected.storage_offset()
        assert torch.equal(view.cpu(), expected)
        assert not puone._fallback_counts()

    def test_writing_through_a_view_changes_the_base(self) -> None:
        base = torch.zeros(4, 4, device="puone")
        base[1].fill_(1)
        base.t()[2].copy_(torch.full((4,), 2.0))
        expected = torch.zeros(4, 4)
        expected[1], expected[:, 2] = 1, 2
        assert torch.equal(base.cpu(), expected)

    def test_real_and_imaginary_parts_are_views(self) -> None:
        z = torch.tensor([1 + 2j, 3 - 4j]).to("puone")
        assert torch.equal(z.real.cpu(), torch.tensor([1.0, 3.0]))
        assert torch.equal(z.imag.cpu(), torch.tensor([2.0, -4.0]))
        z.imag.zero_()
        assert torch.equal(z.cpu(), torch.tensor([1 + 0j, 3 + 0j]))


class TestResize:
    def test_growing_keeps_the_elements(self) -> None:
        x = ramp(4)
        x.resize_(3, 4)
        assert x.shape == (3, 4)
        assert torch.equal(x.flatten()[:4].cpu(), torch.arange(4.0))

    def test_shrinking_keeps_the_storage(self) -> None:
        x = ramp(8)
        address = x.data_ptr()
        x.resize_(2)
        assert (x.data_ptr(), x.untyped_storage().nbytes()) == (address, 32)

    def test_memory_format_sets_the_strides(self) -> None:
        x = torch.empty(0, device="puone")
        x.resize_(2, 3, 4, 5, memory_format=torch.channels_last)
        assert x.is_contiguous(memory_format=torch.channels_last)

    def test_growth_on_a_device_that_is_not_current_stays_there(self) -> None:
        x = torch.ones(2, device="puone:1").resize_(1000)
        assert x.device.index == 1
        assert torch.equal(x[:2].cpu(), torch.ones(2))

    def test_the_storage_itself_can_grow(self) -> None:
        x = ramp(4)
        x.untyped_storage().resize_(64)
        assert x.untyped_storage().nbytes() == 64
        assert torch.equal(x.cpu(), torch.arange(4.0))


class TestSet:
    def test_to_a_storage(self) -> None:
        source = ramp(6)
        x = torch.empty(0, device="puone").set_(source.untyped_storage())
        assert torch.equal(x.cpu(), source.cpu())

    def test_to_a_part_of_a_storage(self) -> None:
        source = ramp(6)
        x = torch.empty(0, device="puone")
        x.set_(source.untyped_storage(), 1, (2, 2), (2, 1))
        assert x.is_set_to(source.as_strided((2, 2), (2, 1), 1))
        assert torch.equal(x.cpu(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))

    def test_to_a_tensor(self) -> None:
        source = ramp(2, 3).t()
        x = torch.empty(0, device="puone").set_(source)  # type: ignore[call-overload]  # not in the stubs
        assert x.is_set_to(source)

    def test_to_nothing(self) -> None:
        x = ramp(3)
        x.set_()  # type: ignore[call-overload]  # not in the stubs
        assert x.numel() == 0
        assert x.untyped_storage().nbytes() == 0
        assert x.device.type == "puone"

    def test_a_storage_of_another_device_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="device"):
            ramp(3).set_(torch.ones(3).untyped_storage(), 0, (3,), (1,))

    def test_a_range_outside_the_storage_is_refused(self) -> None:
        x = ramp(3)
        with pytest.raises(RuntimeError, match=r"out of bounds|storage"):
            x.set_(x.untyped_storage(), 2, (3,), (1,))
