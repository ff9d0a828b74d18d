# SPDX-License-Identifier: BSD-3-Clause
"""Basics: what every program does all the time, copies, and waiting for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from torch_conformance.authoring.device import Device
from torch_conformance.bench.timing import Operation, Row, alone, alternate

COPY_BYTES = 64 << 20
OPEN_STREAMS = 64


def measure(dev: Device, rounds: int) -> Iterator[Row]:
    """Every operation that the device has, in a fixed order."""
    for name, make in PAIRS.items():
        yield _compare(dev, name, make, rounds)
    yield from _copies(dev, rounds)
    if dev.is_accelerator:
        yield from _synchronisation(dev, rounds)


# Operations of one device, compared with the same on the CPU


def _empty(device: torch.device) -> Operation:
    return lambda: torch.empty(16, device=device)


def _fill(device: torch.device) -> Operation:
    tensor = torch.empty(1_000_000, device=device)
    return lambda: tensor.fill_(1.0)


def _view(device: torch.device) -> Operation:
    tensor = torch.empty(4, 4, device=device)
    return lambda: tensor.view(16)


def _item(device: torch.device) -> Operation:
    tensor = torch.ones((), device=device)
    return tensor.item


def _add(device: torch.device) -> Operation:
    tensor = torch.ones(1, device=device)
    return lambda: tensor + tensor


def _uncommon(device: torch.device) -> Operation:
    tensor = torch.ones(1, device=device)
    return lambda: torch.special.i0e(tensor)


def _train_step(device: torch.device) -> Operation:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(32, 64).to(device)
    targets = torch.randint(10, (32,)).to(device)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    return step


PAIRS: dict[str, Callable[[torch.device], Operation]] = {
    "empty, 16 elements": _empty,
    "fill_, 1M elements": _fill,
    "view": _view,
    "item()": _item,
    "add, 1 element": _add,
    "special.i0e, 1 element": _uncommon,
    "train step of an MLP": _train_step,
}


def _compare(dev: Device, name: str, make: Callable[[torch.device], Operation], rounds: int) -> Row:
    here, there = make(torch.device("cpu")), make(dev.device())
    return alternate(name, there, here, dev.synchronize, rounds)


def _copies(dev: Device, rounds: int) -> Iterator[Row]:
    """Copies of COPY_BYTES in every direction, against a copy from host to host."""
    count, device = COPY_BYTES // 4, dev.device()
    host = [torch.ones(count), torch.zeros(count)]
    there = [torch.ones(count, device=device), torch.zeros(count, device=device)]
    directions = {
        "host to device": (there[1], host[0]),
        "device to host": (host[1], there[0]),
        "device to device": (there[1], there[0]),
    }
    for name, (target, source) in directions.items():

        def on_device(target: Tensor = target, source: Tensor = source) -> Tensor:
            return target.copy_(source)

        yield alternate(
            f"copy 64 MB, {name}",
            on_device,
            lambda: host[1].copy_(host[0]),
            dev.synchronize,
            rounds,
        )


def _synchronisation(dev: Device, rounds: int) -> Iterator[Row]:
    """Waiting for nothing: what it costs when there is no work, and with many streams."""
    stream = dev.stream()
    index = dev.device().index or 0
    yield alone("synchronize an idle stream", stream.synchronize, rounds)
    idle = alone("synchronize an idle device", lambda: dev.synchronize(index), rounds)
    yield idle
    with _open_streams(dev):
        # Against the idle device, not against the CPU: the price of streams with nothing to do.
        yield alone(
            f"... with {OPEN_STREAMS} streams, to idle",
            lambda: dev.synchronize(index),
            rounds,
            idle.device_us,
        )


@contextmanager
def _open_streams(dev: Device) -> Iterator[None]:
    """Streams that have all had work."""
    streams = [dev.stream() for _ in range(OPEN_STREAMS)]
    for stream in streams:
        with stream:
            torch.zeros(1, device=dev.device())
    dev.synchronize()
    yield
