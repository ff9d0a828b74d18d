# SPDX-License-Identifier: BSD-3-Clause
"""Forked children with a deadline: a driver that crashes or hangs spoils one test, not the run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass

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
    sys.stdout.flush()  # or the child would print what is buffered a second time
    with warnings.catch_warnings():  # Python 3.12 warns of forking beside the driver's threads
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        _be_child(work, writer)
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


def _be_child(work: Callable[[], bytes], writer: int) -> None:
    code = FAILED
    try:
        os.setpgid(0, 0)  # the group is what a deadline kills
        # A child of this child has its own group, and must end with this one.
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        payload = work()
        while payload:
            payload = payload[os.write(writer, payload) :]
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
