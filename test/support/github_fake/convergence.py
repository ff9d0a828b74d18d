# SPDX-License-Identifier: BSD-3-Clause
"""Killed at any point and run again, a program comes to the same end."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable

from github_fake.server import GitHubFake


def converges(
    fake: GitHubFake,
    run: Callable[[], object],
    state: Callable[[], object] | None = None,
    reset: Callable[[], object] = lambda: None,
) -> None:
    """`run` is killed around each of its calls in turn, and run again to its end.

    Each time `state` (by default all that the fake's people see) must be that of a run that nobody
    disturbed, and so it must be after a second such run. `run` happens in children of this process,
    so it changes nothing here but through the fake and the disk; `reset` undoes the latter.
    Import what `run` needs beforehand, or each child does.
    """
    state = state or fake.state
    start = fake.checkpoint()
    fake.calls.clear()
    reset()
    _end(fake, run)
    calls, expected = list(fake.calls), state()
    assert any(call.writes for call in calls), "the run changes nothing: there is nothing to test"
    _end(fake, run)
    assert state() == expected, "a second run changes what the first one did"
    for number, call in enumerate(calls, 1):
        # Before a call that only reads, all is as it was after the one before it.
        for before in (False, True) if call.writes else (False,):
            fake.restore(start)
            reset()
            status, _ = _child(run, _killing(fake, number, before))
            when = f"killed {'before' if before else 'after'} call {number} ({call.operation})"
            assert status == -signal.SIGKILL, f"{when}: it was not, it ended with {status}"
            _end(fake, run, when)
            assert state() == expected, f"{when}, another run comes to another end"


def _end(fake: GitHubFake, run: Callable[[], object], when: str = "undisturbed") -> None:
    status, said = _child(run, lambda pid: None)
    assert status == 0, f"{when}: ended with {status}\n{said}"


def _child(run: Callable[[], object], prepare: Callable[[int], None]) -> tuple[int, str]:
    """Exit status, negative for a signal, and the traceback."""
    gate, open_gate = os.pipe()
    said, say = os.pipe()
    child = os.fork()
    if not child:
        os.close(open_gate)
        os.read(gate, 1)  # until the parent is prepared
        _run(run, say)
    for end in (gate, say):
        os.close(end)
    prepare(child)
    os.close(open_gate)
    with os.fdopen(said, errors="replace") as reader:
        text = reader.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), text


def _run(run: Callable[[], object], say: int) -> None:
    """Never returns: nothing of the test that the child was forked from may go on in it."""
    gc.freeze()  # to look through all that the parent has would copy it
    status = 0
    try:
        run()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        status = 1
        os.write(say, traceback.format_exc().encode()[-60_000:])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _killing(fake: GitHubFake, number: int, before: bool) -> Callable[[int], None]:
    return lambda pid: fake.kill(pid, number, before=before)
