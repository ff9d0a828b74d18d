# SPDX-License-Identifier: BSD-3-Clause
"""No input without a complete required lane is ever green."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import synthetic
from gating import LANE, Gate, content, records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import record

from torch_backend_ci.errors import Exit
from torch_conformance.results import reader

OTHER = "extra-sim"
WHOLE = synthetic.encode(content(records()))


def absent(gate: Gate, lane: str) -> None:
    """Nothing is handed in."""


def empty(gate: Gate, lane: str) -> None:
    (gate.candidate / lane).mkdir()


def complete(gate: Gate, lane: str) -> None:
    gate.after(lane=lane)


def in_shards(gate: Gate, lane: str) -> None:
    gate.after(lane=lane, shards=3)


def without_a_shard(gate: Gate, lane: str) -> None:
    gate.after(lane=lane, shards=3)[1].unlink()


def with_a_shard_twice(gate: Gate, lane: str) -> None:
    first = gate.after(lane=lane, shards=2)[0]
    shutil.copy(first, first.with_name("again.json"))


def truncated(gate: Gate, lane: str) -> None:
    file = gate.after(lane=lane)[0]
    file.write_bytes(file.read_bytes()[:-40])


def unfinished(gate: Gate, lane: str) -> None:
    gate.after(record("COPY-001", "not_run"), lane=lane)


def nothing_executed(gate: Gate, lane: str) -> None:
    made = content([record("COPY-001", "unsupported")])
    (gate.candidate / lane).mkdir()
    synthetic.write(gate.candidate / lane / "1.json", made)


def fewer_than_before(gate: Gate, lane: str) -> None:
    gate.after(lane=lane, without=synthetic.check_id("COPY-001"))


def a_link(gate: Gate, lane: str) -> None:
    (gate.candidate / lane).mkdir()
    (gate.candidate / lane / "1.json").symlink_to(synthetic.write(gate.root / lane, kept()))


def kept() -> synthetic.Content:
    return content(records())


GOOD = (complete, in_shards)
WAYS = (
    *GOOD,
    absent,
    empty,
    without_a_shard,
    with_a_shard_twice,
    truncated,
    unfinished,
    nothing_executed,
    fewer_than_before,
    a_link,
)


def a_gate(folder: str) -> Gate:
    made = Gate(Path(folder))
    made.policy.write_text(f"lanes: {{{LANE}: {{required: true}}, {OTHER}: {{required: true}}}}\n")
    made.before()
    made.before(lane=OTHER)
    return made


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ways=st.tuples(st.sampled_from(WAYS), st.sampled_from(WAYS)))
def test_only_complete_lanes_are_green(ways: tuple[Callable[[Gate, str], None], ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gate = a_gate(folder)
        for way, lane in zip(ways, (LANE, OTHER), strict=True):
            way(gate, lane)
        status, _ = gate.run()
        good = all(way in GOOD for way in ways)
        assert status == (Exit.OK if good else Exit.UNUSABLE)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A report with a few bytes changed, left out, or doubled."""
    data = bytearray(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(data) - 1))
        end = begin + draw(st.integers(0, 40))
        data[begin:end] = draw(st.binary(max_size=8) | st.just(bytes(data[begin:end]) * 2))
    return bytes(data)


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.large_base_example, HealthCheck.data_too_large],
)
@given(damaged())
def test_a_damaged_report_is_green_only_if_it_is_a_complete_report_all_the_same(
    data: bytes,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gate = a_gate(folder)
        gate.after(lane=OTHER)
        (gate.candidate / f"{LANE}.json").write_bytes(data)
        status, _ = gate.run()
        if status != Exit.UNUSABLE:
            document = reader.parse(data, "damaged")
            assert document.complete
            assert (status == Exit.OK) == (document.state == "green")
