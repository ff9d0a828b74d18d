# SPDX-License-Identifier: BSD-3-Clause
"""Devices: count, properties, memory information, synchronisation, peers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_int32, c_uint64, c_void_p
from typing import Any

import pytest

from hal_conformance import abi
from hal_conformance.abi import Capability, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver

BAD_INDICES = ("minus_one", "count", "large", "int_max", "int_min")


def on_new_thread(call: Callable[[], int]) -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def _bad_index(hal: Driver, which: str) -> int:
    values = (-1, hal.count(), 100 + hal.count(), 2**31 - 1, -(2**31))
    return values[BAD_INDICES.index(which)]


@covers("HAL-020")
def test_device_count_is_one_number_for_every_thread(hal: Driver) -> None:
    count = hal.count()
    assert count >= 0
    assert on_new_thread(hal.count) == count
    assert hal.count() == count


@covers("HAL-023", needs=("validation",))
@pytest.mark.parametrize("which", BAD_INDICES)
def test_an_index_out_of_range_is_refused_everywhere(hal: Driver, which: str) -> None:
    index = _bad_index(hal, which)
    properties, free, total, out = abi.DeviceProperties(), c_uint64(), c_uint64(), c_int32()
    made, low, high = c_void_p(0x5A5A), c_int32(), c_int32()
    arguments: dict[str, tuple[Any, ...]] = {
        "device_properties": (index, byref(properties)),
        "device_memory_info": (index, byref(free), byref(total)),
        "device_synchronize": (index,),
        "device_can_access_peer": (index, index, byref(out)),
        "stream_priority_range": (index, byref(low), byref(high)),
        "malloc": (index, 256, byref(made)),
        "stream_create": (index, 0, byref(made)),
        "event_create": (index, 0, byref(made)),
        "stream_from_native": (index, 1, byref(made)),
    }
    there = [entry for entry in arguments if hal.has_entry(entry)]
    answers = {entry: getattr(hal.api, entry)(*arguments[entry]) for entry in there}
    if hal.count() and "device_can_access_peer" in there:
        answers["peer"] = hal.api.device_can_access_peer(0, index, byref(out))
    assert answers == dict.fromkeys(answers, Status.INVALID_DEVICE)
    assert made.value == 0x5A5A


@covers("HAL-024")
def test_properties_are_usable_numbers(hal: Driver) -> None:
    for device in range(hal.count()):
        properties = hal.properties(device)
        assert properties.name
        assert properties.total_memory > 0
        assert properties.multiprocessor_count >= 1
        assert properties.warp_size >= 1
        alignment = properties.memory_alignment
        assert alignment >= 256
        assert alignment & (alignment - 1) == 0


def _large_block(hal: Driver, device: int = 0) -> int:
    """A size that no rounding hides and every device has room for."""
    return min(64 << 20, hal.memory_info(device)[0] // 4)


@covers("HAL-025")
def test_memory_information_follows_an_allocation(hal: Driver) -> None:
    size = _large_block(hal)
    free, total = hal.memory_info()
    assert 0 < free <= total
    block = hal.malloc(size)
    assert hal.memory_info()[0] <= free - size
    assert hal.memory_info()[1] == total
    hal.free(block)
    assert hal.memory_info()[0] >= free


@covers("HAL-025", needs=("multi_device",))
def test_memory_information_is_per_device(hal: Driver) -> None:
    size = _large_block(hal, 1)
    before = [hal.memory_info(device)[0] for device in (0, 1)]
    hal.malloc(size, device=1)
    after = [hal.memory_info(device)[0] for device in (0, 1)]
    assert after[0] == before[0]
    assert after[1] <= before[1] - size


@covers("HAL-026")
def test_device_synchronize_waits_for_every_stream(hal: Driver) -> None:
    streams = [hal.stream() for _ in range(4)]
    for held in streams:
        with ThreadPoolExecutor(1) as pool:
            with hal.held(held):
                flags = [hal.flag(stream) for stream in streams]
                waiting = pool.submit(hal.api.device_synchronize, 0)
                time.sleep(0.03)
                assert not waiting.done(), "device_synchronize returned while work was held"
            assert waiting.result() == Status.OK
        assert [flag.times() for flag in flags] == [1] * 4


@covers("HAL-026")
def test_device_synchronize_of_an_idle_device_returns(hal: Driver) -> None:
    for device in range(hal.count()):
        hal.ok(hal.api.device_synchronize(device))


@covers("HAL-026")
def test_device_synchronize_waits_for_the_last_device_too(hal: Driver) -> None:
    last = hal.count() - 1
    stream = hal.stream(last)
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            flag = hal.flag(stream)
            waiting = pool.submit(hal.api.device_synchronize, last)
            time.sleep(0.03)
            assert not waiting.done()
        assert waiting.result() == Status.OK
    assert flag.times() == 1


@covers("HAL-027")
def test_device_synchronize_leaves_other_devices_alone(hal: Driver) -> None:
    with hal.held(hal.stream(device=1)):
        hal.ok(hal.api.device_synchronize(0))
    with hal.held(hal.stream(device=0)):
        hal.ok(hal.api.device_synchronize(1))


@covers("HAL-028")
def test_the_priority_range_holds_zero_and_agrees_with_the_capability(hal: Driver) -> None:
    least, greatest = hal.priority_range()
    assert least >= 0 >= greatest
    assert (least != greatest) == (Capability.STREAM_PRIORITIES in hal.capabilities())


@covers("HAL-029")
def test_a_device_is_its_own_peer(hal: Driver) -> None:
    for device in range(hal.count()):
        assert hal.can_access_peer(device, device)


@covers("HAL-029", needs=("multi_device",))
def test_peers_agree_with_the_capability(hal: Driver) -> None:
    peers = any(hal.can_access_peer(a, b) for a in range(2) for b in range(2) if a != b)
    if Capability.PEER_ACCESS not in hal.capabilities():
        assert not peers
