# SPDX-License-Identifier: BSD-3-Clause
"""The history of device memory, and whether PyTorch's own tools read it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreter import Python
from torch.cuda import _memory_viz

puone: Any = torch.puone  # type: ignore[attr-defined]  # set at run time


@pytest.fixture(autouse=True)
def nothing_is_recorded() -> Iterator[None]:
    puone.empty_cache()
    yield
    puone.memory._record_memory_history(None)


def record(**options: Any) -> None:
    puone.memory._record_memory_history(clear_history=True, **{"stacks": "python", **options})


def history(device: int = 0) -> list[dict[str, Any]]:
    return list(puone.memory._snapshot()["device_traces"][device])


def actions() -> list[str]:
    return [entry["action"] for entry in history() if entry["action"] != "snapshot"]


def functions(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["name"] for frame in frames]


def allocate_here(size: int = 1000) -> torch.Tensor:
    return torch.empty(size, device="puone:0")


def test_an_allocation_and_its_free_are_in_the_history_with_their_stacks() -> None:
    begun = time.time() * 1e6
    record()
    # As large as no free part of a segment in which another test's tensors still live.
    x = allocate_here(5_000_000)
    address = x.data_ptr()
    del x
    [segment, allocation, request, done, *_] = history()
    assert [e["action"] for e in (segment, allocation, request, done)] == [
        "segment_alloc",
        "alloc",
        "free_requested",
        "free_completed",
    ]
    assert allocation["addr"] == request["addr"] == address
    assert allocation["size"] == 20 << 20
    assert functions(allocation["frames"])[:2] == [
        "allocate_here",
        "test_an_allocation_and_its_free_are_in_the_history_with_their_stacks",
    ]
    frame = allocation["frames"][0]
    assert Path(frame["filename"]) == Path(__file__)
    assert 'torch.empty(size, device="puone:0")' in linesof(frame)
    assert functions(request["frames"])[0].startswith("test_an_allocation")
    assert begun <= segment["time_us"] <= allocation["time_us"] <= request["time_us"]
    assert request["time_us"] <= time.time() * 1e6


def linesof(frame: dict[str, Any]) -> str:
    return Path(frame["filename"]).read_text().splitlines()[frame["line"] - 1]


def test_blocks_in_use_have_the_stack_that_allocated_them() -> None:
    record(enabled="state", context="state")
    x = allocate_here()
    [block] = [
        block
        for segment in puone.memory_snapshot()
        for block in segment["blocks"]
        if block["address"] == x.data_ptr()
    ]
    assert block["state"] == "active_allocated"
    assert block["requested_size"] == 4000
    assert functions(block["frames"])[0] == "allocate_here"


def test_memory_of_a_backward_pass_has_a_stack_or_none_and_no_deadlock() -> None:
    record()
    x = torch.ones(100, device="puone:0", requires_grad=True)
    (x.sin() * x.cos()).sum().backward()
    assert "alloc" in actions()


def test_pytorchs_viewer_reads_a_dump(tmp_path: Path) -> None:
    record()
    kept = [allocate_here(5_000_000 + n) for n in range(3)]
    del kept[1]
    file = tmp_path / "dump.pickle"
    puone.memory._dump_snapshot(str(file))
    data = pickle.loads(file.read_bytes())
    summary = _memory_viz.segsum(data)
    assert f"segments: {len(data['segments'])}" in summary
    assert "total_reserved: " in summary
    text = _memory_viz.trace(data)
    assert "Device 0" in text
    assert "cudaMalloc" in text
    assert "del " in text
    lines = _memory_viz.memory(data, format_flamegraph=lambda lines: lines)
    assert "allocate_here" in lines
    assert "allocate_here" in _memory_viz.segments(data, format_flamegraph=lambda lines: lines)
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "MemoryViz.js" in plot(data)
    unfreed = _memory_viz.filter_alloc_free_pairs(pickle.loads(file.read_bytes()))
    left = [e["action"] for e in unfreed["device_traces"][0]]
    assert left.count("alloc") == 2
    assert "free_requested" not in left


def test_pytorchs_viewer_reads_a_dump_at_the_command_line(tmp_path: Path) -> None:
    record()
    kept = allocate_here()
    file, page = tmp_path / "dump.pickle", tmp_path / "out.html"
    puone.memory._dump_snapshot(str(file))
    script = Path(_memory_viz.__file__)
    for command in (["trace"], ["stats"], ["trace_plot", "-o", str(page)]):
        done = subprocess.run(
            [sys.executable, str(script), *command, str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert page.stat().st_size > 1000
    del kept


def test_the_history_replayed_gives_the_blocks_in_use() -> None:
    record()
    before = {b for b, _ in in_use()}
    kept = [allocate_here(10 * n + 1) for n in range(50)]
    del kept[::3]
    side = torch.Stream(device="puone:0")
    kept[0].record_stream(side)
    live: dict[int, int] = {}
    for entry in history():
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            del live[entry["addr"]]
    assert live == {a: size for a, size in in_use() if a not in before}
    assert len(live) == len(kept)


def in_use() -> list[tuple[int, int]]:
    return [
        (block["address"], block["size"])
        for segment in puone.memory_snapshot()
        for block in segment["blocks"]
        if segment["device"] == 0 and block["state"] != "inactive"
    ]


def test_the_history_keeps_its_newest_entries() -> None:
    record(max_entries=4)
    for size in range(1, 20):
        allocate_here(size * 1000)
    assert [(e["action"], e["size"]) for e in history()] == [
        ("alloc", 76288),  # 19,000 numbers, rounded up to a multiple of 512
        ("free_requested", 76288),
        ("free_completed", 76288),
        ("snapshot", 0),  # the history() itself
    ]


def test_skipped_actions_are_not_kept() -> None:
    record(skip_actions=["free_requested", "segment_alloc"])
    allocate_here()
    assert actions() == ["alloc", "free_completed"]


def test_without_context_there_are_no_stacks() -> None:
    record(context=None)
    x = allocate_here()
    assert all(entry["frames"] == [] for entry in history())
    del x


def test_stacks_of_all_languages_have_frames_of_cpp() -> None:
    record(stacks="all")
    x = allocate_here()
    [names] = [functions(e["frames"]) for e in history() if e["action"] == "alloc"]
    assert any("puone" in name for name in names)
    assert "allocate_here" in names
    del x


def test_nothing_is_recorded_before_and_after() -> None:
    record()
    puone.memory._record_memory_history(None)
    x = allocate_here()
    assert history() == []
    assert all(block["frames"] == [] for s in puone.memory_snapshot() for block in s["blocks"])
    del x


def test_threads_record_at_the_same_time() -> None:
    record()

    def work() -> None:
        with torch.Stream(device="puone:0"):
            for size in range(200):
                allocate_here(size + 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        puone.memory._snapshot()
    for thread in threads:
        thread.join()
    counts = Counter(actions())
    assert counts["alloc"] == counts["free_requested"] == counts["free_completed"] == 800
    assert all("work" in functions(e["frames"]) for e in history() if e["action"] == "alloc")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"enabled": "some"}, "enabled must be None, 'state' or 'all'"),
        ({"context": "some"}, "context must be None, 'state', 'alloc' or 'all'"),
        ({"stacks": "some"}, "stacks must be 'python' or 'all'"),
        ({"skip_actions": ["some"]}, "unknown action 'some'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        record(**options)


def test_what_is_not_recorded_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="compile contexts"):
        record(compile_context=True)


def test_a_snapshot_before_the_first_use_is_empty(python: Python) -> None:
    done = python(
        "import json, torch, torch_puone\n"
        "print(json.dumps(torch.puone.memory._snapshot()), torch.puone.is_initialized())"
    )
    assert done.returncode == 0, done.stderr
    found, initialized = done.stdout.strip().rsplit(" ", 1)
    assert json.loads(found)["segments"] == []
    assert initialized == "False"


def test_running_out_of_memory_is_observed_and_recorded(python: Python) -> None:
    done = python(
        """
import torch, torch_puone
seen = []
def observe(device, size, total, free):
    seen.append((device, size, total, free))
    snapshot = torch.puone.memory._snapshot()
    seen.append(snapshot["device_traces"][0][-2]["action"])
    raise ValueError("of the observer")
torch.puone.memory.attach_out_of_memory_observer(observe)
torch.puone.memory._record_memory_history(stacks="python")
try:
    torch.empty(1 << 34, dtype=torch.uint8, device="puone:0")
    raise SystemExit("nothing was raised")
except torch.OutOfMemoryError:
    pass
(device, size, total, free), action = seen
assert (device, size, total) == (0, 1 << 34, 64 << 20), seen
assert 0 < free <= total, seen
assert action == "oom"
[entry] = [e for e in torch.puone.memory._snapshot()["device_traces"][0] if e["action"] == "oom"]
assert entry["device_free"] == free and entry["size"] == size and entry["frames"]
""",
        env={"PUONE_DRIVER": "sim", "PUONE_SIM_MEMORY": "64M"},
    )
    assert done.returncode == 0, done.stderr
    assert "of the observer" in done.stderr
