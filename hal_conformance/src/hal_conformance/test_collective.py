# SPDX-License-Identifier: BSD-3-Clause
"""The extension "collective", on one rank: what its calls compute, and how they are queued."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p

import pytest

from hal_conformance import abi
from hal_conformance.abi import Reduction, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver
from hal_conformance.kernels import DType

COUNT = 100
SIZE = 4 * COUNT
NUMBERS = struct.pack(f"{COUNT}f", *(i - 40.5 for i in range(COUNT)))
BEFORE = b"\7" * SIZE


def new_id(hal: Driver) -> abi.CollectiveId:
    made = abi.CollectiveId()
    hal.ok(hal.collective().create_id(byref(made)))
    return made


@contextmanager
def alone(hal: Driver) -> Iterator[int]:
    """A communicator of one rank, on the first device."""
    out = c_void_p()
    hal.ok(hal.collective().init(0, byref(new_id(hal)), 0, 1, 30_000, byref(out)))
    assert out.value, "init returned OK and NULL"
    yield out.value
    hal.ok(hal.collective().destroy(out.value))


Call = Callable[[abi.CollectiveApi, int, int, int, int], int]


def all_reduce(reduction: Reduction) -> Call:
    return lambda api, comm, send, recv, stream: api.all_reduce(
        comm, send, recv, COUNT, DType.FLOAT32, reduction, stream
    )


#: A name -> the call, from one buffer to another, on a stream.
CALLS: dict[str, Call] = {
    **{f"all_reduce_{reduction.name.lower()}": all_reduce(reduction) for reduction in Reduction},
    "broadcast": lambda api, comm, send, recv, stream: api.broadcast(
        comm, send, recv, SIZE, DType.UINT8, 0, stream
    ),
    "reduce": lambda api, comm, send, recv, stream: api.reduce(
        comm, send, recv, COUNT, DType.FLOAT32, Reduction.SUM, 0, stream
    ),
    "all_gather": lambda api, comm, send, recv, stream: api.all_gather(
        comm, send, recv, COUNT, DType.FLOAT32, stream
    ),
    "reduce_scatter": lambda api, comm, send, recv, stream: api.reduce_scatter(
        comm, send, recv, COUNT, DType.FLOAT32, Reduction.SUM, stream
    ),
}


@covers("HAL-190")
def test_the_collective_table_is_whole(hal: Driver) -> None:
    api = hal.collective()
    assert api.version >= abi.COLLECTIVE_VERSION
    assert api.struct_size >= ctypes.sizeof(abi.CollectiveApi)
    assert [name for name in abi.COLLECTIVE_ENTRIES if not getattr(api, name)] == []


@covers("HAL-194")
def test_each_device_has_an_identity_of_its_own(hal: Driver) -> None:
    def identity(device: int) -> bytes:
        made = abi.DeviceIdentity()
        hal.ok(hal.collective().identify(device, byref(made)))
        return bytes(made)

    found = [identity(device) for device in range(hal.count())]
    assert len(set(found)) == len(found)
    assert found == [identity(device) for device in range(hal.count())]


@covers("HAL-190")
@pytest.mark.parametrize("in_place", [False, True], ids=["apart", "in_place"])
@pytest.mark.parametrize("call", CALLS)
def test_a_collective_of_one_rank_gives_what_it_sends(
    hal: Driver, call: str, in_place: bool
) -> None:
    with alone(hal) as communicator:
        send, stream = hal.malloc(SIZE), hal.stream()
        recv = send if in_place else hal.malloc(SIZE)
        hal.memset(recv, 7, SIZE, stream)
        hal.write(send, NUMBERS, stream)
        hal.ok(CALLS[call](hal.collective(), communicator, send, recv, stream))
        assert hal.read(recv, SIZE, stream) == NUMBERS
        assert hal.read(send, SIZE, stream) == NUMBERS
        hal.ok(hal.collective().query(communicator))


@covers("HAL-190")
def test_a_group_sends_and_receives_at_once(hal: Driver) -> None:
    api = hal.collective()
    with alone(hal) as communicator:
        send, recv, stream = hal.malloc(SIZE), hal.malloc(SIZE), hal.stream()
        hal.write(send, NUMBERS, stream)
        hal.ok(api.group_begin(communicator))
        for part in (0, SIZE // 2):
            arguments = SIZE // 2, DType.UINT8, 0, stream
            hal.ok(api.send(communicator, send + part, *arguments))
            hal.ok(api.recv(communicator, recv + part, *arguments))
        hal.ok(api.group_end(communicator))
        assert hal.read(recv, SIZE, stream) == NUMBERS
        hal.ok(api.group_begin(communicator))
        hal.ok(api.group_end(communicator))


@covers("HAL-190")
def test_a_collective_of_no_elements_changes_nothing(hal: Driver) -> None:
    with alone(hal) as communicator:
        recv, stream = hal.malloc(SIZE), hal.stream()
        hal.memset(recv, 7, SIZE, stream)
        hal.ok(
            hal.collective().all_reduce(
                communicator, recv, recv, 0, DType.FLOAT32, Reduction.SUM, stream
            )
        )
        assert hal.read(recv, SIZE, stream) == BEFORE


@covers("HAL-191")
@pytest.mark.parametrize("call", CALLS)
def test_a_collective_waits_for_what_its_stream_holds(hal: Driver, call: str) -> None:
    with alone(hal) as communicator:
        send, recv, stream, other = hal.malloc(SIZE), hal.malloc(SIZE), hal.stream(), hal.stream()
        hal.memset(send, 0, SIZE, stream)
        hal.memset(recv, 7, SIZE, stream)
        # So that nothing is left to be set up by the call that is watched.
        hal.ok(CALLS[call](hal.collective(), communicator, send, send, stream))
        hal.synchronize(stream)
        source = hal.keep(ctypes.create_string_buffer(NUMBERS, SIZE))
        pinned = hal.host_malloc(SIZE)
        ctypes.memmove(pinned, source, SIZE)
        with hal.held(stream):
            hal.copy(send, pinned, SIZE, abi.MemcpyKind.HOST_TO_DEVICE, stream)
            hal.ok(CALLS[call](hal.collective(), communicator, send, recv, stream))
            assert hal.query(stream) is Status.NOT_READY
            assert hal.read(recv, SIZE, other) == BEFORE
        assert hal.read(recv, SIZE, stream) == NUMBERS
        hal.ok(hal.api.host_free(pinned))


@covers("HAL-192")
def test_after_abort_every_call_is_refused_and_streams_go_on(hal: Driver) -> None:
    api = hal.collective()
    with alone(hal) as communicator:
        block, stream = hal.malloc(SIZE), hal.stream()
        hal.ok(api.abort(communicator))
        hal.ok(api.abort(communicator))
        assert api.query(communicator) == Status.INTERNAL
        assert "abort" in hal.message()
        for call in CALLS.values():
            assert call(api, communicator, block, block, stream) == Status.INTERNAL
        hal.memset(block, 7, SIZE, stream)
        assert hal.read(block, SIZE, stream) == BEFORE


@covers("HAL-193")
def test_init_gives_up_at_its_timeout(hal: Driver) -> None:
    out = c_void_p(42)
    begun = time.monotonic()
    status = hal.collective().init(0, byref(new_id(hal)), 0, 2, 300, byref(out))
    assert (status, out.value) == (Status.INTERNAL, 42)
    assert 0.25 < time.monotonic() - begun < 30
