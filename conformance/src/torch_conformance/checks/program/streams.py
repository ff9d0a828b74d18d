# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of several streams, compared with the same steps one after another on the host.

Steps are operators, copies, new and freed memory, events that are recorded and waited for again,
and waits of the host. The program itself knows which steps are in order (vector clocks), and orders
two steps where it has to, by one of the ways that users have. So the result is that of the steps
one after another, however fast each is.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import torch
from torch import Tensor

from torch_conformance.authoring.api import FULL, Device, check, in_threads, why_ended
from torch_conformance.checks.program._common import MASK, SEEDS, SIZES, STREAMS, VALUES, restored

STEPS = 120

#: A step by the number of its stream and its position there; a clock says how many steps of each
#: stream are over.
Step = tuple[int, int]
Clock = dict[int, int]


def _join(clock: Clock, other: Clock) -> None:
    for stream, count in other.items():
        clock[stream] = max(clock.get(stream, 0), count)


class _Track:
    """A stream, and what is over before its next step."""

    def __init__(self, number: int, stream: torch.Stream) -> None:
        self.number, self.stream = number, stream
        self.index = stream.device_index
        self.clock: Clock = {number: 0}

    def step(self) -> Step:
        self.clock[self.number] += 1
        return self.number, self.clock[self.number]


class _Value:
    """A tensor, what it has to be, and the steps that touch it."""

    def __init__(self, tensor: Tensor, expected: Tensor, home: _Track) -> None:
        self.tensor, self.expected, self.home = tensor, expected, home
        self.stream = home.stream  # of its memory; the track may get another one
        self.writes: set[Step] = set()
        self.reads: set[Step] = set()
        self.history: list[str] = []


class _Program:
    """One random program; the same for the same seed."""

    def __init__(self, dev: Device, seed: int, indices: list[int]) -> None:
        self._dev = dev
        self._random = random.Random(seed)
        self._size = SIZES[seed % len(SIZES)]
        self._host: Clock = {}  # what the host has waited for
        self._tracks: list[_Track] = []
        self._numbers = 0
        self._events: list[tuple[torch.Event, Clock]] = []
        self._downloads: list[tuple[Tensor, Tensor, torch.Event, Step]] = []
        for index in indices:
            self._add_track(dev.current_stream(index))
            for _ in range(STREAMS - 1):
                self._add_track(dev.stream(index))
        self._values = [
            self._new(self._track_of(index), self._noise())
            for index in indices
            for _ in range(VALUES)
        ]

    def run(self) -> None:
        """All steps; then every value is compared."""
        steps = self._steps()
        names = list(steps)
        weights = [weight for weight, _ in steps.values()]
        for _ in range(STEPS):
            steps[self._random.choices(names, weights)[0]][1]()
        while self._downloads:
            self._collect()
        for value in self._values:
            self._compare(value)

    def _steps(self) -> dict[str, tuple[int, Callable[[], None]]]:
        """The kinds of steps, and how often each is drawn."""
        steps: dict[str, tuple[int, Callable[[], None]]] = {
            "change": (30, self._change),
            "renew": (15, self._renew),
            "copy": (12, self._copy),
            "upload": (8, self._upload),
            "download": (8, self._download),
            "collect": (4, self._collect),
            "read": (2, self._read),
            "record": (8, self._record),
            "wait": (8, self._wait),
            "ask": (4, self._ask),
            "synchronize": (3, self._synchronize),
            "new_stream": (3, self._new_stream),
        }
        if self._dev.has("delay"):
            steps["delay"] = (14, self._delay)
        if self._dev.has("empty_cache"):
            steps["empty_cache"] = (1, torch.accelerator.empty_cache)
        return steps

    # ---- values and streams ----

    def _noise(self) -> Tensor:
        first = self._random.randrange(MASK)
        return (torch.arange(self._size, dtype=torch.int32) * 31 + first) & MASK

    def _add_track(self, stream: torch.Stream) -> _Track:
        self._numbers += 1
        track = _Track(self._numbers, stream)
        self._tracks.append(track)
        return track

    def _track_of(self, index: int) -> _Track:
        return self._random.choice([track for track in self._tracks if track.index == index])

    def _new(self, track: _Track, expected: Tensor) -> _Value:
        with track.stream:
            tensor = expected.to(track.stream.device)
        value = _Value(tensor, expected, track)
        self._touch("made", track, writes=[value])
        return value

    def _pick(self) -> _Value:
        return self._random.choice(self._values)

    def _pick_on(self, index: int) -> _Value:
        return self._random.choice([v for v in self._values if v.home.index == index])

    # ---- order ----

    def _is_over(self, track: _Track, step: Step) -> bool:
        number, count = step
        return max(track.clock.get(number, 0), self._host.get(number, 0)) >= count

    def _order(self, *tracks: _Track, reads: list[_Value], writes: list[_Value]) -> None:
        """Let the next step, of one of these streams or of all, come after what it has to."""
        before = {step for value in [*reads, *writes] for step in value.writes}
        before |= {step for value in writes for step in value.reads}
        for number, count in sorted(before):
            track, way = self._random.choice(tracks), self._random.randrange(4)
            if not any(self._is_over(each, (number, count)) for each in tracks):
                self._come_after(track, number, way)

    def _come_after(self, track: _Track, number: int, way: int) -> None:
        other = next(each for each in self._tracks if each.number == number)
        if way == 0:
            other.stream.synchronize()
            _join(self._host, other.clock)
            return
        if way == 1:
            track.stream.wait_stream(other.stream)
        else:
            event = self._dev.event()
            event.record(other.stream)
            if way == 2:
                self._events.append((event, dict(other.clock)))
            track.stream.wait_event(event)
        _join(track.clock, other.clock)

    def _touch(
        self,
        what: str,
        track: _Track,
        *,
        reads: list[_Value] | None = None,
        writes: list[_Value] | None = None,
    ) -> Step:
        """Note that the step of a stream which was just queued touches values."""
        step = track.step()
        for value in reads or []:
            value.reads.add(step)
        for value in writes or []:
            value.writes = {step}
            value.reads.clear()
            value.history.append(f"{what} on stream {track.number}")
        for value in [*(reads or []), *(writes or [])]:
            if value.stream != track.stream:
                value.tensor.record_stream(track.stream)
        return step

    # ---- steps ----

    def _change(self) -> None:
        """x = 5 x + y, in the elements of a slice."""
        x = self._pick()
        y, track = self._pick_on(x.home.index), self._track_of(x.home.index)
        step = self._random.choice((1, 1, 2, 3))
        self._order(track, reads=[y], writes=[x])
        with track.stream:
            x.tensor[::step].mul_(5).add_(y.tensor[::step]).bitwise_and_(MASK)
        x.expected = x.expected.clone()  # a pending download is compared with what it was
        x.expected[::step].mul_(5).add_(y.expected[::step]).bitwise_and_(MASK)
        self._touch("changed", track, reads=[y], writes=[x])

    def _renew(self) -> None:
        """A new tensor in the place of one that is freed, while both are in use on the device."""
        place = self._random.randrange(len(self._values))
        x = self._values[place]
        y, track = self._pick_on(x.home.index), self._track_of(x.home.index)
        self._order(track, reads=[x, y], writes=[])
        with track.stream:
            tensor = x.tensor * 3 + y.tensor
            tensor &= MASK
        self._touch("read", track, reads=[x, y])
        new = _Value(tensor, (x.expected * 3 + y.expected) & MASK, track)
        new.writes = {(track.number, track.clock[track.number])}
        new.history = [*x.history, f"renewed on stream {track.number}"]
        self._values[place] = new

    def _copy(self) -> None:
        """Within a device, or to another one: then a step of the streams of both, at once."""
        x, y = self._pick(), self._pick()
        if x is y:
            return
        tracks = [self._track_of(index) for index in dict.fromkeys((x.home.index, y.home.index))]
        self._order(*tracks, reads=[x], writes=[y])
        with ExitStack() as streams:
            for track in tracks:
                streams.enter_context(track.stream)
            y.tensor.copy_(x.tensor, non_blocking=True)
        y.expected = x.expected
        self._touch("read", tracks[0], reads=[x])
        self._touch("copied", tracks[-1], writes=[y])
        for track in tracks:
            for other in tracks:
                _join(track.clock, other.clock)

    def _upload(self) -> None:
        """From host memory, pinned where that is possible, which is freed at once."""
        y = self._pick()
        track, data = self._track_of(y.home.index), self._noise()
        self._order(track, reads=[], writes=[y])
        with track.stream:
            y.tensor.copy_(self._pinned(data), non_blocking=True)
        y.expected = data
        self._touch("uploaded", track, writes=[y])

    def _download(self) -> None:
        """To host memory that is looked at later."""
        x = self._pick()
        track, event = self._track_of(x.home.index), self._dev.event()
        self._order(track, reads=[x], writes=[])
        target = self._pinned(torch.zeros(self._size, dtype=torch.int32))
        with track.stream:
            target.copy_(x.tensor, non_blocking=True)
        step = self._touch("downloaded", track, reads=[x])
        event.record(track.stream)
        self._downloads.append((target, x.expected, event, step))

    def _pinned(self, data: Tensor) -> Tensor:
        return data.pin_memory() if self._dev.has("pinned_memory") else data

    def _collect(self) -> None:
        if not self._downloads:
            return
        target, expected, event, (number, count) = self._downloads.pop(0)
        event.synchronize()
        _join(self._host, {number: count})
        wrong = int((target != expected).sum())
        assert not wrong, f"{wrong} of {target.numel()} downloaded elements are wrong"

    def _read(self) -> None:
        """A number, which the host waits for."""
        x = self._pick()
        track, at = self._track_of(x.home.index), self._random.randrange(self._size)
        self._order(track, reads=[x], writes=[])
        with track.stream:
            found = x.tensor[at].item()
        _join(self._host, track.clock)
        self._touch("read", track, reads=[x])
        assert found == x.expected[at].item(), self._why(x, f"element {at} is {found}")

    def _record(self) -> None:
        """A new event, or one that was recorded before."""
        track = self._random.choice(self._tracks)
        old = self._random.randrange(2) == 0
        place = self._random.randrange(len(self._events)) if self._events else -1
        same_device = place >= 0 and self._events[place][0].device == track.stream.device
        again = old and same_device
        event = self._events.pop(place)[0] if again else self._dev.event()
        event.record(track.stream)
        self._events.append((event, dict(track.clock)))

    def _wait(self) -> None:
        track = self._random.choice(self._tracks)
        if not self._events:
            return
        event, clock = self._random.choice(self._events)
        track.stream.wait_event(event)
        _join(track.clock, clock)

    def _ask(self) -> None:
        """What an event or a stream says is over need not be waited for."""
        track = self._random.choice(self._tracks)
        if self._events:
            event, clock = self._random.choice(self._events)
            if event.query():
                _join(self._host, clock)
        if track.stream.query():
            _join(self._host, track.clock)

    def _synchronize(self) -> None:
        track, what = self._random.choice(self._tracks), self._random.randrange(3)
        if what == 0 and self._events:
            event, clock = self._random.choice(self._events)
            event.synchronize()
            _join(self._host, clock)
        elif what == 1:
            track.stream.synchronize()
            _join(self._host, track.clock)
        else:
            self._dev.synchronize(track.index)
            for each in self._tracks:
                if each.index == track.index:
                    _join(self._host, each.clock)

    def _new_stream(self) -> None:
        """In the place of one whose work may go on, and which nobody holds then."""
        track = self._random.choice(self._tracks)
        new = self._dev.stream(track.index)
        new.wait_stream(track.stream)
        track.stream = new

    def _delay(self) -> None:
        track, ms = self._random.choice(self._tracks), self._random.choice((0.5, 2.0, 6.0))
        with track.stream:
            self._dev.delay(ms)

    # ---- results ----

    def _compare(self, value: _Value) -> None:
        self._order(value.home, reads=[value], writes=[])
        with value.home.stream:
            found = value.tensor.cpu()
        wrong = int((found != value.expected).sum())
        assert not wrong, self._why(value, f"{wrong} of {found.numel()} elements are wrong")

    def _why(self, value: _Value, what: str) -> str:
        steps = ", ".join(value.history[-6:])
        return f"{what} on {value.tensor.device}, after: {steps}"


def run_programs(dev: Device, first: int, count: int) -> None:
    """Programs of so many seeds, on one device and on two, in this process."""
    for seed in range(first, first + count):
        _Program(dev, seed, [*dict.fromkeys([0, seed % dev.count])]).run()


#: More programs, for nights: the first seed of so many.
_HUNDREDS = tuple(str(seed) for seed in range(1000, 2000, 100))


@check(
    "program/hundred", "PROG-001", cases=_HUNDREDS, needs=("streams", "record_stream"), breadth=FULL
)
def steps_of_many_programs_are_in_order(dev: Device, case: str) -> None:
    """A hundred programs, on one device or on two, give what their steps give in turn."""
    with restored(dev):
        run_programs(dev, int(case), 100)


@check("program/streams", "PROG-001", cases=SEEDS, needs=("streams", "record_stream"))
def steps_on_streams_of_a_device_are_in_order(dev: Device, case: str) -> None:
    """Steps on three streams give what they give one after another."""
    with restored(dev):
        _Program(dev, int(case), [0]).run()


@check(
    "program/devices", "PROG-002", cases=SEEDS, needs=("streams", "record_stream", "multi_device")
)
def steps_on_streams_of_two_devices_are_in_order(dev: Device, case: str) -> None:
    """Steps on three streams of each of two devices give what they give one after another."""
    with restored(dev):
        _Program(dev, int(case) + 100, [0, dev.count - 1]).run()


@check(
    "program/threads", "PROG-003", cases=SEEDS[:4], needs=("streams", "record_stream", "threads")
)
def programs_of_several_threads_do_not_disturb_each_other(dev: Device, case: str) -> None:
    """Four threads run a program of three streams each at the same time."""

    def run(seed: int) -> None:
        _Program(dev, seed, [seed % dev.count]).run()

    with restored(dev):
        in_threads([partial(run, 4 * int(case) + each + 200) for each in range(4)])


_ADVERSARIAL = """
import pickle, sys
from torch_conformance.authoring.device import Device
from torch_conformance.checks.program.streams import run_programs
descriptor, capabilities = pickle.loads(bytes.fromhex(sys.argv[1]))
run_programs(Device(descriptor, capabilities=capabilities), {first}, {count})
"""


@check("program/schedule", "PROG-006", cases=("1",), needs=("streams", "record_stream"))
def other_schedules_give_the_same(dev: Device, case: str) -> None:
    """In the descriptor's adversarial_env, of a seed, programs give what their steps give."""
    _under_schedule(dev, case)


@check(
    "program/schedules",
    "PROG-006",
    cases=tuple(map(str, range(2, 12))),
    needs=("streams", "record_stream"),
    breadth=FULL,
)
def many_schedules_give_the_same(dev: Device, case: str) -> None:
    """Of every seed, programs give what their steps give."""
    _under_schedule(dev, case)


def _under_schedule(dev: Device, case: str) -> None:
    named = dev.environment("adversarial_env")
    env = {name: value.replace("{seed}", case) for name, value in named.items()}
    given = pickle.dumps((dev.descriptor, dev.capabilities)).hex()
    code = _ADVERSARIAL.format(first=100 * int(case), count=8)
    done = dev.python(code, env=env, args=[given])
    assert done.returncode == 0, why_ended(done)
