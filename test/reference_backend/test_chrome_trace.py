# SPDX-License-Identifier: BSD-3-Clause
"""The exported trace of a train step whose next batch is copied on a stream of its own."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

puone: Any = torch.puone  # type: ignore[attr-defined]  # set at run time

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
BATCH = 1 << 20
CLOCK_US = 1.0  # the precision that is left of a time stamp
Events = list[dict[str, Any]]


class Step:
    """A train step; a delay stands for a long computation.

    So the copy overlaps it however slow the machine is, and the host is done with queueing before
    anything has to wait for it.
    """

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = (torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
        self.model = torch.nn.Sequential(*layers).to("puone")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.batch = torch.randn(32, 64, device="puone")
        self.following = torch.randn(BATCH).pin_memory()
        self.loader = torch.Stream(device="puone")
        self.train()
        torch.accelerator.synchronize()

    def train(self) -> None:
        with record_function("prefetch"), self.loader:
            self.following.to("puone", non_blocking=True)
        with record_function("forward"):
            loss = self.model(self.batch).square().sum()
        with record_function("backward"):
            loss.backward()
        self.optimizer.step()  # in a range of its own
        self.optimizer.zero_grad()

    def traced(self, file: Path, delay_ms: float) -> tuple[Events, float]:
        """The events of the trace, and the ms between two events around the computation."""
        start, end = (torch.Event("puone", enable_timing=True) for _ in range(2))
        with profile(activities=BOTH, record_shapes=True) as watched:
            start.record()
            puone._sleep_ms(delay_ms)
            self.train()
            end.record()
            torch.accelerator.synchronize()
        watched.export_chrome_trace(str(file))
        return json.loads(file.read_text())["traceEvents"], start.elapsed_time(end)


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Events:
    """The events of the trace of a step."""
    return Step().traced(tmp_path_factory.mktemp("trace") / "trace.json", 600)[0]


def of(events: Events, *categories: str) -> Events:
    found = [event for event in events if event.get("cat") in categories and event["ph"] == "X"]
    return sorted(found, key=lambda event: event["ts"])


def end_of(event: dict[str, Any]) -> float:
    return float(event["ts"] + event["dur"])


def test_the_copy_overlaps_the_computation_on_another_stream(step: Events) -> None:
    [delay] = [event for event in of(step, "kernel") if event["name"] == "delay"]
    [copy] = [e for e in of(step, "gpu_memcpy") if e["args"]["bytes"] == 4 * BATCH]
    assert copy["tid"] != delay["tid"]
    assert copy["pid"] == delay["pid"] == 0
    assert delay["ts"] < copy["ts"] < end_of(copy) < end_of(delay)


def test_work_of_one_stream_does_not_overlap(step: Events) -> None:
    rows: dict[int, Events] = {}
    for event in of(step, *WORK):
        rows.setdefault(event["tid"], []).append(event)
    assert len(rows) == 2
    for row in rows.values():
        assert all(end_of(a) <= b["ts"] + CLOCK_US for a, b in pairwise(row))


def test_each_kernel_has_one_correlation_one_call_and_one_arrow(step: Events) -> None:
    events = step
    work = {event["args"]["correlation"]: event for event in of(events, *WORK)}
    assert len(work) == len(of(events, *WORK)) >= 15
    calls = {e["args"]["correlation"]: e for e in of(events, "privateuse1_runtime")}
    assert calls.keys() == work.keys()
    for correlation, event in work.items():
        assert calls[correlation]["ts"] <= event["ts"] + CLOCK_US
    arrows = {
        phase: Counter(e["id"] for e in events if e.get("cat") == "ac2g" and e["ph"] == phase)
        for phase in "sf"
    }
    assert arrows["s"] == arrows["f"] == Counter(dict.fromkeys(work, 1))


def test_each_kernel_names_the_operator_that_queued_it(step: Events) -> None:
    operators = {e["args"]["External id"]: e for e in of(step, "cpu_op")}
    queued = Counter(
        operators[event["args"]["External id"]]["name"]
        for event in of(step, *WORK)
        if event["name"] != "delay"  # which is no operator's
    )
    assert queued["aten::addmm"] == 2
    assert queued["aten::mm"] >= 2
    assert queued["aten::threshold_backward"] == 1


def test_ranges_are_on_the_device_around_their_work(step: Events) -> None:
    ranges = {event["name"]: event for event in of(step, "gpu_user_annotation")}
    update = ranges["Optimizer.step#SGD.step"]
    [copy] = [e for e in of(step, "gpu_memcpy") if e["args"]["bytes"] == 4 * BATCH]
    prefetch = ranges["prefetch"]
    assert prefetch["tid"] == copy["tid"]
    assert prefetch["ts"] <= copy["ts"] + CLOCK_US
    assert end_of(copy) <= end_of(prefetch) + CLOCK_US
    assert end_of(ranges["forward"]) <= update["ts"] + CLOCK_US


def test_the_sum_agrees_with_the_time_between_two_events(tmp_path: Path) -> None:
    """To 2 %. On a busy machine work begins late: a longer step has the same gaps."""
    train = Step()
    for delay_ms in (300, 1000, 3000):
        events, measured_ms = train.traced(tmp_path / f"{delay_ms}.json", delay_ms)
        [delay] = [event for event in of(events, "kernel") if event["name"] == "delay"]
        row = [event for event in of(events, *WORK) if event["tid"] == delay["tid"]]
        traced_ms = sum(event["dur"] for event in row) / 1e3
        assert traced_ms <= measured_ms * 1.001
        if traced_ms >= 0.98 * measured_ms:
            return
    raise AssertionError(f"{traced_ms} ms in the trace, {measured_ms} ms between the events")


def test_operators_have_their_shapes(step: Events) -> None:
    shapes = [e["args"]["Input Dims"] for e in of(step, "cpu_op") if e["name"] == "aten::addmm"]
    assert [[64], [32, 64], [64, 64]] in [shape[:3] for shape in shapes]


def test_devices_and_streams_are_named(step: Events) -> None:
    last = {
        (event["name"], event["pid"], event["tid"]): next(iter(event["args"].values()))
        for event in step
        if event["ph"] == "M"
    }
    assert last["process_name", 0, 0] == "puone"
    assert last["process_labels", 0, 0] == "puone:0"
    [copy] = [e for e in of(step, "gpu_memcpy") if e["args"]["bytes"] == 4 * BATCH]
    assert last["thread_name", 0, 0] == "default stream"
    assert last["thread_name", 0, copy["tid"]] == f"stream {copy['tid']}"
