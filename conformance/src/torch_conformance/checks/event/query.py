# SPDX-License-Identifier: BSD-3-Clause
"""query() tells whether the recorded work is done, and never waits."""

from __future__ import annotations

from torch_conformance.authoring.api import Device, becomes_true, check, while_held
from torch_conformance.checks.event._events import DELAYED, recorded_late

#: name -> options of an event whose work is pending.
_PENDING = {"pending": {}, "blocking": {"blocking": True}, "timing": {"timing": True}}


@check("event/query", "EVENT-003", cases=_PENDING, needs=DELAYED)
def query_tells_that_work_is_pending(dev: Device, case: str) -> None:
    """query() is False until the recorded work is done, then True, and never waits."""
    event, stream = dev.event(**_PENDING[case]), dev.stream()

    def look() -> bool:
        event.record(stream)
        return event.query()

    with stream:
        assert while_held(dev, look) is False, "the event claims to be done before its work"
    event.synchronize()
    assert becomes_true(event.query), "query() never becomes True"


@check("event/query:done_after_synchronize", "EVENT-003", needs=DELAYED)
def query_tells_that_a_synchronized_stream_is_done(dev: Device) -> None:
    """query() is True once the host has waited for the event's stream."""
    event, stream = recorded_late(dev)
    stream.synchronize()
    assert event.query(), "query() is False though the stream has been waited for"


@check("event/query:done_by_itself", "EVENT-003", needs=DELAYED)
def query_tells_that_work_has_ended(dev: Device) -> None:
    """query() becomes True without any wait for the event or for its stream."""
    event, _ = recorded_late(dev)
    assert becomes_true(event.query), "query() never becomes True"


@check("event/query:idle_stream", "EVENT-003", needs=DELAYED)
def an_event_of_an_idle_stream_completes(dev: Device) -> None:
    """query() becomes True for an event that was recorded on a stream without work."""
    event, stream = dev.event(), dev.stream()
    event.record(stream)
    assert becomes_true(event.query), "an event on an idle stream never completes"
