# SPDX-License-Identifier: BSD-3-Clause
"""Draw docs/timeline.svg, the profile of a training loop on two streams: `make timeline`.

The times are those of a real run on the sim driver: while one stream computes on a batch, another
one copies the next batch.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

PICTURE = Path(__file__).with_name("timeline.svg")
BATCHES = 4
RUNS = 9
ROWS, FEATURES, OUTPUTS = 8192, 2048, 32

WIDTH, LEFT, ROW, GAP, TOP = 960, 110, 26, 10, 30
COLOURS = {
    "kernel": "#4c72b0",
    "gpu_memcpy": "#dd8452",
    "gpu_memset": "#8c8c8c",
    "range": "#e8e8ef",
}
LEGEND = {
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "fill",
    "range": "range of the user's",
}


def prepared() -> Callable[[], None]:
    """A training loop: each batch is copied on one stream while another computes on the last."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, OUTPUTS), torch.nn.ReLU()).to("puone")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [torch.randn(ROWS, FEATURES).pin_memory() for _ in range(BATCHES)]
    compute, loader = torch.accelerator.current_stream(), torch.Stream(device="puone")

    def load(index: int) -> torch.Tensor:
        loader.wait_stream(compute)  # for the batch before the last: two are in memory
        with record_function(f"copy {index}"), loader:
            return batches[index].to("puone", non_blocking=True)

    def train() -> None:
        following = load(0)
        for index in range(BATCHES):
            compute.wait_stream(loader)
            batch = following
            batch.record_stream(compute)
            if index + 1 < BATCHES:
                following = load(index + 1)
            with record_function(f"batch {index}"):
                model(batch).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        torch.accelerator.synchronize()

    return train


@dataclass(frozen=True)
class Bar:
    """One piece of work, or one range, of a stream; times in us."""

    stream: int
    kind: str
    name: str
    begin: float
    duration: float
    operator: str


def profiled() -> list[Bar]:
    """The work of the device in the shortest of some runs, which other programs disturbed least."""
    train = prepared()
    train()  # the first run takes memory from the driver
    return min((one_run(train) for _ in range(RUNS)), key=length)


def one_run(train: Callable[[], None]) -> list[Bar]:
    """The work of the device, in the order of time."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as watched:
        train()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "trace.json"
        watched.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    return sorted(bars_of(events), key=lambda bar: bar.begin)


def length(bars: list[Bar]) -> float:
    """From the first begin to the last end, in us."""
    return max(bar.begin + bar.duration for bar in bars) - min(bar.begin for bar in bars)


def bars_of(events: list[dict[str, Any]]) -> Iterator[Bar]:
    """The bars of a Chrome trace."""
    operators = {
        event["args"].get("External id"): event["name"]
        for event in events
        if event.get("cat") == "cpu_op"
    }
    for event in events:
        kind = "range" if event.get("cat") == "gpu_user_annotation" else event.get("cat", "")
        if kind not in COLOURS or "Optimizer" in event["name"]:
            continue
        operator = operators.get(event["args"].get("External id"), "")
        yield Bar(event["tid"], kind, event["name"], event["ts"], event["dur"], operator)


def drawn(bars: list[Bar]) -> str:
    """The picture."""
    begin = min(bar.begin for bar in bars)
    scale = (WIDTH - LEFT - 10) / length(bars)
    streams = sorted({bar.stream for bar in bars})
    top = {stream: TOP + index * (2 * ROW + GAP) for index, stream in enumerate(streams)}
    height = TOP + len(streams) * (2 * ROW + GAP) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="11">',
        "<!-- made by docs/timeline.py, not by hand -->",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="18" font-size="13">puone:0, {BATCHES} batches: '
        "while one stream computes, the other one copies</text>",
    ]
    for stream in streams:
        name = "default stream" if stream == 0 else f"stream {stream}"
        parts.append(f'<text x="10" y="{top[stream] + ROW + 4}">{name}</text>')
    for bar in sorted(bars, key=lambda bar: bar.kind != "range"):
        y = top[bar.stream] + (0 if bar.kind == "range" else ROW)
        parts += box(bar, LEFT + (bar.begin - begin) * scale, y, bar.duration * scale)
    parts += axis(length(bars), scale, height - 42)
    parts += legend(height - 14)
    return "\n".join([*parts, "</svg>", ""])


def box(bar: Bar, x: float, y: int, width: float) -> Iterator[str]:
    """One bar, with its name if there is room; the rest is a tooltip."""
    queued = f", queued by {bar.operator}" if bar.operator else ""
    said = f"{bar.name}{queued}: {bar.duration:.0f} us"
    yield (
        f'<rect x="{x:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{ROW - 3}" '
        f'fill="{COLOURS[bar.kind]}"><title>{escape(said)}</title></rect>'
    )
    if width > 7 * len(bar.name):
        colour = "#333" if bar.kind == "range" else "white"
        yield f'<text x="{x + 3:.1f}" y="{y + 15}" fill="{colour}">{escape(bar.name)}</text>'


def axis(length_us: float, scale: float, y: int) -> Iterator[str]:
    """Marks at round numbers of ms."""
    step = next(ms for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500) if length_us / 1e3 / ms <= 12)
    for mark in range(0, int(length_us / 1e3) + 1, step):
        x = LEFT + mark * 1e3 * scale
        yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y - 10}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{y}" fill="#666">{mark} ms</text>'


def legend(y: int) -> Iterator[str]:
    """What the colours mean."""
    for index, (kind, text) in enumerate(LEGEND.items()):
        x = LEFT + index * 130
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{COLOURS[kind]}"/>'
        yield f'<text x="{x + 17}" y="{y}">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawn(profiled()))
