# SPDX-License-Identifier: BSD-3-Clause
"""The offset is the position in the sequence, is kept in the state, and has 64 bits."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._random_state import same


@check("generator/offset", "GEN-016", needs=("generator", "generator_offset"))
def the_offset_is_the_position_in_the_sequence(dev: Device) -> None:
    """get_offset grows with every draw, set_offset goes back, manual_seed starts from zero."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    assert generator.get_offset() == 0
    torch.rand(8, device=dev.device(), generator=generator)
    position = generator.get_offset()
    assert position > 0
    expected = torch.rand(8, device=dev.device(), generator=generator)
    assert generator.get_offset() > position
    generator.set_offset(position)
    assert generator.get_offset() == position
    assert same(torch.rand(8, device=dev.device(), generator=generator), expected)
    generator.manual_seed(9)
    assert generator.get_offset() == 0


@check("generator/offset_in_state", "GEN-016", needs=("generator", "generator_offset"))
def the_offset_is_part_of_the_state(dev: Device) -> None:
    """A restored state restores the offset, and the offset advances enough for a large draw."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    torch.rand(8, device=dev.device(), generator=generator)
    state, position = generator.get_state(), generator.get_offset()
    torch.rand(8, device=dev.device(), generator=generator)
    generator.set_state(state)
    assert generator.get_offset() == position
    large = torch.rand(100_000, device=dev.device(), generator=generator)
    after = torch.rand(100_000, device=dev.device(), generator=generator)
    # An offset that advances too little makes the second draw repeat the tail of the first.
    tail = set(large[-1000:].tolist())
    assert len(tail & set(after[:1000].tolist())) < 10


#: Offsets around the limits of counters of fewer bits.
_OFFSETS = (0, 2**31, 2**32 - 4, 2**32, 2**33, 2**48, 2**62)


@check("generator/offset_limits", "GEN-016", needs=("generator", "generator_offset"))
def offsets_have_64_bits(dev: Device) -> None:
    """Offsets that differ above bit 31 only give different numbers, and pass the limits."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    drawn: dict[int, tuple[float, ...]] = {}
    for offset in _OFFSETS:
        generator.set_offset(offset)
        assert generator.get_offset() == offset
        drawn[offset] = tuple(torch.rand(8, device=dev.device(), generator=generator).tolist())
        after = generator.get_offset()
        assert after > offset, f"{after} follows {offset}"
        expected = torch.rand(8, device=dev.device(), generator=generator)
        other = torch.Generator(device=dev.device()).manual_seed(9)
        other.set_offset(after)
        assert same(torch.rand(8, device=dev.device(), generator=other), expected)
    assert len(set(drawn.values())) == len(drawn), "different offsets gave the same numbers"


@check("generator/offset_limits:last", "GEN-016", needs=("generator", "generator_offset"))
def the_last_offsets_are_kept_or_refused(dev: Device) -> None:
    """An offset near 2**64 is refused, or kept and in the state, and draws still give numbers."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    for offset in (2**64 - 4, 2**63, 2**63 - 4):
        try:
            generator.set_offset(offset)
        except (RuntimeError, ValueError, OverflowError):
            continue
        assert generator.get_offset() == offset
        other = torch.Generator(device=dev.device())
        other.set_state(generator.get_state())
        assert other.get_offset() == offset, "the state lost the offset"
        values = torch.rand(64, device=dev.device(), generator=generator).tolist()
        assert all(0 <= value < 1 for value in values)
        assert len(set(values)) > 32
