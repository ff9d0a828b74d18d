# SPDX-License-Identifier: BSD-3-Clause
"""Forked children with a deadline: a driver that crashes or hangs spoils one test, not the run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
FAILED = 70  # exit status of a child whose work raised


@dataclass(frozen=True)
class Ending:
    """How a child ended, and what it sent back before that."""

    code: int  # exit status; -N when signal N ended it
    payload: bytes
    timed_out: bool = False

    def __str__(self) -> str:
        if self.timed_out:
            return "timeout"
        if self.code < 0:
            return f"crash: {signal.Signals(-self.code).name}"
        return f"exit status {self.code}"


def run_in_child(work: Callable[[], bytes], seconds: float) -> Ending:
    """Run `work` in a forked child and return its bytes; at the deadline the child is killed.

    The child leaves by os._exit, so no destructor of the driver can turn its result over. Whatever
    processes it started end with it.
    """
    reader, writer = os.pipe()

    def send() -> None:
        _write(writer, work())

    pid = _fork(send, reader)
    os.close(writer)
    pidfd = os.pidfd_open(pid)
    try:
        payload, timed_out = _read(reader, pidfd, time.monotonic() + seconds)
    finally:
        _end_group(pid)
        os.close(pidfd)
        os.close(reader)
        _, status = os.waitpid(pid, 0)
    return Ending(os.waitstatus_to_exitcode(status), payload, timed_out)


class Answerer:
    """A forked child that answers one question after another, until it dies or is late.

    Of one thread. It lives until end().
    """

    _SIZE = struct.Struct("<I")

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        """Fork; `answer` is called there, and may not raise."""
        questions, self._questions = os.pipe()
        self._answers, answers = os.pipe()

        def serve() -> None:
            while question := self._receive(questions):
                answered = answer(question)
                _write(answers, self._SIZE.pack(len(answered)) + answered)

        self._pid = _fork(serve, self._questions, self._answers)
        os.close(questions)
        os.close(answers)

    def ask(self, question: bytes, seconds: float) -> bytes | None:
        """The answer; None if there is none in time, and then there is no other: end it."""
        deadline = time.monotonic() + seconds
        try:
            _write(self._questions, self._SIZE.pack(len(question)) + question)
        except BrokenPipeError:
            return None
        return self._receive(self._answers, deadline)

    def end(self) -> None:
        """Kill it, with what it started."""
        _end_group(self._pid)
        os.waitpid(self._pid, 0)
        os.close(self._questions)
        os.close(self._answers)

    def _receive(self, channel: int, deadline: float | None = None) -> bytes | None:
        header = self._take(channel, self._SIZE.size, deadline)
        if header is None:
            return None
        (size,) = self._SIZE.unpack(header)
        return self._take(channel, size, deadline)

    @staticmethod
    def _take(channel: int, size: int, deadline: float | None) -> bytes | None:
        """So many bytes; None if the other side closed before, or is late."""
        taken = b""
        while len(taken) < size:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([channel], [], [], left)
            chunk = os.read(channel, size - len(taken)) if ready else b""
            if not chunk:
                return None
            taken += chunk
        return taken


def _fork(work: Callable[[], None], *parents: int) -> int:
    """Fork a child that does `work`, without the descriptors that are its parent's."""
    sys.stdout.flush()  # or the child would print what is buffered a second time
    with warnings.catch_warnings():  # Python 3.12 warns of forking beside the driver's threads
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        for descriptor in parents:
            os.close(descriptor)
        _be_child(work)
    return pid


def _write(channel: int, data: bytes) -> None:
    while data:
        data = data[os.write(channel, data) :]


def _be_child(work: Callable[[], None]) -> NoReturn:
    code = FAILED
    try:
        os.setpgid(0, 0)  # the group is what a deadline kills
        # A child of this child has its own group, and must end with this one.
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _read(reader: int, pidfd: int, deadline: float) -> tuple[bytes, bool]:
    """What the child writes until it ends, and whether the deadline came first.

    The pipe's end of file is not waited for: a grandchild may hold the pipe open.
    """
    payload = b""
    while True:
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([reader, pidfd], [], [], left)
        chunk = os.read(reader, 1 << 16) if reader in ready else b""
        payload += chunk
        if pidfd in ready and not chunk:
            return payload, False
        if not ready:
            return payload, True


def _end_group(pid: int) -> None:
    # No group: the child ended before it made one, or every member has ended.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
