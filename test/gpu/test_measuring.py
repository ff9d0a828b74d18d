# SPDX-License-Identifier: BSD-3-Clause
"""Measurements: what is wrong is never timed, and one side's failure spares the other."""

from __future__ import annotations

import pytest
import torch

from bench.gpu.measure import allocator, inputs
from bench.gpu.measure.case import Case, Operation, WrongResult, measure
from bench.gpu.measure.scale import TINY
from bench.gpu.measure.side import Side


class Module:
    """Stands for torch.puone and torch.cuda."""

    @staticmethod
    def synchronize() -> None:
        pass


OURS, PEER = Side("puone", Module), Side("cuda", Module)


def fine(side: Side) -> Operation:
    return Operation(lambda turn: None, lambda: None)


def wrong(side: Side) -> Operation:
    def verify() -> None:
        raise WrongResult("1 of 2")

    return Operation(lambda turn: None, verify)


def only_on(name: str) -> Case:
    """A case that is right on one side only."""
    return Case("g", "n", "host", lambda side: (fine if side.name == name else wrong)(side))


def test_both_sides_are_measured() -> None:
    row = measure(Case("g", "n", "host", fine), [OURS, PEER], TINY.pace)
    assert row["puone"]["rounds"] == row["cuda"]["rounds"] == TINY.pace.rounds
    assert row["problems"] == {}


def test_what_is_wrong_is_not_timed() -> None:
    row = measure(only_on("cuda"), [OURS, PEER], TINY.pace)
    assert row["puone"] is None and row["cuda"] is None
    assert row["problems"]["puone"] == "WrongResult: 1 of 2"
    assert row["problems"]["cuda"].startswith("not run")


def test_a_wrong_peer_spares_ours() -> None:
    row = measure(only_on("puone"), [OURS, PEER], TINY.pace)
    assert row["puone"] is not None and row["cuda"] is None
    assert row["problems"] == {"cuda": "WrongResult: 1 of 2"}


def test_without_a_peer_that_is_said() -> None:
    row = measure(Case("g", "n", "host", fine), [OURS], TINY.pace)
    assert row["problems"] == {"cuda": "not run: no torch.cuda here"}


@pytest.mark.parametrize("dtype", list(inputs.TOLERANCES))
def test_one_wrong_element_among_a_million_is_found(dtype: torch.dtype) -> None:
    values = inputs.normal(1 << 20, dtype)
    inputs.verify(values, values)
    spoiled = values.clone()
    spoiled[777_777] += 1
    with pytest.raises(WrongResult, match="1 of 1048576 elements are wrong; the first, 777777,"):
        inputs.verify(spoiled, values)


def test_nan_and_unwritten_zeros_are_wrong() -> None:
    values = inputs.positive(1000, torch.float32)
    for bad in (values * float("nan"), torch.zeros(1000), values[:-1]):
        with pytest.raises(WrongResult):
            inputs.verify(bad, values)


def test_inputs_are_the_same_every_time_and_differ_by_seed() -> None:
    assert torch.equal(inputs.normal(100, torch.float32, 1), inputs.normal(100, torch.float32, 1))
    assert not torch.equal(
        inputs.normal(100, torch.float32, 1), inputs.normal(100, torch.float32, 2)
    )


def test_a_training_step_gives_back_what_it_takes_and_holds_much_at_its_height() -> None:
    held: dict[int, int] = {}
    height = 0
    for act in allocator.training_step(1000):
        if act.size:
            assert act.slot not in held
            held[act.slot] = act.size
        else:
            del held[act.slot]
        height = max(height, sum(held.values()))
    assert held == {}
    assert height > 100_000
