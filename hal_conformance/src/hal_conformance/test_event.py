# SPDX-License-Identifier: BSD-3-Clause
"""Events: completion, reuse, timing, their death."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_float, c_void_p

import pytest

from hal_conformance.abi import EventFlags, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver
from hal_conformance.test_stream import BRIEFLY, Footprint, wait_until

ALL_FLAGS = list(map(EventFlags, range(4)))


@covers("HAL-100")
@pytest.mark.parametrize("flags", ALL_FLAGS, ids=lambda flags: f"flags{flags.value}")
def test_an_event_never_recorded_is_complete(hal: Driver, flags: EventFlags) -> None:
    for device in range(hal.count()):
        event = hal.event(flags, device)
        assert hal.event_query(event) == Status.OK
        hal.ok(hal.api.event_synchronize(event))


@covers("HAL-101", needs=("validation",))
@pytest.mark.parametrize("flags", [1 << 2, 1 << 31, 0xFFFFFFFF])
def test_unknown_flags_are_refused(hal: Driver, flags: int) -> None:
    out = c_void_p()
    assert hal.api.event_create(0, flags, byref(out)) == Status.INVALID_ARGUMENT


@covers("HAL-101")
def test_destroying_null_does_nothing(hal: Driver) -> None:
    hal.ok(hal.api.event_destroy(None))


@covers("HAL-102")
def test_an_event_completes_with_the_work_before_it(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()
    with hal.held(stream):
        hal.record(event, stream)
        assert hal.event_query(event) == Status.NOT_READY
        time.sleep(BRIEFLY)
        assert hal.event_query(event) == Status.NOT_READY
    hal.synchronize(stream)
    assert hal.event_query(event) == Status.OK


@covers("HAL-102")
def test_an_event_does_not_wait_for_the_work_after_it(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()
    hal.record(event, stream)
    with hal.held(stream):
        assert wait_until(lambda: hal.event_query(event) == Status.OK)
        hal.ok(hal.api.event_synchronize(event))


@covers("HAL-102")
def test_events_complete_in_stream_order(hal: Driver) -> None:
    stream = hal.stream()
    early, late = hal.event(), hal.event()
    hal.record(early, stream)
    with hal.held(stream):
        hal.record(late, stream)
        assert wait_until(lambda: hal.event_query(early) == Status.OK)
        assert hal.event_query(late) == Status.NOT_READY


@covers("HAL-103")
@pytest.mark.parametrize("flags", ALL_FLAGS, ids=lambda flags: f"flags{flags.value}")
def test_event_synchronize_waits_for_the_record(hal: Driver, flags: EventFlags) -> None:
    """On another thread than the one that recorded."""
    stream, event = hal.stream(), hal.event(flags)
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            flag = hal.flag(stream)
            hal.record(event, stream)
            waiting = pool.submit(hal.api.event_synchronize, event)
            time.sleep(BRIEFLY)
            assert not waiting.done(), "event_synchronize returned while work was held"
        assert waiting.result() == Status.OK
        assert flag.times() == 1


@covers("HAL-104")
def test_recording_again_forgets_the_earlier_record(hal: Driver) -> None:
    held, idle, event = hal.stream(), hal.stream(), hal.event()
    with hal.held(held):
        hal.record(event, held)
        hal.record(event, idle)
        hal.ok(hal.api.event_synchronize(event))
        assert hal.event_query(event) == Status.OK


@covers("HAL-104")
def test_a_complete_event_becomes_pending_again(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()
    for _ in range(20):
        with hal.held(stream):
            hal.record(event, stream)
            assert hal.event_query(event) == Status.NOT_READY
        hal.ok(hal.api.event_synchronize(event))
        assert hal.event_query(event) == Status.OK


@covers("HAL-021")
def test_an_event_belongs_to_the_device_it_was_created_for(hal: Driver) -> None:
    """It can be recorded only on streams of its own device."""
    for device in (1, 0, 1):
        event, stream = hal.event(device=device), hal.stream(device)
        hal.record(event, stream)
        hal.ok(hal.api.event_synchronize(event))


@covers("HAL-105", needs=("validation",))
def test_a_record_on_another_devices_stream_is_refused(hal: Driver) -> None:
    event = hal.event(device=0)
    assert hal.api.event_record(event, hal.stream(device=1)) == Status.INVALID_ARGUMENT
    assert hal.event_query(event) == Status.OK


def _timed(hal: Driver, stream: int, milliseconds: float) -> float:
    start, end = hal.event(EventFlags.TIMING), hal.event(EventFlags.TIMING)
    hal.record(start, stream)
    hal.delay(stream, milliseconds)
    hal.record(end, stream)
    hal.ok(hal.api.event_synchronize(end))
    return hal.elapsed(start, end)


@covers("HAL-106")
def test_elapsed_time_is_the_time_between_the_records(hal: Driver) -> None:
    """Bounded below by the work between the records, above by what the host saw."""
    stream = hal.stream()
    _timed(hal, stream, 1)
    for milliseconds in (5.0, 40.0):
        started = time.monotonic()
        measured = _timed(hal, stream, milliseconds)
        seen = (time.monotonic() - started) * 1e3
        assert milliseconds * 0.99 <= measured <= seen + 0.1


@covers("HAL-106")
def test_elapsed_time_starts_at_the_first_record(hal: Driver) -> None:
    """Work before the first record and after the second does not count."""
    stream = hal.stream()
    start, end = hal.event(EventFlags.TIMING), hal.event(EventFlags.TIMING)
    hal.delay(stream, 100)
    hal.record(start, stream)
    hal.record(end, stream)
    hal.delay(stream, 100)
    hal.synchronize(stream)
    assert 0 <= hal.elapsed(start, end) < 90


@covers("HAL-106")
def test_elapsed_time_resolves_a_microsecond(hal: Driver) -> None:
    stream = hal.stream()
    measured = [_timed(hal, stream, 0.2) for _ in range(20)]
    assert min(measured) >= 0.198
    micros = {round(value * 1e3) for value in measured}
    assert any(value % 10 for value in micros), f"coarser than 10 us: {sorted(micros)}"


@covers("HAL-106", needs=("multi_device",))
def test_every_device_measures(hal: Driver) -> None:
    for device in range(hal.count()):
        stream = hal.stream(device)
        start, end = (hal.event(EventFlags.TIMING, device) for _ in range(2))
        hal.record(start, stream)
        hal.delay(stream, 5)
        hal.record(end, stream)
        hal.synchronize(stream)
        assert hal.elapsed(start, end) >= 4.95


@covers("HAL-107", needs=("validation",))
@pytest.mark.parametrize("untimed", [0, 1])
def test_elapsed_time_of_an_untimed_event_is_refused(hal: Driver, untimed: int) -> None:
    stream = hal.stream()
    pair = [hal.event(EventFlags.TIMING), hal.event(EventFlags.TIMING)]
    pair[untimed] = hal.event()
    for event in pair:
        hal.record(event, stream)
    hal.synchronize(stream)
    out = c_float(-7)
    assert hal.api.event_elapsed_ms(*pair, byref(out)) == Status.INVALID_ARGUMENT
    assert out.value == -7


@covers("HAL-107", needs=("validation",))
@pytest.mark.parametrize("recorded", [0, 1])
def test_elapsed_time_of_an_unrecorded_event_is_refused(hal: Driver, recorded: int) -> None:
    stream, out = hal.stream(), c_float()
    pair = [hal.event(EventFlags.TIMING), hal.event(EventFlags.TIMING)]
    hal.record(pair[recorded], stream)
    hal.synchronize(stream)
    assert hal.api.event_elapsed_ms(*pair, byref(out)) == Status.INVALID_ARGUMENT


@covers("HAL-107", needs=("host_func",))
def test_elapsed_time_of_a_pending_event_is_not_ready(hal: Driver) -> None:
    stream, out = hal.stream(), c_float(-7)
    start, end = hal.event(EventFlags.TIMING), hal.event(EventFlags.TIMING)
    hal.record(start, stream)
    with hal.held(stream):
        hal.record(end, stream)
        assert hal.api.event_elapsed_ms(start, end, byref(out)) == Status.NOT_READY
    hal.synchronize(stream)
    assert out.value == -7
    assert hal.elapsed(start, end) >= 0


@covers("HAL-107", needs=("multi_device", "validation"))
def test_elapsed_time_between_devices_is_refused(hal: Driver) -> None:
    pair = [hal.event(EventFlags.TIMING, device) for device in (0, 1)]
    for device, event in enumerate(pair):
        stream = hal.stream(device)
        hal.record(event, stream)
        hal.synchronize(stream)
    assert hal.api.event_elapsed_ms(*pair, byref(c_float())) == Status.INVALID_ARGUMENT


@covers("HAL-107", needs=("validation",))
def test_elapsed_time_refuses_null(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event(EventFlags.TIMING)
    hal.record(event, stream)
    hal.synchronize(stream)
    answers = [
        hal.api.event_elapsed_ms(None, event, byref(c_float())),
        hal.api.event_elapsed_ms(event, None, byref(c_float())),
        hal.api.event_elapsed_ms(event, event, None),
    ]
    assert answers == [Status.INVALID_ARGUMENT] * 3


@covers("HAL-108")
def test_a_wait_holds_after_the_event_is_destroyed(hal: Driver) -> None:
    producer, consumer, event = hal.stream(), hal.stream(), hal.event()
    with hal.held(producer):
        hal.record(event, producer)
        hal.wait(consumer, event)
        hal.ok(hal.api.event_destroy(event))
        flag = hal.flag(consumer)
        time.sleep(BRIEFLY)
        assert flag.times() == 0, "the wait was forgotten with the event"
    hal.synchronize(consumer)
    assert flag.times() == 1


@covers("HAL-108")
def test_an_event_may_be_destroyed_before_it_completes(hal: Driver) -> None:
    stream = hal.stream()
    with hal.held(stream):
        for _ in range(100):
            event = hal.event(EventFlags.TIMING)
            hal.record(event, stream)
            hal.ok(hal.api.event_destroy(event))
    hal.synchronize(stream)


@covers("HAL-109", patience=6)
def test_events_leak_nothing(hal: Driver) -> None:
    stream = hal.stream()

    def rounds(count: int) -> None:
        for _ in range(count):
            events = [hal.event(EventFlags.TIMING) for _ in range(200)]
            for event in events:
                hal.record(event, stream)
                hal.wait(stream, event)
            for event in events:
                hal.ok(hal.api.event_destroy(event))
            hal.synchronize(stream)

    rounds(10)
    before = Footprint()
    rounds(150)
    Footprint().assert_not_above(before, slack=2 << 20)


@covers("HAL-109", patience=6)
def test_recording_one_event_for_ever_leaks_nothing(hal: Driver) -> None:
    stream, event = hal.stream(), hal.event()

    def records(count: int) -> None:
        for _ in range(count):
            hal.record(event, stream)
        hal.synchronize(stream)

    records(2000)
    before = Footprint()
    for _ in range(15):
        records(2000)
    Footprint().assert_not_above(before, slack=2 << 20)
