# SPDX-License-Identifier: BSD-3-Clause
"""Replaying a graph of many small fills: our driver's, and torch.cuda's."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from bench.gpu.measure import inputs
from bench.gpu.measure.case import Case, Operation
from bench.gpu.measure.hal_graph import HalGraph
from bench.gpu.measure.scale import Scale
from bench.gpu.measure.side import OURS, Side
from hal_conformance import kernels
from hal_conformance.driver import Driver

ELEMENTS = 1024  # of one fill
# "wall" counts what the device needs, "host" what the caller waits for.
CLOCKS = {"until done": "wall", "issued": "host"}


def cases(scale: Scale) -> Iterator[Case]:
    """One graph, timed in two ways."""
    for name, clock in CLOCKS.items():
        title = f"replay of {scale.graph_nodes} fills, {name}"
        yield Case("graph", title, clock, partial(_make, scale.graph_nodes))


def _make(nodes: int, side: Side) -> Operation:
    rows = torch.zeros(nodes, ELEMENTS, device=side.device)
    side.synchronize()
    replay = _ours(rows, side) if side.name == OURS else _of_torch(rows)
    expected = torch.arange(1.0, nodes + 1).repeat(ELEMENTS, 1).t()

    def verify() -> None:
        rows.zero_()
        side.synchronize()
        replay()
        side.synchronize()
        inputs.verify(rows, expected)

    return Operation(lambda turn: replay(), verify)


def _ours(rows: Tensor, side: Side) -> Callable[[], None]:
    def queue(driver: Driver, stream: int) -> None:
        for index, row in enumerate(rows):
            value = struct.pack("f", index + 1)
            args = kernels.fill([ELEMENTS], (row.data_ptr(), [row.element_size()]), value)
            driver.launch("fill", args, stream)

    return HalGraph(side.module.driver_info()["path"], queue).replay


def _of_torch(rows: Tensor) -> Callable[[], None]:
    rows[0].fill_(1)  # what a capture must not do is done: loading the kernel
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index, row in enumerate(rows):
            row.fill_(index + 1)
    return graph.replay
