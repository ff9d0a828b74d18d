# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of several streams, compared with the same calls one after another on the host.

The program knows which of its calls are in order (vector clocks), and orders two of them where they
share memory, by an event or a wait. So what is in memory does not depend on how fast each call is.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from hal_conformance import kernels
from hal_conformance.abi import Capability, MemcpyKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver, Flag

STEPS = 150
BLOCKS = 5
STREAMS = 4
#: Bytes of each block of a program: on both sides of what drivers treat in another way.
SIZES = (1, 255, 4097, 300_000)
SEEDS = range(12)

#: How many calls of each track are over, by its number.
Clock = dict[int, int]


def _join(clock: Clock, other: Clock) -> None:
    for track, count in other.items():
        clock[track] = max(clock.get(track, 0), count)


class Track:
    """A stream, and which calls are over before its next one."""

    def __init__(self, number: int, device: int, stream: int) -> None:
        self.number, self.device, self.stream = number, device, stream
        self.clock: Clock = {number: 0}

    def step(self) -> tuple[int, int]:
        self.clock[self.number] += 1
        return self.number, self.clock[self.number]


class Block:
    """Memory of a device, what has to be in it, and the calls that touch it."""

    def __init__(self, device: int, address: int) -> None:
        self.device, self.address = device, address
        self.expected = b""
        self.writes: set[tuple[int, int]] = set()
        self.reads: set[tuple[int, int]] = set()


class Raised(NamedTuple):
    """A host function, and the call that it is."""

    flag: Flag
    track: int
    place: int


class Recorded(NamedTuple):
    """An event, and what is over when it completes."""

    event: int
    device: int
    clock: Clock


class Program:
    """One random program; the same for the same seed."""

    def __init__(self, hal: Driver, seed: int, devices: list[int]) -> None:
        self._hal, self._devices, self._random = hal, devices, random.Random(seed)
        self._size = SIZES[seed % len(SIZES)]
        self._pins = Capability.PINNED_MEMORY in hal.capabilities()
        self._host: Clock = {}
        self._events: list[Recorded] = []
        self._flags: list[Raised] = []
        self._tracks = [
            Track(number, device, hal.stream(device))
            for number, device in enumerate(device for device in devices for _ in range(STREAMS))
        ]
        self._blocks = [self._new(device) for device in devices for _ in range(BLOCKS)]

    def run(self) -> None:
        """All calls; then every block and every host function is looked at."""
        steps: dict[Callable[[], None], int] = {
            self._fill: 20,
            self._copy: 20,
            self._write: 10,
            self._record: 10,
            self._wait: 10,
            self._ask: 8,
            self._synchronize: 4,
            self._raise: 10,
            self._renew_block: 2,
            self._renew_stream: 3,
            self._delay: 8,
        }
        for step in self._random.choices(list(steps), list(steps.values()), k=STEPS):
            step()
        for block in self._blocks:
            assert self._contents(block) == block.expected
        for device in self._devices:
            self._hal.ok(self._hal.api.device_synchronize(device))
        assert [raised.flag.times() for raised in self._flags] == [1] * len(self._flags)

    # ---- order ----

    def _track(self, device: int | None = None) -> Track:
        return self._random.choice(
            [track for track in self._tracks if device is None or track.device == device]
        )

    def _order(self, track: Track, *, reads: list[Block], writes: list[Block]) -> None:
        """Let the next call of a track come after those that it has to come after."""
        before = {step for block in [*reads, *writes] for step in block.writes}
        before |= {step for block in writes for step in block.reads}
        for number, count in sorted(before):
            way = self._random.randrange(4)
            if max(track.clock.get(number, 0), self._host.get(number, 0)) < count:
                self._come_after(track, self._tracks[number], way)

    def _come_after(self, track: Track, other: Track, way: int) -> None:
        if way == 0:
            self._hal.synchronize(other.stream)
            self._know(other.clock)
            return
        event = self._hal.event(device=other.device)
        self._hal.record(event, other.stream)
        self._hal.wait(track.stream, event)
        if way == 1:
            self._hal.ok(self._hal.api.event_destroy(event))
        else:
            self._events.append(Recorded(event, other.device, dict(other.clock)))
        _join(track.clock, other.clock)

    def _know(self, clock: Clock) -> None:
        """The host has seen that these calls are over."""
        _join(self._host, clock)
        for raised in self._flags:
            if self._host.get(raised.track, 0) >= raised.place:
                assert raised.flag.times() == 1, "a call was over before a host function in front"

    # ---- calls ----

    def _new(self, device: int) -> Block:
        block = Block(device, self._hal.malloc(self._size, device))
        self._set(block, self._track(device))
        return block

    def _set(self, block: Block, track: Track) -> None:
        value = self._random.randrange(256)
        self._hal.memset(block.address, value, self._size, track.stream)
        block.expected = bytes([value]) * self._size
        block.writes, block.reads = {track.step()}, set()

    def _fill(self) -> None:
        block = self._random.choice(self._blocks)
        track = self._track(block.device)
        self._order(track, reads=[], writes=[block])
        self._set(block, track)

    def _copy(self) -> None:
        """Of a part of a block, within a device or between two."""
        source, target = self._random.sample(self._blocks, 2)
        track = self._track(self._random.choice((source.device, target.device)))
        begin, end = sorted(self._random.randrange(self._size + 1) for _ in range(2))
        self._order(track, reads=[source], writes=[target])
        self._hal.copy(
            target.address + begin,
            source.address + begin,
            end - begin,
            MemcpyKind.DEVICE_TO_DEVICE,
            track.stream,
        )
        old = target.expected
        target.expected = old[:begin] + source.expected[begin:end] + old[end:]
        step = track.step()
        source.reads.add(step)
        target.writes, target.reads = {step}, set()

    def _write(self) -> None:
        block = self._random.choice(self._blocks)
        track, data = self._track(block.device), self._random.randbytes(self._size)
        self._order(track, reads=[], writes=[block])
        if self._pins and self._random.randrange(2):
            host = self._hal.host_malloc(self._size)
            ctypes.memmove(host, data, self._size)
            kind = MemcpyKind.HOST_TO_DEVICE
            self._hal.copy(block.address, host, self._size, kind, track.stream)
        else:
            self._hal.write(block.address, data, track.stream)
        block.expected = data
        block.writes, block.reads = {track.step()}, set()

    def _record(self) -> None:
        """A new event, or one again that was recorded before."""
        track = self._track()
        old = [each for each in self._events if each.device == track.device]
        if old and self._random.randrange(2):
            again = self._random.choice(old)
            self._events.remove(again)
            event = again.event
        else:
            event = self._hal.event(device=track.device)
        self._hal.record(event, track.stream)
        self._events.append(Recorded(event, track.device, dict(track.clock)))

    def _wait(self) -> None:
        track = self._track()
        if self._events:
            recorded = self._random.choice(self._events)
            self._hal.wait(track.stream, recorded.event)
            _join(track.clock, recorded.clock)

    def _ask(self) -> None:
        """What an event or a stream says is over need not be waited for."""
        track = self._track()
        if self._events:
            recorded = self._random.choice(self._events)
            if self._hal.event_query(recorded.event) == Status.OK:
                self._know(recorded.clock)
        if self._hal.query(track.stream) == Status.OK:
            self._know(track.clock)

    def _synchronize(self) -> None:
        track, what = self._track(), self._random.randrange(3)
        if what == 0 and self._events:
            recorded = self._random.choice(self._events)
            self._hal.ok(self._hal.api.event_synchronize(recorded.event))
            self._know(recorded.clock)
        elif what == 1:
            self._hal.synchronize(track.stream)
            self._know(track.clock)
        else:
            self._hal.ok(self._hal.api.device_synchronize(track.device))
            for each in self._tracks:
                if each.device == track.device:
                    self._know(each.clock)

    def _raise(self) -> None:
        track = self._track()
        flag = self._hal.flag(track.stream)
        self._flags.append(Raised(flag, *track.step()))

    def _renew_block(self) -> None:
        """free() waits for the device itself; only other devices have to be waited for."""
        place = self._random.randrange(len(self._blocks))
        block = self._blocks[place]
        for number, count in sorted(block.writes | block.reads):
            track = self._tracks[number]
            if track.device != block.device and self._host.get(number, 0) < count:
                self._hal.synchronize(track.stream)
                self._know(track.clock)
        self._hal.free(block.address)
        self._blocks[place] = self._new(block.device)

    def _renew_stream(self) -> None:
        """Another stream in the place of one whose work goes on."""
        track = self._track()
        event, stream = self._hal.event(device=track.device), self._hal.stream(track.device)
        self._hal.record(event, track.stream)
        self._hal.wait(stream, event)
        self._hal.ok(self._hal.api.stream_destroy(track.stream))
        self._hal.ok(self._hal.api.event_destroy(event))
        track.stream = stream

    def _delay(self) -> None:
        track = self._track()
        arguments = kernels.delay(self._random.choice((0.1, 1.0, 3.0)))
        self._hal.launch("delay", arguments, track.stream, track.device)
        track.step()

    def _contents(self, block: Block) -> bytes:
        track = self._track(block.device)
        self._order(track, reads=[block], writes=[])
        return self._hal.read(block.address, self._size, track.stream)


@covers("HAL-098")
@pytest.mark.parametrize("seed", SEEDS)
def test_calls_on_several_streams_are_in_order(hal: Driver, seed: int) -> None:
    Program(hal, seed, [0]).run()


@covers("HAL-098", needs=("peer",))
@pytest.mark.parametrize("seed", SEEDS)
def test_calls_on_streams_of_two_devices_are_in_order(hal: Driver, seed: int) -> None:
    Program(hal, seed + 100, [0, 1]).run()


@covers("HAL-098", "HAL-140")
@pytest.mark.parametrize("seed", range(4))
def test_programs_of_several_threads_do_not_disturb_each_other(hal: Driver, seed: int) -> None:
    devices = hal.count()
    programs = [Program(hal, 4 * seed + each + 200, [each % devices]) for each in range(4)]
    with ThreadPoolExecutor(len(programs)) as pool:
        list(pool.map(Program.run, programs))
