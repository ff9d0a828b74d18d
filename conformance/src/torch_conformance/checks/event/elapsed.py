# SPDX-License-Identifier: BSD-3-Clause
"""elapsed_time measures the milliseconds between two records."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.event._events import TIMING


def _timed(dev: Device, *delays: float) -> list[torch.Event]:
    """Timing events around delays of that many milliseconds on one stream, all completed."""
    events = [dev.event(timing=True) for _ in range(len(delays) + 1)]
    with dev.stream(0) as stream:
        events[0].record(stream)
        for ms, event in zip(delays, events[1:], strict=True):
            if ms > 0:
                dev.delay(ms)
            event.record(stream)
        stream.synchronize()
    return events


def _work_times(dev: Device) -> tuple[float, float, float]:
    """Milliseconds that passed between the records around 160 ms of work, 30 ms, and none."""
    a, b, c, d = _timed(dev, 160, 30, 0)
    return a.elapsed_time(b), b.elapsed_time(c), c.elapsed_time(d)


#: What holds of two records with nothing between them.
_EMPTY: dict[str, Callable[[torch.Event, torch.Event], bool]] = {
    "type": lambda start, end: isinstance(start.elapsed_time(end), float),
    "not_negative": lambda start, end: start.elapsed_time(end) >= 0.0,
    "same_event": lambda start, end: start.elapsed_time(start) == 0.0,
}


@check("event/elapsed", "EVENT-020", cases=_EMPTY, needs=TIMING)
def elapsed_time_is_a_number_of_milliseconds(dev: Device, case: str) -> None:
    """elapsed_time is a float, is not negative, and is zero from an event to itself."""
    start, end = _timed(dev, 0)
    times = start.elapsed_time(end), start.elapsed_time(start)
    assert _EMPTY[case](start, end), f"to the next and to itself: {times}"


@check("event/elapsed:at_least_the_work", "EVENT-020", needs=TIMING)
def elapsed_time_covers_the_work(dev: Device) -> None:
    """elapsed_time is at least the milliseconds that the work between two records takes."""
    long, short, _ = _work_times(dev)
    # 5 % for clocks that differ: a delay is a lower bound already.
    assert long >= 160 * 0.95 and short >= 30 * 0.95, f"{long} ms for 160, {short} ms for 30"


@check("event/elapsed:grows_with_work", "EVENT-020", needs=TIMING)
def elapsed_time_grows_with_the_work(dev: Device) -> None:
    """elapsed_time of more work is larger."""
    for _ in range(3):  # a preempted 30 ms may last longer once, not every time
        long, short, _ = _work_times(dev)
        if long > short:
            return
    raise AssertionError(f"160 ms of work took {long} ms, 30 ms took {short} ms")


@check("event/elapsed:empty_is_short", "EVENT-020", needs=TIMING)
def elapsed_time_of_no_work_is_short(dev: Device) -> None:
    """elapsed_time of two records with nothing between them is short."""
    for _ in range(3):
        long, _, empty = _work_times(dev)
        if empty < long / 2:
            return
    raise AssertionError(f"no work took {empty} ms, 160 ms of work took {long} ms")


@check("event/elapsed:adds_up", "EVENT-020", needs=TIMING)
def elapsed_times_add_up(dev: Device) -> None:
    """The times between records that follow each other add up to the whole time."""
    events = _timed(dev, 160, 30, 0)
    whole = events[0].elapsed_time(events[-1])
    parts = [start.elapsed_time(end) for start, end in pairwise(events)]
    assert abs(whole - sum(parts)) <= 0.1 + 0.01 * whole, f"{parts} do not add up to {whole}"


@check("event/elapsed:repeatable", "EVENT-020", needs=TIMING)
def elapsed_time_does_not_change(dev: Device) -> None:
    """elapsed_time of two events is the same each time it is asked for."""
    a, b, c = _timed(dev, 30, 0)
    first = a.elapsed_time(b)
    b.elapsed_time(c)
    assert a.elapsed_time(b) == first, "asking twice gives two answers"


@check("event/elapsed_work", "EVENT-020", needs=TIMING)
def elapsed_time_excludes_what_came_before(dev: Device) -> None:
    """Work queued before the first record is not part of the elapsed time."""
    for _ in range(3):
        start, end = dev.event(timing=True), dev.event(timing=True)
        with dev.stream(0) as stream:
            dev.delay(160)
            start.record(stream)
            end.record(stream)
        end.synchronize()
        elapsed = start.elapsed_time(end)
        if elapsed < 80:
            return
    raise AssertionError(f"{elapsed} ms elapsed between two records with nothing between them")


def _measured(dev: Device, ms: float, streams: tuple[torch.Stream, torch.Stream]) -> float:
    """Milliseconds between two records around `ms` of work, which the host's clock confirms.

    The first record is on the first stream; the work and the second one are on the second stream.
    """
    start, end = dev.event(timing=True), dev.event(timing=True)
    first, then = streams
    dev.synchronize()
    begun = time.perf_counter()
    start.record(first)
    with then:
        then.wait_event(start)
        dev.delay(ms)
        end.record(then)
    start.synchronize()
    end.synchronize()
    waited = (time.perf_counter() - begun) * 1e3
    elapsed = start.elapsed_time(end)
    # The host began before the first record and ended after the second. 5 % for clocks that differ.
    assert ms * 0.95 <= elapsed <= waited * 1.05 + 1, (
        f"{elapsed} ms elapsed around {ms} ms of work, for which the host waited {waited:.1f} ms"
    )
    return elapsed


#: The streams on which the records before and after some work are made.
_TIMED_ON: dict[str, Callable[[Device], tuple[torch.Stream, torch.Stream]]] = {
    "one_stream": lambda dev: (dev.stream(0),) * 2,
    "two_streams": lambda dev: (dev.stream(0), dev.stream(0)),
    "default_stream": lambda dev: (dev.default_stream(0),) * 2,
    "last_device": lambda dev: (dev.stream(dev.count - 1),) * 2,
}


@check("event/elapsed_host", "EVENT-020", cases=_TIMED_ON, needs=TIMING)
def elapsed_time_agrees_with_the_hosts_clock(dev: Device, case: str) -> None:
    """elapsed_time lies between the time of the work and the time that the host waits."""
    _measured(dev, 40, _TIMED_ON[case](dev))


@check("event/elapsed_devices", "EVENT-024", needs=(*TIMING, "multi_device"))
def elapsed_time_between_devices_is_refused_or_right(dev: Device) -> None:
    """elapsed_time of events of two devices raises, or agrees with the host's clock."""
    try:
        _measured(dev, 40, (dev.stream(0), dev.stream(1)))
    except (RuntimeError, ValueError):
        dev.synchronize()


@check("event/elapsed_order", "EVENT-025", needs=TIMING)
def elapsed_time_against_the_order_is_not_positive(dev: Device) -> None:
    """elapsed_time from the later to the earlier event is the negative time, or raises."""
    start, end = _timed(dev, 30)
    try:
        backwards = end.elapsed_time(start)
    except (RuntimeError, ValueError):
        return
    assert backwards == -start.elapsed_time(end)


@check("event/elapsed_fractions", "EVENT-026", needs=TIMING)
def elapsed_time_has_fractions(dev: Device) -> None:
    """elapsed_time is not rounded to whole milliseconds."""
    events = _timed(dev, *(1.3,) * 10)
    times = [start.elapsed_time(end) for start, end in pairwise(events)]
    assert any(ms != round(ms) for ms in times), times
