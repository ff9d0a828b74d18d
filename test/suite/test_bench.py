# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks run for any device name, and measure what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import harness
import pytest

from torch_conformance.bench import failing, latency, operators, timing
from torch_conformance.spec.outcome import Outcome


def bench(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a benchmark as a user does."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env=harness.environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_latency_of_the_cpu_against_itself(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    options = ("--device", "cpu", "--only", "basics", "--rounds", "2", "--json", str(file))
    done = bench(tmp_path, "torch_conformance.bench", *options)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(file.read_text())}
    assert set(latency.PAIRS) < set(rows)
    assert len(rows) == len(latency.PAIRS) + 3, "the CPU has copies, and nothing to wait for"
    for row in rows.values():
        assert row["ratio"] == row["device_us"] / row["cpu_us"]
        assert row["name"] in done.stdout
    # The CPU's copy of 64 MB cannot be quicker than memory, nor a view slower than that.
    assert rows["copy 64 MB, device to device"]["cpu_us"] > 100 * rows["view"]["cpu_us"]


@pytest.mark.nightly
def test_operators_are_summed_up_by_group(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    options = ("--device", "cpu", "--only", "operators", "--rounds", "1", "--json", str(file))
    done = bench(tmp_path, "torch_conformance.bench", *options)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(file.read_text())}
    special, others = len(operators.SPECIAL), 2 + 3 + 3  # single ones, attention, groups
    pointwise, reductions = 2 * len(operators.POINTWISE), len(operators.REDUCTIONS)
    assert len(rows) == pointwise + reductions + special + others
    large = [rows[f"{name}, 1M elements"]["ratio"] for name in operators.POINTWISE]
    assert rows["= median of pointwise, 1M elements"]["ratio"] == median(large)


def test_an_unknown_device_is_explained(tmp_path: Path) -> None:
    done = bench(tmp_path, "torch_conformance.bench", "--device", "nosuch")
    assert done.returncode == 2
    assert "unknown backend 'nosuch'. Known: cpu" in done.stderr


def test_a_round_is_timed_per_operation() -> None:
    nap = timing.alone("nap", lambda: time.sleep(0.002), rounds=3)
    assert 2000 <= nap.device_us < 50_000
    assert nap.device_us <= nap.device_p95_us


def test_a_round_begins_when_the_threads_of_the_other_device_have_stopped_polling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    monkeypatch.setattr(time, "sleep", lambda seconds: events.append(f"sleep {seconds}"))
    monkeypatch.setattr(timing, "MAX_REPEATS", 1)
    timing.alternate(
        "", lambda: events.append("device"), lambda: events.append("cpu"), lambda: None, rounds=2
    )
    pause = f"sleep {timing.PAUSE}"
    # Repetitions are counted without pauses: an operation of a thread that has slept is slow.
    assert events.index(pause) == len(events) - 8
    assert events[-8:] == [pause, "device", pause, "cpu"] * 2


def test_issuing_does_not_include_the_wait() -> None:
    row = timing.alternate_issue("", lambda: None, lambda: None, lambda: time.sleep(0.02), rounds=2)
    assert row.device_us < 1000


@pytest.mark.nightly
def test_throughput_counts_every_sample_of_the_database(tmp_path: Path) -> None:
    done = bench(tmp_path, "torch_conformance.bench.throughput", "--only", "suite")
    assert done.returncode == 0, done.stderr
    found = re.search(r"suite +(\d+) samples", done.stdout)
    assert found is not None
    assert int(found[1]) > 15_000


@pytest.mark.nightly
def test_a_thousand_failures_and_fifty_crashes_have_few_causes() -> None:
    red = failing.run(broken=True, workers=2)
    outcomes = [check.outcome for check in red.checks]
    assert len(outcomes) == 4000
    assert outcomes.count(Outcome.FAIL) + outcomes.count(Outcome.ERROR) == 1000
    assert outcomes.count(Outcome.CRASH) == 50
    assert 4 <= red.causes < 40
