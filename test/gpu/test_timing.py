# SPDX-License-Identifier: BSD-3-Clause
"""How `make gpu` takes time, with clocks whose every answer is known."""

from __future__ import annotations

import time
from itertools import count

import pytest

from bench.gpu.measure.timing import CLOCKS, LEAST_ROUNDS, UNEQUAL, Pace, Spread, Timer, alternate

PACE = Pace(rounds=5, round_us=100, most=64, seconds=60)


def test_a_spread_is_the_median_and_the_outer_tenths() -> None:
    spread = Spread.of([float(value) for value in range(11, 0, -1)])
    assert spread == Spread(median_us=6, low_us=2, high_us=10, rounds=11)


def test_one_slow_round_does_not_move_the_median() -> None:
    assert Spread.of([1.0, 1.0, 1.0, 900.0, 1.0]).median_us == 1.0


def test_a_round_lasts_about_as_long_as_the_pace_says() -> None:
    assert PACE.repeats(lambda repeats: 10.0) == 10


def test_a_round_has_at_least_one_step_and_not_more_than_a_queue_holds() -> None:
    assert PACE.repeats(lambda repeats: 1e9) == 1
    assert PACE.repeats(lambda repeats: 0.0) == PACE.most


def test_sides_take_turns_and_each_is_as_often_in_front() -> None:
    order: list[str] = []

    def timer(name: str) -> Timer:
        def take(repeats: int) -> float:
            order.append(name)
            return 50.0

        return take

    found = alternate({"a": timer("a"), "b": timer("b")}, PACE)
    warm = 4  # two calibrating calls of each
    assert order[warm:] == ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b"]
    assert {name: spread.rounds for name, spread in found.items()} == {"a": 5, "b": 5}


def test_calibration_is_not_among_the_times() -> None:
    answers = count(1000, -1)
    spread = alternate({"a": lambda repeats: float(next(answers))}, PACE)["a"]
    assert spread == Spread.of([998, 997, 996, 995, 994])


def test_a_side_that_is_a_thousand_times_slower_does_not_take_all_the_time() -> None:
    seen: list[int] = []

    def slow(repeats: int) -> float:
        seen.append(repeats)
        return 1e6

    alternate({"fast": lambda repeats: 1.0, "slow": slow}, PACE)
    assert max(seen) == UNEQUAL


def test_rounds_end_when_their_time_is_over_but_not_before_there_are_some() -> None:
    def slow(repeats: int) -> float:
        time.sleep(0.002)
        return 1.0

    pace = Pace(rounds=1000, round_us=1, most=1, seconds=0)
    assert alternate({"a": slow}, pace)["a"].rounds == LEAST_ROUNDS


class FakeEvent:
    """Knows when it was recorded, in milliseconds of a clock that its device owns."""

    def __init__(self, device: FakeDevice) -> None:
        self.device, self.when = device, -1.0

    def record(self) -> None:
        self.when = self.device.milliseconds

    def elapsed_time(self, end: FakeEvent) -> float:
        return end.when - self.when


class FakeDevice:
    """Work takes 3 ms on the device, and hardly anything on the host until it is waited for."""

    def __init__(self) -> None:
        self.milliseconds = 0.0
        self.pending = 0

    def work(self, turn: int) -> None:
        self.milliseconds += 3
        self.pending += 1

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def synchronize(self) -> None:
        time.sleep(0.003 * self.pending)
        self.pending = 0


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


def test_device_time_is_between_events(device: FakeDevice) -> None:
    assert CLOCKS["device"](device, device.work)(4) == 3000


def test_host_time_ends_when_the_calls_return(device: FakeDevice) -> None:
    assert CLOCKS["host"](device, device.work)(4) < 1000
    assert device.pending == 0  # the next round begins on an idle device


def test_wall_time_waits_for_the_device(device: FakeDevice) -> None:
    assert CLOCKS["wall"](device, device.work)(4) >= 3000


def test_steps_are_told_their_turn(device: FakeDevice) -> None:
    turns: list[int] = []
    for clock in CLOCKS.values():
        turns.clear()
        clock(device, turns.append)(3)
        assert turns == [0, 1, 2]
