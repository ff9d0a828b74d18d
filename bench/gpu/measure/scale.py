# SPDX-License-Identifier: BSD-3-Clause
"""How large and how long: for a real card, and for a rehearsal that only has to pass through."""

from __future__ import annotations

from dataclasses import dataclass

from bench.gpu.measure.timing import Pace


@dataclass(frozen=True)
class Scale:
    """Sizes of the operands, and the pace of the rounds."""

    tensor_bytes: int
    columns: int
    matrices: tuple[int, ...]
    graph_nodes: int
    pace: Pace


REAL = Scale(
    tensor_bytes=256 << 20,
    columns=4096,
    matrices=(8192, 4096, 2048, 1024),
    graph_nodes=200,
    pace=Pace(rounds=15, round_us=6000, most=256, seconds=4),
)
TINY = Scale(
    tensor_bytes=64 << 10,
    columns=64,
    matrices=(32,),
    graph_nodes=8,
    pace=Pace(rounds=3, round_us=200, most=8, seconds=1),
)
