# SPDX-License-Identifier: BSD-3-Clause
"""Work joins the current stream, runs there in order, and is queued without a wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check, while_held
from torch_conformance.checks._vectors import N, full, zeros


def _fills(x: torch.Tensor, y: torch.Tensor) -> None:
    for value in range(1, 9):
        x.fill_(value)


def _copies(x: torch.Tensor, y: torch.Tensor) -> None:
    for source in [torch.full((N,), float(value), device=x.device) for value in range(1, 9)]:
        x.copy_(source)


def _changes(x: torch.Tensor, y: torch.Tensor) -> None:
    for _ in range(6):
        x.mul_(2).add_(1)


def _fills_and_copies(x: torch.Tensor, y: torch.Tensor) -> None:
    for value in range(1, 9):
        x.fill_(value)
        y.copy_(x)
        x.zero_()


def _many_fills(x: torch.Tensor, y: torch.Tensor) -> None:
    for value in range(300):
        x.fill_(value)
    y.copy_(x)


#: Work on two tensors of zeros, and the values they then have.
_IN_ORDER: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], None], int, int]] = {
    "fills": (_fills, 8, 0),
    "copies": (_copies, 8, 0),
    "read_modify_write": (_changes, 63, 0),
    "fill_then_copy": (_fills_and_copies, 0, 8),
    "many": (_many_fills, 299, 299),
}


@check("stream/order", "STREAM-020", cases=_IN_ORDER, needs=("streams", "delay"))
def work_of_a_stream_runs_in_order(dev: Device, case: str) -> None:
    """Work queued on one stream runs in the order in which it was queued."""
    work, first, second = _IN_ORDER[case]
    x, y = zeros(dev), zeros(dev)
    dev.synchronize()
    with dev.stream():
        dev.delay(LATE_MS)  # so that all of it is queued before any of it runs
        work(x, y)
        dev.assert_equal(x, full(first))
        dev.assert_equal(y, full(second))


_ON_STREAM: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "fill": lambda x, one: x.fill_(1),
    "copy": lambda x, one: x.copy_(one),
    "strided_copy": lambda x, one: x.view(64, 64).copy_(one.view(64, 64).t()),
    "view_copy": lambda x, one: x[:].copy_(one[:]),
}


@check("stream/operators", "STREAM-046", cases=tuple(_ON_STREAM), needs=("streams", "delay"))
def operators_run_on_the_current_stream(dev: Device, case: str) -> None:
    """An operator joins the current stream: behind a delay there, it has not run elsewhere."""
    _runs_behind_a_delay(dev, _ON_STREAM[case], 0)


@check(
    "stream/operators_elsewhere",
    "STREAM-046",
    cases=tuple(_ON_STREAM),
    needs=("streams", "delay", "multi_device"),
)
def operators_run_on_the_stream_of_their_device(dev: Device, case: str) -> None:
    """An operator on device 1 joins device 1's current stream, also while device 0 is current."""
    _runs_behind_a_delay(dev, _ON_STREAM[case], 1)


#: What makes a tensor of numbers that are known, on a device.
_MAKERS: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "ones": lambda d: torch.ones(N, device=d),
    "full": lambda d: torch.full((N,), 3.5, device=d),
    "arange": lambda d: torch.arange(N, device=d),
    "range": lambda d: torch.arange(0.5, 100, 0.25, device=d),
    "linspace": lambda d: torch.linspace(0, 8, 129, device=d),
    "logspace": lambda d: torch.logspace(0, 8, 9, base=2, device=d),
    "eye": lambda d: torch.eye(65, device=d),
    "tril_indices": lambda d: torch.tril_indices(65, 65, device=d),
    "triu_indices": lambda d: torch.triu_indices(65, 65, device=d),
    "randperm": lambda d: torch.randperm(N, device=d).sort().values,
    "complex": lambda d: torch.full((N,), 1 + 2j, device=d).real,
}


@check("stream/factories_elsewhere", "STREAM-046", needs=("streams", "delay", "multi_device"))
def factories_run_on_the_stream_of_their_device(dev: Device) -> None:
    """A factory of device 1 does not join a stream of device 0, which is current and busy."""
    there = dev.device(1)

    def make() -> dict[str, torch.Tensor]:
        return {name: maker(there).cpu() for name, maker in _MAKERS.items()}

    make()  # what is done once, such as loading kernels, is done here
    with torch.accelerator.device_index(0):
        found = while_held(dev, make)
    for name, tensor in found.items():
        assert torch.equal(tensor, _MAKERS[name](torch.device("cpu"))), name


@check("stream/factories", "STREAM-046", cases=_MAKERS, needs=("streams", "delay"))
def factories_run_on_the_current_stream(dev: Device, case: str) -> None:
    """A factory on a side stream does not join the default stream, which is busy."""
    make, side = _MAKERS[case], dev.stream(0)

    def look() -> torch.Tensor:
        with side:
            return make(dev.device(0)).cpu()

    look()  # what is done once, such as loading kernels, is done here
    dev.synchronize()
    found = while_held(dev, look)
    assert torch.equal(found, make(torch.device("cpu")))


def _runs_behind_a_delay(
    dev: Device, operator: Callable[[torch.Tensor, torch.Tensor], Any], index: int
) -> None:
    """The operator on tensors of device `index` runs on its current stream; 0 is current."""
    x, early = zeros(dev, index), zeros(dev, index)
    one = torch.ones(N, device=dev.device(index))
    stream, other = dev.stream(index), dev.stream(index)
    dev.synchronize()

    def look() -> tuple[float, bool]:
        with torch.accelerator.device_index(0):
            operator(x, one)
        if stream.query():
            return 0.0, True
        for device in {0, index}:  # places where it may have gone
            dev.default_stream(device).synchronize()
        with other:
            early.copy_(x)
        other.synchronize()
        with other:
            return float(early[N - 1].item()), stream.query()

    with stream:
        value, done = while_held(dev, look)
    assert value == 0.0, "it ran although its stream was held"
    assert done is False, "its stream has no work"
    stream.synchronize()
    dev.assert_equal(x, full(1))


def _make_and_free(x: torch.Tensor, one: torch.Tensor) -> None:
    torch.empty(777, device=x.device).fill_(1)


#: What has to return at once: native work, allocating, and freeing.
_QUEUED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "fill": _ON_STREAM["fill"],
    "copy": _ON_STREAM["copy"],
    "strided_copy": _ON_STREAM["strided_copy"],
    "allocate": lambda x, one: torch.empty(12345, device=x.device),
    "free": _make_and_free,
}


@check("stream/operators_async", "STREAM-047", cases=_QUEUED, needs=("streams", "delay"))
def operators_return_before_they_ran(dev: Device, case: str) -> None:
    """Queueing native work, allocating and freeing return while the stream is still held."""
    x, one = zeros(dev), torch.ones(N, device=dev.device(0))
    stream = dev.stream()
    dev.synchronize()

    def look() -> bool:
        _QUEUED[case](x, one)
        return stream.query()

    with stream:
        assert while_held(dev, look) is False
    stream.synchronize()


#: Elements of 16 MiB of float32 and a few: more than one thread or one transfer takes.
_LARGE = (1 << 22) + 3


def _cast(x: torch.Tensor, one: torch.Tensor) -> None:
    x.copy_(one.view(torch.int32))


#: Work that is done by more than one thread, or in more than one piece, where it is large.
_LARGE_WORK: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "fill": _ON_STREAM["fill"],
    "zero": lambda x, one: x.zero_(),
    "copy": _ON_STREAM["copy"],
    "strided_copy": lambda x, one: x[::2].copy_(one[::2]),
    "cast": _cast,
}


@check("stream/operators_async_large", "STREAM-047", cases=_LARGE_WORK, needs=("streams", "delay"))
def large_operators_return_before_they_ran(dev: Device, case: str) -> None:
    """Queueing fills and copies of 16 MiB returns while the stream is still held."""
    x, one = torch.zeros(_LARGE, device=dev.device(0)), torch.ones(_LARGE, device=dev.device(0))
    stream = dev.stream()
    dev.synchronize()

    def look() -> bool:
        _LARGE_WORK[case](x, one)
        return stream.query()

    with stream:
        assert while_held(dev, look) is False
    stream.synchronize()


def _constant(x: torch.Tensor) -> float:
    """The value of all elements, or NaN where they differ."""
    host = x.cpu()
    return host[0].item() if bool((host == host[0]).all()) else float("nan")


@check("stream/order:large", "STREAM-020", needs=("streams", "delay"))
def large_work_of_a_stream_runs_in_order(dev: Device) -> None:
    """Fills and copies of 16 MiB on one stream run one after the other, each as a whole."""
    x, y, z = (torch.full((_LARGE,), 9.0, device=dev.device(0)) for _ in range(3))
    dev.synchronize()
    with dev.stream(0):
        dev.delay(LATE_MS)
        x.fill_(1)
        y.copy_(x)
        x.zero_()
        z.copy_(x)
        x.fill_(2)
        assert [_constant(tensor) for tensor in (x, y, z)] == [2.0, 1.0, 0.0]


@check("stream/wait:large", "STREAM-021", needs=("streams", "events"))
def large_work_is_waited_for_as_a_whole(dev: Device) -> None:
    """Copies of 16 MiB that wait for one another in turns on two streams keep that order."""
    x, y = (torch.zeros(_LARGE, device=dev.device(0)) for _ in range(2))
    a, b = dev.stream(0), dev.stream(0)
    dev.synchronize()
    for value in (1.0, 2.0, 3.0):
        a.wait_stream(b)
        with a:
            x.fill_(value)
        b.wait_stream(a)
        with b:
            y.copy_(x)
    a.wait_stream(b)
    with a:
        x.zero_()
    b.synchronize()
    assert _constant(y) == 3.0
