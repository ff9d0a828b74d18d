# SPDX-License-Identifier: BSD-3-Clause
"""A thread that waits for the device holds up no other thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import (
    Device,
    check,
    while_held,
)

N = 2000


_BLOCKING: dict[str, Callable[[Device, torch.Tensor, torch.Stream], Any]] = {
    "stream_synchronize": lambda dev, x, stream: stream.synchronize(),
    "device_synchronize": lambda dev, x, stream: torch.accelerator.synchronize(0),
    "module_synchronize": lambda dev, x, stream: dev.module.synchronize(0),
    "event_synchronize": lambda dev, x, stream: stream.record_event().synchronize(),
    "item": lambda dev, x, stream: x[0].item(),
    "to_cpu": lambda dev, x, stream: x.cpu(),
}


@check(
    "thread/interpreter_lock",
    "THREAD-007",
    cases=tuple(_BLOCKING),
    needs=("threads", "streams", "events", "delay"),
)
def other_threads_run_while_one_waits(dev: Device, case: str) -> None:
    """A thread that waits for the device lets other Python threads run."""
    x = torch.ones(N, device=dev.device(0))
    stream = dev.stream(0)
    dev.synchronize()
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.002):
            ticks += 1

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        for ms in (150.0, 1000.0):  # more time where the machine is busy
            with stream:
                dev.delay(ms)
                before = ticks
                _BLOCKING[case](dev, x, stream)
                seen = ticks - before
            if seen >= 5:
                return
    finally:
        stop.set()
        ticker.join()
    raise AssertionError(f"another thread ran {seen} times while this one waited a second")


def _copy_in(dev: Device, stream: torch.Stream, x: torch.Tensor) -> None:
    x.copy_(torch.ones(N))


#: What a thread does on a stream of its own that nobody holds up, one after the other.
_MEANWHILE: dict[str, Callable[[Device, torch.Stream, torch.Tensor], object]] = {
    "query": lambda dev, stream, x: stream.query(),
    "launch": lambda dev, stream, x: x.fill_(1),
    "record": lambda dev, stream, x: stream.record_event().query(),
    "wait": lambda dev, stream, x: stream.synchronize(),
    "allocate": lambda dev, stream, x: torch.empty(_NEW, dtype=torch.uint8, device=x.device),
    "free": lambda dev, stream, x: x.clone(),
    "read": lambda dev, stream, x: x[0].item(),
    "copy_in": _copy_in,
    "wait_event": lambda dev, stream, x: stream.record_event().synchronize(),
    "create": lambda dev, stream, x: dev.stream(0),
}
#: Bytes that an allocator does not have at hand.
_NEW = 48 << 20


@check(
    "thread/beside_a_wait",
    "THREAD-018",
    cases=tuple(_BLOCKING),
    needs=("threads", "streams", "events", "delay"),
)
def a_waiting_thread_holds_up_no_other(dev: Device, case: str) -> None:
    """While a thread waits for a busy stream, another one queues, allocates, asks and waits."""
    held, own = dev.stream(0), dev.stream(0)
    x, y = (torch.ones(N, device=dev.device(0)) for _ in range(2))
    dev.synchronize()
    waiting: list[threading.Thread] = []

    def wait(begins: threading.Event) -> None:
        with held:
            begins.set()
            _BLOCKING[case](dev, y, held)

    def look() -> list[str]:
        begins = threading.Event()
        waiting.append(threading.Thread(target=wait, args=(begins,), daemon=True))
        waiting[-1].start()
        begins.wait(30)
        time.sleep(0.005)  # by now it waits
        late = []
        with own:
            for name, work in _MEANWHILE.items():
                work(dev, own, x)
                late += [name] if held.query() else []
        return late

    with held:
        late = while_held(dev, look)
    for thread in waiting:
        thread.join(30)
    assert not late, f"{late[0]} returned only after the stream that another thread waits for"
