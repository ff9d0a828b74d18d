# SPDX-License-Identifier: BSD-3-Clause
"""The operations that are measured, and how."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from conformance.device import Device

# One round of an operation is repeated until it lasts this long, in seconds.
ROUND = 0.004
MAX_REPEATS = 2000
COPY_BYTES = 64 << 20
OPEN_STREAMS = 64

Operation = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """Medians in microseconds; no CPU figure where the CPU has no such operation."""

    name: str
    device_us: float
    cpu_us: float | None

    @property
    def ratio(self) -> float | None:
        """Time on the device by time on the CPU."""
        return None if self.cpu_us is None else self.device_us / self.cpu_us

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "ratio": self.ratio}

    def line(self) -> str:
        """One line of the table."""
        if self.cpu_us is None or self.ratio is None:
            return f"{self.name:<34}{self.device_us:>9.2f} us{'-':>12}{'-':>10}"
        return f"{self.name:<34}{self.device_us:>9.2f} us{self.cpu_us:>9.2f} us{self.ratio:>9.2f}x"


def measure(dev: Device, rounds: int) -> list[Row]:
    """Every operation that the device has, in a fixed order."""
    rows = [_compare(dev, name, make, rounds) for name, make in PAIRS.items()]
    rows += _copies(dev, rounds)
    if dev.is_accelerator:
        rows += _synchronisation(dev, rounds)
    return rows


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
    device_us, cpu_us = _alternate((there, dev.synchronize), (here, _nothing_to_wait_for), rounds)
    return Row(name, device_us, cpu_us)


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
    on_cpu = (lambda: host[1].copy_(host[0]), _nothing_to_wait_for)
    for name, (target, source) in directions.items():
        on_device = (lambda t=target, s=source: t.copy_(s), dev.synchronize)
        device_us, cpu_us = _alternate(on_device, on_cpu, rounds)
        yield Row(f"copy 64 MB, {name}", device_us, cpu_us)


def _synchronisation(dev: Device, rounds: int) -> Iterator[Row]:
    """Waiting for nothing: what it costs when there is no work, and with many streams."""
    stream = dev.stream()
    index = dev.device().index or 0
    yield Row("synchronize an idle stream", _alone(stream.synchronize, rounds), None)
    idle = _alone(lambda: dev.synchronize(index), rounds)
    yield Row("synchronize an idle device", idle, None)
    with _open_streams(dev):
        open_us = _alone(lambda: dev.synchronize(index), rounds)
    # Against the idle device, not against the CPU: the price of streams that have nothing to do.
    yield Row(f"... with {OPEN_STREAMS} streams, to idle", open_us, idle)


@contextmanager
def _open_streams(dev: Device) -> Iterator[None]:
    """Streams that have all had work."""
    streams = [dev.stream() for _ in range(OPEN_STREAMS)]
    for stream in streams:
        with stream:
            torch.zeros(1, device=dev.device())
    dev.synchronize()
    yield


# Timing


def _alternate(
    first: tuple[Operation, Operation],
    second: tuple[Operation, Operation],
    rounds: int,
) -> tuple[float, float]:
    """Median microseconds of two (operation, wait) pairs that take turns."""
    counts = [_calibrate(*pair) for pair in (first, second)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for pair, count, found in zip((first, second), counts, times, strict=True):
            found.append(_round(*pair, count))
    return median(times[0]), median(times[1])


def _alone(operation: Operation, rounds: int) -> float:
    count = _calibrate(operation, _nothing_to_wait_for)
    return median(_round(operation, _nothing_to_wait_for, count) for _ in range(rounds))


def _nothing_to_wait_for() -> None:
    pass


def _calibrate(operation: Operation, wait: Operation) -> int:
    """How often to repeat an operation in one round; warms it up on the way."""
    for _ in range(3):
        operation()
    wait()
    return max(1, min(MAX_REPEATS, int(ROUND * 1e6 / _round(operation, wait, 2))))


def _round(operation: Operation, wait: Operation, count: int) -> float:
    """Microseconds of one operation in a row of `count`, with the wait for the last."""
    begin = time.perf_counter()
    for _ in range(count):
        operation()
    wait()
    return (time.perf_counter() - begin) / count * 1e6
