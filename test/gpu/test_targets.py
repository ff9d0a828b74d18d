# SPDX-License-Identifier: BSD-3-Clause
"""Ratios, promises and limits beside what `make gpu` measured."""

from __future__ import annotations

from typing import Any

import pytest
from made import a_row, spread

from bench.gpu.targets import TARGETS, judged


def one(row: dict[str, Any]) -> dict[str, Any]:
    """The row, judged alone."""
    return judged([row])[0]


def test_where_speed_is_promised_a_larger_ratio_is_better() -> None:
    assert one(a_row("pointwise"))["ratio"] == 0.9
    assert one(a_row("pointwise"))["met"] is False
    assert one(a_row("pointwise", cuda=spread(96)))["met"] is True


def test_where_a_cost_is_bounded_a_smaller_ratio_is_better() -> None:
    assert one(a_row("issue"))["ratio"] == 1.1111
    assert one(a_row("issue"))["met"] is False
    assert one(a_row("issue", cuda=spread(95)))["met"] is True


@pytest.mark.parametrize(
    ("group", "name", "target"),
    [
        ("pointwise", "add float32", "at least 0.95"),
        ("reduction", "sum float32", "at least 0.95"),
        ("softmax", "softmax float32", "at least 0.95"),
        ("layer norm", "layer_norm float32", "at least 0.95"),
        ("copy", "device to device", "at least 0.98"),
        ("matmul", "bfloat16 8192", "at least 0.98"),
        ("matmul", "float32 8192", None),
        ("issue", "add, 1 element", "at most 1.1"),
        ("allocator", "512 B, taken and given back", "at most 1.1"),
        ("graph", "fill", "at most 1.05"),
    ],
)
def test_the_promises_are_those_of_the_issue(group: str, name: str, target: str | None) -> None:
    assert one(a_row(group, name=name))["target"] == target


def test_without_a_peer_nothing_is_met_or_missed() -> None:
    row = one(a_row(cuda=None, problems={"cuda": "not run: no torch.cuda here"}))
    assert (row["ratio"], row["met"], row["target"]) == (None, None, "at least 0.95")


def test_the_limit_is_what_the_run_saw_the_hardware_do_at_best() -> None:
    gauge = a_row("copy", work=1000.0, resource="memory", gauges=True, cuda=spread(50.0))
    slower = a_row("copy", work=1000.0, resource="memory", gauges=True, cuda=spread(80.0))
    row = judged([slower, gauge, a_row(work=600.0, resource="memory")])[-1]
    assert row["limit_us"] == 30.0  # 600 bytes at 1000 in 50 us
    assert row["of_limit"] == 0.3


def test_what_gauges_nothing_sets_no_limit() -> None:
    assert one(a_row(work=600.0, resource="memory"))["limit_us"] is None


def test_every_group_that_is_promised_something_is_measured() -> None:
    from bench.gpu.measure.__main__ import GROUPS
    from bench.gpu.measure.scale import REAL

    measured = {(case.group, case.name) for make in GROUPS.values() for case in make(REAL)}
    for target in TARGETS:
        rows = [a_row(group, name=name) for group, name in measured]
        assert any(target.applies(row) for row in rows), target
