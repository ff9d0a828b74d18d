# SPDX-License-Identifier: BSD-3-Clause
"""Copies on the device, and between it and host memory, pinned and ordinary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import torch
from torch import Tensor

from bench.gpu.measure import inputs
from bench.gpu.measure.case import Case, Operation
from bench.gpu.measure.scale import Scale
from bench.gpu.measure.side import Side


def cases(scale: Scale) -> Iterator[Case]:
    """One of scale.tensor_bytes in each direction. The fastest way of each gauges its link."""
    size = scale.tensor_bytes
    yield Case(
        "copy",
        "device to device",
        "device",
        lambda side: _within(side, size),
        work=2.0 * size,
        resource="device memory",
        gauges=True,
    )
    for pinned in (True, False):
        kind = "pinned" if pinned else "ordinary"
        for direction in (_to_device, _to_host):
            up = direction is _to_device
            yield Case(
                "copy",
                f"{kind} host to device" if up else f"device to {kind} host",
                # Ordinary memory is staged by the host, whose part must count.
                "wall",
                _maker(direction, size, pinned),
                work=float(size),
                resource="link to the device" if up else "link to the host",
                gauges=pinned,
            )


def _maker(
    direction: Callable[[Tensor, Tensor, Side], Operation], size: int, pinned: bool
) -> Callable[[Side], Operation]:
    # One host buffer for both sides: pages differ in where they lie.
    @cache
    def host() -> Tensor:
        values = inputs.normal(size // 4, torch.float32)
        return values.pin_memory() if pinned else values

    return lambda side: direction(host(), inputs.normal(size // 4, torch.float32), side)


def _within(side: Side, size: int) -> Operation:
    values = inputs.normal(size // 4, torch.float32)
    sources = inputs.rotated(values, side.device)
    targets = [torch.empty_like(source) for source in sources]
    return Operation(
        lambda turn: targets[turn % inputs.SETS].copy_(sources[turn % inputs.SETS]),
        lambda: inputs.verify(targets[0], values),
    )


def _to_device(host: Tensor, values: Tensor, side: Side) -> Operation:
    host.copy_(values)
    target = torch.zeros_like(values, device=side.device)
    return Operation(
        lambda turn: target.copy_(host, non_blocking=True), lambda: inputs.verify(target, values)
    )


def _to_host(host: Tensor, values: Tensor, side: Side) -> Operation:
    source = values.to(side.device)
    host.zero_()

    def verify() -> None:
        side.synchronize()
        inputs.verify(host, values)

    return Operation(lambda turn: host.copy_(source, non_blocking=True), verify)
