# SPDX-License-Identifier: BSD-3-Clause
"""The extension "ipc": memory that two processes use."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p
from threading import Thread

from hal_conformance import abi
from hal_conformance.abi import MemoryKind, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver

SIZE = 12_345  # not a multiple of a page
LARGE = 16 << 20
PATTERN = bytes(range(256)) * (SIZE // 256 + 1)
REFUSED = Status.INVALID_ARGUMENT


def export(hal: Driver, block: int) -> abi.IpcMemoryHandle:
    handle = abi.IpcMemoryHandle()
    hal.ok(hal.ipc().export_memory(block, byref(handle)))
    return handle


def opened(hal: Driver, handle: abi.IpcMemoryHandle, device: int = 0) -> int:
    out = c_void_p()
    hal.ok(hal.ipc().open_memory(device, byref(handle), byref(out)))
    assert out.value, "open_memory returned OK and NULL"
    return out.value


def refusal(hal: Driver, handle: abi.IpcMemoryHandle, device: int = 0) -> int:
    """The status of opening the handle, which leaves the result as it was."""
    out = c_void_p(42)
    status = int(hal.ipc().open_memory(device, byref(handle), byref(out)))
    assert out.value == 42
    return status


class Exporter:
    """Another process with a block of the first device that holds PATTERN."""

    def __init__(self, hal: Driver) -> None:
        self._hal = hal
        answers, self._answers = os.pipe()
        self._orders, orders = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(answers)
            os.close(orders)
            self._be_child()
        os.close(self._answers)
        os.close(self._orders)
        self._answers, self._orders = answers, orders
        self.handle = abi.IpcMemoryHandle.from_buffer_copy(self._hear(64))

    def _be_child(self) -> None:
        try:
            hal = self._hal
            hal.ok(hal.api.init())
            block, stream = hal.malloc(SIZE), hal.stream()
            hal.write(block, PATTERN[:SIZE], stream)
            hal.synchronize(stream)
            os.write(self._answers, bytes(export(hal, block)))
            while order := os.read(self._orders, 1):
                if order == b"r":
                    os.write(self._answers, hal.read(block, SIZE, stream))
                elif order == b"w":
                    hal.memset(block, 7, SIZE, stream)
                    hal.synchronize(stream)
                elif order == b"f":
                    hal.free(block)
                os.write(self._answers, b".")
            os._exit(0)
        finally:
            os._exit(1)

    def _hear(self, size: int) -> bytes:
        heard = b""
        while len(heard) < size:
            part = os.read(self._answers, size - len(heard))
            assert part, "the other process has ended"
            heard += part
        return heard

    def _order(self, order: bytes, size: int = 0) -> bytes:
        os.write(self._orders, order)
        answer = self._hear(size)
        assert self._hear(1) == b"."
        return answer

    def read(self) -> bytes:
        """What its block holds."""
        return self._order(b"r", SIZE)

    def write_sevens(self) -> None:
        self._order(b"w")

    def free(self) -> None:
        self._order(b"f")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def close(self) -> int:
        """Let it end, unless it was killed. Its exit status."""
        os.close(self._orders)
        os.close(self._answers)
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:
            return 0


@contextmanager
def exporter(hal: Driver) -> Iterator[Exporter]:
    """An Exporter. The driver must not have been used yet: a process may fork until then."""
    other = Exporter(hal)
    yield other
    assert other.close() == 0


@covers("HAL-180")
def test_the_ipc_table_is_whole(hal: Driver) -> None:
    ipc = hal.ipc()
    assert ipc.version >= abi.IPC_VERSION
    assert ipc.struct_size >= ctypes.sizeof(abi.IpcApi)
    assert [name for name in abi.IPC_ENTRIES if not getattr(ipc, name)] == []


@covers("HAL-180")
def test_two_processes_see_each_others_writes(hal: Driver) -> None:
    with exporter(hal) as other:
        block, stream = opened(hal, other.handle), hal.stream()
        assert hal.read(block, SIZE, stream) == PATTERN[:SIZE]
        hal.memset(block + 100, 3, 50, stream)
        hal.synchronize(stream)
        assert other.read() == PATTERN[:100] + b"\3" * 50 + PATTERN[150:SIZE]
        other.write_sevens()
        assert hal.read(block, SIZE, stream) == b"\7" * SIZE
        hal.ok(hal.ipc().close_memory(block))


@covers("HAL-181")
def test_an_exported_block_stays_as_it_is(hal: Driver) -> None:
    block, stream = hal.malloc(SIZE), hal.stream()
    hal.write(block, PATTERN[:SIZE], stream)
    hal.synchronize(stream)
    before = hal.attributes(block)
    first, second = export(hal, block), export(hal, block)
    after = hal.attributes(block)
    assert bytes(first) == bytes(second)
    assert (after.base, after.size, after.device) == (before.base, before.size, before.device)
    assert hal.read(block, SIZE, stream) == PATTERN[:SIZE]
    hal.free(block)


@covers("HAL-181")
def test_a_block_may_be_exported_while_work_on_it_is_queued(hal: Driver) -> None:
    block, stream = hal.malloc(SIZE), hal.stream()
    hal.write(block, PATTERN[:SIZE], stream)
    hal.synchronize(stream)
    for value in range(50):
        hal.memset(block, value, SIZE, stream)
    export(hal, block)
    hal.memset(block + 1, 99, 10, stream)
    assert hal.read(block, SIZE, stream) == bytes([49]) + bytes([99]) * 10 + bytes([49]) * (
        SIZE - 11
    )


@covers("HAL-181")
def test_work_of_all_streams_goes_on_while_a_block_is_exported(hal: Driver) -> None:
    """A block is exported again and again while two threads wait for streams of their own."""
    streams = [hal.stream() for _ in range(2)]
    blocks, shared = [hal.malloc(LARGE) for _ in streams], hal.malloc(SIZE)

    def work(stream: int, block: int) -> None:
        for value in range(100):
            hal.memset(block, value, LARGE, stream)
        hal.synchronize(stream)

    pairs = list(zip(streams, blocks, strict=True))
    workers = [Thread(target=work, args=pair, daemon=True) for pair in pairs]

    def export_meanwhile() -> None:
        while any(worker.is_alive() for worker in workers):
            export(hal, shared)

    exporter = Thread(target=export_meanwhile, daemon=True)
    for thread in (*workers, exporter):
        thread.start()
    for thread in (*workers, exporter):
        thread.join(10)
        assert not thread.is_alive(), "work, or an export, does not end"
    for stream, block in pairs:
        assert hal.read(block + LARGE - SIZE, SIZE, stream) == bytes([99]) * SIZE


@covers("HAL-181")
def test_blocks_have_handles_of_their_own(hal: Driver) -> None:
    blocks = [hal.malloc(SIZE) for _ in range(3)]
    assert len({bytes(export(hal, block)) for block in blocks}) == 3


@covers("HAL-182")
def test_opened_memory_is_device_memory_of_the_blocks_size(hal: Driver) -> None:
    with exporter(hal) as other:
        block = opened(hal, other.handle)
        for address in (block, block + SIZE - 1):
            where = hal.attributes(address)
            assert (where.kind, where.device) == (MemoryKind.DEVICE, 0)
            assert (where.base, where.size) == (block, SIZE)


@covers("HAL-182")
def test_opened_memory_stays_when_the_other_process_frees_the_block(hal: Driver) -> None:
    with exporter(hal) as other:
        block = opened(hal, other.handle)
        other.free()
        assert hal.read(block, SIZE, hal.stream()) == PATTERN[:SIZE]
        hal.ok(hal.ipc().close_memory(block))


@covers("HAL-182")
def test_opened_memory_stays_when_the_other_process_is_killed(hal: Driver) -> None:
    with exporter(hal) as other:
        block, stream = opened(hal, other.handle), hal.stream()
        other.kill()
        assert hal.read(block, SIZE, stream) == PATTERN[:SIZE]
        hal.memset(block, 5, SIZE, stream)
        assert hal.read(block, SIZE, stream) == b"\5" * SIZE
        hal.ok(hal.ipc().close_memory(block))


@covers("HAL-183")
def test_the_handle_of_a_freed_block_is_refused(hal: Driver) -> None:
    with exporter(hal) as other:
        other.free()
        assert refusal(hal, other.handle) == REFUSED


@covers("HAL-183")
def test_the_handle_of_a_process_that_has_ended_is_refused(hal: Driver) -> None:
    with exporter(hal) as other:
        other.kill()
        assert refusal(hal, other.handle) == REFUSED


@covers("HAL-183")
def test_the_exporting_process_itself_is_refused(hal: Driver) -> None:
    assert refusal(hal, export(hal, hal.malloc(SIZE))) == REFUSED


@covers("HAL-183")
def test_a_block_is_opened_once_at_a_time(hal: Driver) -> None:
    with exporter(hal) as other:
        block = opened(hal, other.handle)
        assert refusal(hal, other.handle) == REFUSED
        assert hal.read(block, SIZE, hal.stream()) == PATTERN[:SIZE]


@covers("HAL-183", needs=("multi_device",))
def test_the_handle_of_another_devices_block_is_refused(hal: Driver) -> None:
    with exporter(hal) as other:
        assert refusal(hal, other.handle, device=1) == REFUSED


@covers("HAL-184", needs=("host_func",))
def test_closing_waits_for_work_on_the_memory(hal: Driver) -> None:
    with exporter(hal) as other:
        block, stream = opened(hal, other.handle), hal.stream()
        for value in range(100):
            hal.memset(block, value, SIZE, stream)
        flag = hal.flag(stream)
        hal.ok(hal.ipc().close_memory(block))
        assert flag.times() == 1
        assert hal.attributes(block).kind == MemoryKind.UNREGISTERED
        assert other.read() == bytes([99]) * SIZE


@covers("HAL-184")
def test_a_closed_block_can_be_opened_again(hal: Driver) -> None:
    with exporter(hal) as other:
        for _ in range(3):
            block = opened(hal, other.handle)
            assert hal.read(block, SIZE, hal.stream()) == PATTERN[:SIZE]
            hal.ok(hal.ipc().close_memory(block))
        hal.ok(hal.ipc().close_memory(None))
