# SPDX-License-Identifier: BSD-3-Clause
"""torch.profiler on puone: what is beyond the suite's chapter of the profiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from interpreter import Python

PRELUDE = """
import json, sys, threading, torch, torch_puone
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
def work(p):
    found = [e for e in p.events() if e.device_type == DeviceType.PrivateUse1]
    return sorted((e for e in found if not e.is_user_annotation), key=lambda e: e.time_range.start)
"""


def succeeds(python: Python, code: str, **env: str) -> str:
    done = python(PRELUDE + code, env={"PUONE_DRIVER": "sim", **env})
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_copy_on_a_side_stream_overlaps_the_computation(python: Python) -> None:
    succeeds(
        python,
        """
host = torch.randn(1 << 22).pin_memory()
side = torch.Stream(device="puone")
with profile(activities=BOTH) as p:
    torch.puone._sleep_ms(50)
    with side:
        host.to("puone", non_blocking=True)
delay, copy = work(p)
assert (delay.name, copy.name) == ("delay", "memcpy_async"), (delay.name, copy.name)
assert copy.time_range.start < delay.time_range.end
assert delay.device_resource_id == 0 and copy.device_resource_id == 1
""",
    )


def test_each_step_of_a_schedule_is_a_session(python: Python) -> None:
    succeeds(
        python,
        """
counts = []
with profile(
    activities=BOTH,
    schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
    on_trace_ready=lambda p: counts.append(len(work(p))),
    record_shapes=True, with_stack=True, profile_memory=True,
) as p:
    x = torch.ones(1000, device="puone")
    for step in range(8):
        x.sin_()
        p.step()
assert counts == [2, 2], counts
""",
    )


def test_the_table_of_operators_has_the_time_of_the_device(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.randn(256, 256, device="puone")
with profile(activities=BOTH) as p:
    x @ x
    x.sin()
table = {row.key: row for row in p.key_averages()}
assert table["aten::mm"].device_time_total > 0
assert table["aten::mm"].self_device_time_total > 0
assert table["aten::sin"].count == 1
assert "Self PUONE" in p.key_averages().table()
""",
    )


def test_a_profile_of_the_cpu_alone_has_no_work_of_the_device(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.ones(1000, device="puone")
with profile(activities=[ProfilerActivity.CPU]) as p:
    x.sin()
assert work(p) == []
""",
    )


def test_work_of_several_threads_belongs_to_their_operators(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.ones(1000, device="puone")
def run():
    for _ in range(50): x.sin(); x.cos()
from torch._C._profiler import _ExperimentalConfig
all_threads = _ExperimentalConfig(profile_all_threads=True)
with profile(activities=BOTH, experimental_config=all_threads) as p:
    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
names = {e.id: e.name for e in p.events() if e.name.startswith("aten::")}
owners = [names[e.linked_correlation_id] for e in work(p)]
assert sorted(owners) == ["aten::cos"] * 200 + ["aten::sin"] * 200, len(owners)
""",
    )


def test_after_a_lost_device_the_next_profile_is_whole(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.ones(1000, device="puone")
try:
    with profile(activities=BOTH) as p:
        torch.puone.faults.device_lost(0)
        x.sin()
    raise SystemExit("nothing was raised")
except torch.AcceleratorError as error:
    assert "is lost" in str(error)
torch.puone.faults.reset()
with profile(activities=BOTH) as p:
    x.sin()
assert len(work(p)) == 1
""",
    )


@pytest.mark.parametrize("kineto", [True, False])
def test_the_older_profiler_has_times_of_both(python: Python, kineto: bool) -> None:
    succeeds(
        python,
        f"""
x = torch.ones(1 << 20, device="puone")
with torch.autograd.profiler.profile(use_device="puone", use_kineto={kineto}) as p:
    x.sin()
[event] = [e for e in p.function_events if e.name == "aten::sin"]
assert 0 < event.cpu_time_total < 1e7, event.cpu_time_total
assert 0 < event.device_time_total < 1e7, event.device_time_total
""",
    )


def test_a_range_has_the_time_of_its_work_once(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.randn(256, 256, device="puone")
with profile(activities=BOTH) as p:
    with record_function("phase"):
        x @ x
        x.sin()
kernels = sum(e.time_range.elapsed_us() for e in work(p))
[phase] = [e for e in p.events() if e.name == "phase" and e.device_type == DeviceType.CPU]
assert phase.self_device_time_total == 0, phase.self_device_time_total
assert abs(phase.device_time_total - kernels) < 1, (phase.device_time_total, kernels)
""",
    )


def test_the_table_can_be_sorted_by_the_time_of_the_device(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.randn(1024, 1024, device="puone")
with profile(activities=BOTH, record_shapes=True) as p:
    for size in (1, 1024): x[:size] @ x
text = p.key_averages(group_by_input_shape=True).table(sort_by="self_device_time_total")
lines = [line for line in text.splitlines() if "aten::mm" in line]
assert len(lines) == 2 and "[1024, 1024], [1024, 1024]" in lines[0], text
""",
    )


def test_stacks_of_python_can_be_exported(python: Python, tmp_path: Path) -> None:
    succeeds(
        python,
        f"""
from torch._C._profiler import _ExperimentalConfig
def culprit(): return x @ x
x = torch.randn(256, 256, device="puone")
verbose = _ExperimentalConfig(verbose=True)
with profile(activities=BOTH, with_stack=True, experimental_config=verbose) as p:
    culprit()
p.export_stacks({str(tmp_path / "stacks")!r}, "self_privateuse1_time_total")
lines = open({str(tmp_path / "stacks")!r}).read().splitlines()
assert any("_culprit " in line and int(line.split()[-1]) > 0 for line in lines), lines
""",
    )


def test_memory_of_the_device_is_in_the_timeline(python: Python, tmp_path: Path) -> None:
    succeeds(
        python,
        f"""
x = torch.randn(1 << 20, device="puone")
with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True) as p:
    y = x * 2
    del y
p.export_memory_timeline({str(tmp_path / "m.json")!r}, device="puone:0")
times, sizes = json.load(open({str(tmp_path / "m.json")!r}))
totals = [sum(row) for row in sizes]
assert max(totals) - totals[0] == 4 << 20, totals
assert totals[-1] == totals[0], totals
""",
    )


def test_a_replay_has_a_call_and_the_time_of_its_range(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.ones(1 << 16, device="puone")
graph = torch.puone.PUONEGraph()
with torch.puone.graph(graph):
    y = x.sin()
with profile(activities=BOTH) as p:
    with record_function("phase"):
        graph.replay()
[launched] = work(p)
[phase] = [e for e in p.events() if e.name == "phase" and e.device_type == DeviceType.CPU]
assert abs(phase.device_time_total - launched.time_range.elapsed_us()) < 1
calls = [e for e in p.profiler.kineto_results.events() if e.name() == "graph.launch"]
assert {e.correlation_id() for e in calls} == {launched.id}, calls
""",
    )


def test_a_row_has_the_id_of_its_stream(python: Python, tmp_path: Path) -> None:
    succeeds(
        python,
        f"""
streams = [torch.Stream(device="puone") for _ in range(5)]
x = torch.ones(1000, device="puone")
with profile(activities=BOTH) as p:
    for stream in (streams[4], streams[2]):
        with stream: x.sin()
rows = [event.device_resource_id for event in work(p)]
assert rows == [streams[4].stream_id, streams[2].stream_id], rows
p.export_chrome_trace({str(tmp_path / "t.json")!r})
events = json.load(open({str(tmp_path / "t.json")!r}))["traceEvents"]
names = {{e["args"]["name"] for e in events if e["name"] == "thread_name"}}
assert {{"default stream", f"stream {{rows[0]}}", f"stream {{rows[1]}}"}} <= set(names), names
""",
    )
