# SPDX-License-Identifier: BSD-3-Clause
"""What two streams of the device did at the same time, as a profile has it, drawn in letters."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

WIDTH = 56
LETTERS = {"gpu_memcpy": "C", "gpu_memset": "F", "kernel": "K"}
SIZE = 1 << 20


def work() -> None:
    """Kernels on one stream, and a copy on another one."""
    device = torch.accelerator.current_accelerator()
    host = torch.randn(SIZE * 16).pin_memory()
    values = torch.ones(SIZE, device=device)
    side = torch.Stream(device)
    with side:
        copied = host.to(device, non_blocking=True)
    for _ in range(3):
        values = values + values
    torch.accelerator.current_stream().wait_stream(side)
    copied[:SIZE] + values
    torch.accelerator.synchronize()


def recorded() -> list[dict[str, Any]]:
    """The device's work in a profile of `work`: name, stream, begin and duration in us."""
    work()  # the first time takes memory from the driver
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as watched:
        work()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "trace.json"
        watched.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    return [event for event in events if event.get("cat") in LETTERS]


def drawn(events: list[dict[str, Any]]) -> list[str]:
    """A line for each stream."""
    begin = min(event["ts"] for event in events)
    length = max(event["ts"] + event["dur"] for event in events) - begin
    lines = {stream: [" "] * WIDTH for stream in sorted({event["tid"] for event in events})}
    for event in events:
        first = int((event["ts"] - begin) / length * (WIDTH - 1))
        last = int((event["ts"] + event["dur"] - begin) / length * (WIDTH - 1))
        for column in range(first, last + 1):
            lines[event["tid"]][column] = LETTERS[event["cat"]]
    return [
        *(f"stream {stream} |{''.join(line)}|" for stream, line in lines.items()),
        f"C copy, F fill, K kernel; {length / 1e3:.1f} ms",
    ]


if __name__ == "__main__":
    print(*drawn(recorded()), sep="\n")
