# SPDX-License-Identifier: BSD-3-Clause
"""Whether a driver queues work at all: most tests of streams and events need it.

A driver that runs host functions on the calling thread would hang in each test that holds a stream,
until the test's deadline. So this is found out once, in a child process, before the first test.
"""

from __future__ import annotations

import threading
from pathlib import Path

from hal_conformance import abi
from hal_conformance.abi import Capability, Status
from hal_conformance.driver import Driver
from hal_conformance.process import run_in_child

SECONDS = 5.0
NEEDED = Capability.STREAMS | Capability.HOST_FUNC


def runs_at_once(path: Path) -> bool:
    """Whether the driver runs a host function on the thread that queues it.

    A driver that crashes or hangs here is left to the tests.
    """
    return run_in_child(lambda: b"%d" % _runs_at_once(path), SECONDS).payload == b"1"


def _runs_at_once(path: Path) -> bool:
    driver = Driver(path)
    if NEEDED not in driver.capabilities() or driver.api.init() != Status.OK or not driver.count():
        return False
    threads: list[int] = []
    callback = abi.HostFunc(lambda _: threads.append(threading.get_native_id()))
    stream = driver.stream()
    driver.ok(driver.api.stream_host_func(stream, callback, None))
    driver.synchronize(stream)
    return threading.get_native_id() in threads
