# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of several streams that are captured in a graph, compared with their steps."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.program._common import MASK, SEEDS, SIZES, STREAMS, VALUES


class _Recipe:
    """Random steps on a few tensors, which can be queued on streams, and done on the host."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._steps = [
            (
                self._random.choice(("change", "copy", "renew")),
                self._random.randrange(VALUES),
                self._random.randrange(VALUES),
                self._random.randrange(STREAMS),
            )
            for _ in range(40)
        ]

    def queue(self, dev: Device, values: list[Tensor], streams: list[torch.Stream]) -> None:
        """The steps, each on its stream, ordered by events; the first stream is last to end."""
        for side in streams[1:]:
            side.wait_stream(streams[0])
        touched: dict[int, dict[int, torch.Event]] = {}  # by value, then by stream
        for kind, x, y, track in self._steps:
            stream = streams[track]
            events = [e for value in {x, y} for e in touched.get(value, {}).items()]
            for other, event in events:
                if other != track:
                    stream.wait_event(event)
            with stream:
                _do(kind, values[x], values[y])
            event = dev.event()
            event.record(stream)
            for value in {x, y}:
                touched.setdefault(value, {})[track] = event
        for side in streams[1:]:
            streams[0].wait_stream(side)

    def do(self, values: list[Tensor]) -> None:
        """The steps one after another, on the host."""
        for kind, x, y, _ in self._steps:
            _do(kind, values[x], values[y])


def _do(kind: str, x: Tensor, y: Tensor) -> None:
    if kind == "change":
        x.mul_(5).add_(y).bitwise_and_(MASK)
    elif kind == "copy":
        x.copy_(y)
    else:
        new = x * 3 + y  # in memory that is freed at once
        x.copy_(new & MASK)


@check("program/graph", "PROG-005", cases=SEEDS[:6], needs=("graphs", "streams"))
def replays_of_random_programs_do_their_steps(dev: Device, case: str) -> None:
    """Steps on three streams that are captured give at each replay what they give when called."""
    size = SIZES[int(case) % len(SIZES)]
    first = torch.arange(size, dtype=torch.int32)
    expected = [(first * 31 + place) & MASK for place in range(VALUES)]
    values = [x.to(dev.device()) for x in expected]
    recipe = _Recipe(int(case))
    streams = [dev.stream() for _ in range(STREAMS)]
    graph = torch.accelerator.Graph()
    dev.synchronize()
    with streams[0], graph:
        recipe.queue(dev, values, streams)
    for replay in range(4):
        graph.replay()
        recipe.do(expected)
        place = replay % VALUES
        values[place].add_(replay).bitwise_and_(MASK)
        expected[place].add_(replay).bitwise_and_(MASK)
    for found, wanted in zip(values, expected, strict=True):
        dev.assert_equal(found, wanted)
