# SPDX-License-Identifier: BSD-3-Clause
"""The runner's side of one worker: starting it, talking to it, and finding out how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from torch_conformance.authoring.backend import fresh_environment
from torch_conformance.authoring.check import Check
from torch_conformance.authoring.journal import Journal
from torch_conformance.running import loading
from torch_conformance.running.interruption import held_back
from torch_conformance.running.worker import DUMP_SIGNAL, Terms, output_since, serve, whole_output
from torch_conformance.spec.descriptor import Descriptor, encode
from torch_conformance.spec.outcome import LoadProblem

# Seconds a worker that has nothing left may take to end.
LEAVE_TIME = 10.0
# Most seconds a silent worker gets to write where it hangs, before it is killed, and how long it
# must have written nothing more: on a busy machine it may not run for a while.
DUMP_TIME, DUMP_PAUSE = 2.0, 0.1


class Worker:
    """A worker process, the checks sent to it, and how many of them it has answered."""

    def __init__(
        self,
        target: Descriptor,
        seed: int,
        budget: int,
        health: bool,
        solo: Check | None,
        diagnose: bool,
        siblings: Iterable[Worker],
    ) -> None:
        self.budget = budget
        self.probes_health = health
        self.solo = solo
        #: Whether `solo` runs to find out why it crashed, and has its result already.
        self.diagnoses = diagnose
        self.brought_up = False
        self.loaded = False
        self.leaving = False
        self.timed_out = False
        self.failure: str | None = None
        self.problem: LoadProblem | None = None
        self.sent: list[Check] = []
        self.done = 0
        self.launched = self.answered = time.monotonic()
        self.closed = False
        self.journal = Journal()
        self._buffer = b""
        self._output = tempfile.TemporaryFile()
        child_commands, self.commands = os.pipe()
        self.results, child_results = os.pipe()
        os.set_blocking(self.results, False)
        terms = Terms(
            child_commands,
            child_results,
            self.journal.fileno,
            self._output.fileno(),
            os.getpid(),
            seed,
            health,
            diagnose,
        )
        fresh = loading.needs_fresh_process(target)
        self.pid = _spawn(target, terms) if fresh else self._fork(target, terms, siblings)
        os.close(child_commands)
        os.close(child_results)
        self.pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None

    def _fork(self, target: Descriptor, terms: Terms, siblings: Iterable[Worker]) -> int:
        # Under xdist there is one other thread, execnet's. It runs Python code only, and the child
        # uses none of its locks; torch has no threads here (prepare_parent).
        with warnings.catch_warnings(), held_back(signal.SIGINT, signal.SIGTERM):
            warnings.filterwarnings(
                "ignore", message=".*multi-threaded", category=DeprecationWarning
            )
            pid = os.fork()
            if not pid:
                # The ends of other pipes, kept here, would hide that their owners are gone.
                for worker in siblings:
                    os.close(worker.commands)
                    os.close(worker.results)
                os.close(self.commands)
                os.close(self.results)
                serve(target, terms)  # It does not return: the process ends in it.
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # The child has done it already, or has ended.
        return pid

    # Talking

    def send(self, **command: Any) -> None:
        """Write one command; a worker that is gone is noticed by its end, not here."""
        try:
            os.write(self.commands, json.dumps(command).encode() + b"\n")
        except BrokenPipeError:
            pass

    def assign(self, check: Check) -> None:
        """Send a check; with the last one that the budget allows, the request to end."""
        if not self.outstanding:
            self.journal.beat()
        self.sent.append(check)
        self.budget -= 1
        self.send(run=check.id, file=check.file)
        if self.budget == 0:
            self.dismiss()

    def dismiss(self) -> None:
        """Ask the worker to end when it has run what it has."""
        if not self.leaving:
            self.leaving = True
            self.answered = time.monotonic()
            self.send(stop=True)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Messages that have arrived."""
        while True:
            try:
                data = os.read(self.results, 1 << 16)
            except BlockingIOError:
                return
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            yield from (json.loads(line) for line in lines)
            if not data:
                self.closed = True
                return

    @property
    def outstanding(self) -> list[Check]:
        """The checks sent and not answered; the first may be running."""
        return self.sent[self.done :]

    @property
    def file(self) -> str:
        """Where the last check sent is from; empty before the first."""
        return self.sent[-1].file if self.sent else ""

    @property
    def running(self) -> Check | None:
        """The check the worker has started and not answered."""
        return self.sent[self.done] if self.journal.started > self.done else None

    # The end

    def deadline(self, target: Descriptor) -> float | None:
        """The time.monotonic() at which the worker has been silent for too long."""
        if not self.loaded:
            return self.launched + target.deadlines.startup
        if not self.outstanding:
            return self.answered + LEAVE_TIME if self.leaving else None
        limit = target.deadlines.of(self.outstanding[0].deadline)
        return time.monotonic() - self.journal.silent_seconds + limit

    def kill_silent(self) -> None:
        """End a worker that ran out of time, after it wrote where it hangs."""
        self.timed_out = True
        # The signal may end the hang: then the worker must not begin what another one will run.
        self.journal.close()
        before = self._written()
        try:
            os.kill(self.journal.process or self.pid, DUMP_SIGNAL)
        except ProcessLookupError:
            return
        self._await_stack(before)
        self.kill()

    def _await_stack(self, before: int) -> None:
        """Give the worker DUMP_TIME, or until it has ended or its stack follows `before` bytes."""
        end = time.monotonic() + DUMP_TIME
        last = before
        while time.monotonic() < end:
            time.sleep(DUMP_PAUSE)
            now = self._written()
            if before < now == last or self.has_ended():
                return
            last = now

    def _written(self) -> int:
        """The bytes that the worker has written to its output."""
        return os.fstat(self._output.fileno()).st_size

    def kill(self) -> None:
        """End the worker and whatever it started, unless that left its process group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def wait(self) -> None:
        """Give the worker LEAVE_TIME to end."""
        end = time.monotonic() + LEAVE_TIME
        while not self.has_ended() and time.monotonic() < end:
            time.sleep(0.01)

    def has_ended(self) -> bool:
        """Whether the process has ended; it stays a zombie, which keeps its group's number."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, flags) is not None

    def reap(self) -> int:
        """End the group, release everything, and return the exit code, as `ended` takes it."""
        self.kill()
        _, status = os.waitpid(self.pid, 0)
        os.close(self.commands)
        os.close(self.results)
        if self.pidfd is not None:
            os.close(self.pidfd)
        return os.waitstatus_to_exitcode(status)

    def output(self) -> str:
        """The output of the running check; before the first one, that of loading."""
        return output_since(self._output.fileno(), self.journal.output_offset)

    def whole_output(self) -> str:
        """Like `output`, but nothing is left out."""
        return whole_output(self._output.fileno(), self.journal.output_offset)


def ended(code: int) -> str:
    """How a process with this exit code ended, in words."""
    return _signal_name(-code) if code < 0 else f"exited with status {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _spawn(target: Descriptor, terms: Terms) -> int:
    config = {"descriptor": encode(target), "terms": asdict(terms)}
    source = "from torch_conformance.running.worker import main; main()"
    command = [*target.launcher, sys.executable, "-c", source, json.dumps(config)]
    process = subprocess.Popen(
        command,
        env=fresh_environment(target),
        stdin=subprocess.DEVNULL,
        stdout=terms.output,
        stderr=terms.output,
        pass_fds=(terms.commands, terms.results, terms.journal, terms.output),
        start_new_session=True,
    )
    # waitpid is ours: Popen must not reap the process behind our back.
    process.returncode = 0
    return process.pid
