# SPDX-License-Identifier: BSD-3-Clause
"""Backward is in the order of the streams on which forward ran and of the one that calls it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from torch_conformance.authoring.api import LATE_MS, Device, check, in_thread
from torch_conformance.checks.autograd._leaves import N, ones


@contextmanager
def _late(dev: Device, stream: torch.Stream) -> Iterator[None]:
    """Run on `stream` after a delay."""
    with stream:
        dev.delay(LATE_MS)
        yield


_ON_STREAMS = ("streams", "delay")


@contextmanager
def _forward_on_streams(
    dev: Device, gradient: float
) -> Iterator[tuple[Tensor, torch.Stream, torch.Stream]]:
    """A leaf and two streams; after the block its gradient is read on the caller's stream."""
    x, first, second = ones(dev), dev.stream(), dev.stream()
    dev.synchronize()
    yield x, first, second
    assert x.grad is not None
    dev.assert_equal(x.grad + 1, torch.full((N,), gradient + 1))
    first.synchronize()
    second.synchronize()


def _times(x: Tensor, factor: float) -> Tensor:
    """A product whose backward reads a tensor that forward made on its stream."""
    return x * torch.full_like(x, factor).detach()


def _late_sums(dev: Device, x: Tensor, *sides: torch.Stream) -> list[Tensor]:
    """The sums of 2x, 3x and so on, each made late on a stream of its own."""
    sums = []
    for factor, side in enumerate(sides, 2):
        with _late(dev, side):
            sums.append(_times(x, factor).sum())
    return sums


@check("autograd/stream:branches", "GRAD-008", needs=_ON_STREAMS)
def branches_on_several_streams_meet(dev: Device) -> None:
    """The gradient of a sum whose branches were made on two streams is complete."""
    with _forward_on_streams(dev, 2.0 + 3.0) as (x, *sides):
        first, second = _late_sums(dev, x, *sides)
        for side in sides:
            dev.current_stream().wait_stream(side)
        (first + second).backward()


@check("autograd/stream:accumulated", "GRAD-008", needs=_ON_STREAMS)
def backwards_on_several_streams_accumulate(dev: Device) -> None:
    """The gradients of graphs that were made on two streams add up in the leaf."""
    with _forward_on_streams(dev, 2.0 + 3.0) as (x, *sides):
        for part in _late_sums(dev, x, *sides):
            part.backward()


@check("autograd/stream:caller", "GRAD-008", needs=_ON_STREAMS)
def backward_on_a_side_stream_is_in_its_order(dev: Device) -> None:
    """A gradient can be read on the side stream that called backward."""
    with _forward_on_streams(dev, 3.0) as (x, first, second):
        with _late(dev, first):
            y = _times(x, 3)
        with second:
            second.wait_stream(first)
            y.sum().backward()
            read = x.grad + 1  # type: ignore[operator]  # set by a backward
        dev.current_stream().wait_stream(second)
        dev.assert_equal(read, torch.full((N,), 4.0))


@check("autograd/stream:late_gradient", "GRAD-008", needs=_ON_STREAMS)
def a_late_weight_of_the_gradient_is_waited_for(dev: Device) -> None:
    """Backward on the stream of forward waits for the gradient that the caller still makes."""
    with _forward_on_streams(dev, 2.0 * 3.0) as (x, side, _):
        with side:
            y = x * 3
        weight = torch.zeros(N, device=dev.device())
        with _late(dev, dev.current_stream()):
            weight.fill_(2)
        dev.current_stream().wait_stream(side)
        y.backward(weight)


@check("autograd/stream:thread", "GRAD-008", needs=_ON_STREAMS)
def backward_in_a_thread_is_in_the_order_of_its_stream(dev: Device) -> None:
    """A thread, whose current stream is the default one, differentiates a side stream's work."""
    dev.require("threads")
    with _forward_on_streams(dev, 3.0) as (x, side, _):
        with _late(dev, side):
            y = _times(x, 3)

        def backward() -> None:
            dev.current_stream().wait_stream(side)
            y.sum().backward()

        in_thread(backward)
        dev.synchronize()


@check("autograd/stream:no_wait", "GRAD-008", needs=_ON_STREAMS)
def backward_waits_for_the_streams_of_forward(dev: Device) -> None:
    """A caller that does not wait for the stream of forward gets the whole gradient."""
    with _forward_on_streams(dev, 3.0) as (x, side, _):
        with _late(dev, side):
            y = _times(x, 3)
        with side:
            total = y.sum()
        total.backward()


@check("autograd/hook_stream", "GRAD-015", needs=("streams",))
def hooks_run_on_the_stream_of_forward(dev: Device) -> None:
    """The current stream in a hook is the one on which the tensor was made."""
    x, side, seen = ones(dev), dev.stream(), []
    side.wait_stream(dev.current_stream())
    with side:
        y = x * 2
        y.register_hook(lambda g: seen.append(dev.current_stream()))
    dev.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side]
