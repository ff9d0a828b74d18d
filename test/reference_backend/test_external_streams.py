# SPDX-License-Identifier: BSD-3-Clause
"""Streams that another library made. The library is played by the HAL suite's client, which makes
and holds streams of the same loaded driver."""

from __future__ import annotations

import pytest
from interpreter import Python

PRELUDE = """
import ctypes, threading, torch, torch_puone
from torch_puone import ExternalStream
from hal_conformance.driver import Driver

library = Driver(torch.puone.driver_info()["path"])
theirs = library.stream(1)
native = library.native(theirs)
"""


def succeeds(python: Python, code: str) -> None:
    done = python(PRELUDE + code, env={"PUONE_DRIVER": "sim"})
    assert done.returncode == 0, done.stderr


def test_work_on_either_side_runs_in_one_order(python: Python) -> None:
    succeeds(
        python,
        """
stream = ExternalStream(native, "puone:1")
assert stream.device == torch.device("puone", 1) and isinstance(stream, torch.puone.Stream)
with library.held(theirs), torch.puone.stream(stream):
    assert torch.puone.current_stream() == stream
    x = torch.full((4,), 3.0, device="puone:1")
    block = x.data_ptr()
    event = stream.record_event()
    assert not stream.query() and not event.query()
event.synchronize()
assert library.read(block, 16, theirs) == bytes(torch.full((4,), 3.0).numpy())
x.record_stream(stream)
assert x.tolist() == [3.0] * 4
""",
    )


def test_a_handle_is_one_stream_however_often_it_is_wrapped(python: Python) -> None:
    succeeds(
        python,
        """
found = []
def wrap(): found.append(ExternalStream(native, 1))
threads = [threading.Thread(target=wrap) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(set(found)) == 1
with torch.puone.device(1):
    assert torch.puone.get_stream_from_external(native) == found[0]
assert ExternalStream(library.native(library.stream(1)), 1) != found[0]
assert found[0] != torch.puone.default_stream(1) and found[0].priority == 0
""",
    )


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ("ExternalStream(0, 1)", "RuntimeError", "stream_from_native"),
        ("ExternalStream(native, 0)", "RuntimeError", "stream_from_native"),
        ("ExternalStream(-1, 1)", "TypeError", "native"),
        (
            "torch.puone.Stream(stream_id=4000, device_index=1, device_type=20).query()",
            "RuntimeError",
            "not a puone stream id: 4000",
        ),
    ],
)
def test_what_is_no_stream_of_the_device_is_refused(
    python: Python, wrong: str, error: str, says: str
) -> None:
    succeeds(
        python,
        f"""
try:
    {wrong}
except {error} as refused:
    assert {says!r} in str(refused), refused
else:
    raise AssertionError("accepted")
torch.ones(1, device="puone:1").tolist()
""",
    )
