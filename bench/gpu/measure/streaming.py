# SPDX-License-Identifier: BSD-3-Clause
"""What should run at the speed of device memory: pointwise, reductions, softmax, layer norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.measure import inputs
from bench.gpu.measure.case import Case, Operation
from bench.gpu.measure.scale import Scale
from bench.gpu.measure.side import Side

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Streamed:
    """A function of tensors of `rows x COLUMNS`; `writes` counts those it writes, by its inputs."""

    group: str
    name: str
    function: Callable[..., Tensor]
    reads: int = 1
    writes: int = 1
    values: Callable[..., Tensor] = inputs.normal


OPERATIONS = (
    Streamed("pointwise", "add", torch.add, reads=2),
    Streamed("pointwise", "mul", torch.mul, reads=2),
    Streamed("pointwise", "relu", torch.relu),
    Streamed("pointwise", "gelu", functional.gelu),
    Streamed("reduction", "sum", torch.sum, writes=0, values=inputs.positive),
    Streamed(
        "reduction", "sum of rows", partial(torch.sum, dim=1), writes=0, values=inputs.positive
    ),
    Streamed(
        "reduction",
        "sum of columns",
        partial(torch.sum, dim=0),
        writes=0,
        values=inputs.positive,
    ),
    Streamed("reduction", "amax of rows", partial(torch.amax, dim=1), writes=0),
    Streamed("softmax", "softmax", partial(functional.softmax, dim=-1)),
    Streamed("layer norm", "layer_norm", lambda x: functional.layer_norm(x, x.shape[-1:])),
)


def cases(scale: Scale) -> Iterator[Case]:
    """Every operation in every dtype, on tensors of scale.tensor_bytes."""
    for operation in OPERATIONS:
        for dtype_name, dtype in DTYPES.items():
            moved = (operation.reads + operation.writes) * scale.tensor_bytes
            yield Case(
                operation.group,
                f"{operation.name} {dtype_name}",
                "device",
                _maker(operation, dtype, scale),
                work=float(moved),
                resource="device memory",
            )


def _maker(streamed: Streamed, dtype: torch.dtype, scale: Scale) -> Callable[[Side], Operation]:
    shape = (scale.tensor_bytes // dtype.itemsize // scale.columns, scale.columns)
    count = shape[0] * shape[1]

    # Both only when they are needed, and gone with the case: they are large.
    @cache
    def sources() -> list[Tensor]:
        seeds = range(1, 1 + streamed.reads)
        return [streamed.values(count, dtype, seed).view(shape) for seed in seeds]

    @cache
    def expected() -> Tensor:
        # In single precision, whatever the dtype: what is to be approached.
        return streamed.function(*(source.float() for source in sources()))

    def make(side: Side) -> Operation:
        # One list of buffers for each input; then one tuple of inputs for each turn.
        buffers = [inputs.rotated(source, side.device) for source in sources()]
        turns = list(zip(*buffers, strict=True))
        # An old result is freed only after the next one of its turn: outputs rotate, too.
        results: list[Tensor | None] = [None] * inputs.SETS

        def step(turn: int) -> None:
            place = turn % inputs.SETS
            results[place] = streamed.function(*turns[place])

        def verify() -> None:
            result = results[0]
            assert result is not None, "verified before the first step"
            inputs.verify(result, expected())

        return Operation(step, verify)

    return make
