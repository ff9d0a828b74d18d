# SPDX-License-Identifier: BSD-3-Clause
"""The pool: keeps workers busy, books every death on the check that caused it, and goes on.

The rules: one worker loads the backend before others are started; a worker runs a limited number of
checks, those of one file where it can (queue.py), and is replaced; a worker that dies or falls
silent loses its running check only, and a fresh one shows whether the device still works before
that result is believed.
"""

from __future__ import annotations

import gc
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch_conformance.authoring.check import Check
from torch_conformance.running import diagnosis
from torch_conformance.running.death import Death, innermost_frame, without_harness
from torch_conformance.running.diagnosis import DEADLINE, GUIDE, LIMIT, Diagnosis
from torch_conformance.running.process import Worker, ended
from torch_conformance.running.queue import Queue
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import Capabilities
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import CannotLoad, LoadProblem, Outcome
from torch_conformance.spec.reason import DeviceGone

# Checks a worker holds, so that it never waits for the runner.
PREFETCH = 3
# Longest sleep between two looks at the workers; short where the end of a process cannot wake us.
LONG_POLL, SHORT_POLL = 1.0, 0.02
# Workers that may die in a row between checks before the rest is given up.
IDLE_DEATHS = 3

Emit = Callable[[Result], None]
Cause = tuple[str, str | None]


@dataclass(frozen=True)
class Casualty:
    """A check in which a worker died."""

    result: Result
    death: Death


class Settings(Protocol):
    """The part of the run's options that concerns the pool."""

    @property
    def workers(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def diagnose(self) -> bool: ...


class Pool:
    """Runs checks in worker processes against one backend."""

    def __init__(self, descriptor: Descriptor, settings: Settings) -> None:
        self._descriptor = descriptor
        self._settings = settings
        self._limit = settings.workers
        self._workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()
        self._capabilities = Capabilities()
        self._queue = Queue()
        self._solo: deque[Check] = deque()
        # Those that fill a device: at the end, while no other check runs that might need it.
        self._filling: deque[Check] = deque()
        # Like _solo, but before everything else.
        self._urgent: deque[Check] = deque()
        # Results of deaths, held back until a fresh worker tells whether the device is still there.
        self._suspects: list[Casualty] = []
        # Crashes that wait for the diagnosis of their cause, what is known of causes, and the cause
        # for which a check is run once more.
        self._undiagnosed: dict[Cause, list[Casualty]] = {}
        self._diagnoses: dict[Cause, Diagnosis | None] = {}
        self._diagnosing: dict[str, Cause] = {}
        self._checks: dict[str, Check] = {}
        self._loaded_once = False
        self._healthy_at_first = False
        self._idle_deaths = 0
        self._lost: str | None = None
        #: What the first worker found under test: driver and devices (see identity.py).
        self.identity: dict[str, Any] = {}
        # Workers never free what the parent has by now: spare them the copies of its pages.
        gc.collect()
        gc.freeze()

    def set_capabilities(self, capabilities: Capabilities) -> None:
        """Capabilities available to all subsequent checks."""
        self._capabilities = capabilities
        for worker in self._workers:
            self._tell_capabilities(worker)

    def _tell_capabilities(self, worker: Worker) -> None:
        known = self._capabilities
        worker.send(capabilities=sorted(known.present), broken=dict(known.broken))

    def run(self, checks: Iterable[Check], emit: Emit) -> None:
        """Run the checks; results come as they are ready. Raises CannotLoad."""
        for check in checks:
            self._checks[check.id] = check
            self._line(check).append(check)
        if self._lost:
            self._give_up(emit)
        while self._waiting() or self._suspects or self._busy():
            self._staff()
            for worker in self._workers:
                self._feed(worker)
            self._wait()
            for worker in list(self._workers):
                if worker in self._workers:  # Losing the device ends all of them.
                    self._attend(worker, emit)

    def _line(self, check: Check) -> Queue | deque[Check]:
        """Where a check waits."""
        if check.fills_device:
            return self._filling
        return self._solo if check.isolate else self._queue

    def _waiting(self) -> bool:
        return any((self._queue, self._solo, self._filling, self._urgent))

    def run_next(self, check: Check) -> None:
        """From within `emit`: run this one in a process of its own, before all that waits.

        One that fills a device still waits until it can run alone.
        """
        (self._filling if check.fills_device else self._urgent).append(check)

    def close(self) -> None:
        """End every worker; a descriptor's teardown gets the time to run."""
        if self._descriptor.device.teardown:
            for worker in self._workers:
                worker.dismiss()
            for worker in self._workers:
                worker.wait()
        for worker in list(self._workers):
            self._remove(worker)
        self._selector.close()
        gc.unfreeze()

    # Starting and feeding workers

    def _busy(self) -> bool:
        # A check that has a worker of its own is sent to it when that has loaded the backend.
        return any(w.outstanding or (w.solo and not w.sent) for w in self._workers)

    def _staff(self) -> None:
        """Start the workers that the work needs and the limit allows."""
        if self._suspects or not self._loaded_once:
            if self._descriptor.single_process and self._workers:
                return
            if not any(worker.probes_health and not worker.loaded for worker in self._workers):
                self._start(self._settings.chunk, health=True)
            return
        alone = self._urgent or (self._solo if not self._queue else None)
        if alone:
            self._make_room()
        if self._filling and not (self._queue or alone):
            self._leave_one()
            return
        while not self._urgent and len(self._queue) > self._free_hands() and self._room():
            self._start(self._settings.chunk)
        while alone and self._room():
            self._start(1, solo=alone.popleft())

    def _room(self) -> bool:
        """Whether one more worker is within the limit; those with nothing left do not count."""
        if self._descriptor.single_process:
            return not self._workers
        return sum(1 for w in self._workers if w.outstanding or not w.leaving) < self._limit

    def _free_hands(self) -> int:
        """Workers that have nothing to run and will take from the queue."""
        return sum(1 for w in self._workers if not (w.outstanding or w.leaving or w.solo))

    def _idle(self) -> list[Worker]:
        """Workers that wait for another check."""
        return [w for w in self._workers if w.loaded and not (w.outstanding or w.leaving or w.solo)]

    def _make_room(self) -> None:
        """Checks that need a fresh process wait for idle workers to leave."""
        for worker in self._idle():
            worker.dismiss()

    def _leave_one(self) -> None:
        """For a check that fills a device: one worker may stay, and only it may use the device."""
        for worker in self._idle()[0 if self._filling[0].isolate else 1 :]:
            worker.dismiss()
        if self._workers:
            return
        if self._filling[0].isolate:
            self._start(1, solo=self._filling.popleft())
        else:
            self._start(self._settings.chunk)

    def _start(self, budget: int, health: bool = False, solo: Check | None = None) -> None:
        worker = Worker(
            self._descriptor,
            self._settings.seed,
            budget,
            health,
            solo,
            solo is not None and solo.id in self._diagnosing,
            self._workers,
        )
        self._tell_capabilities(worker)
        self._workers.append(worker)
        self._selector.register(worker.results, selectors.EVENT_READ)
        if worker.pidfd is not None:
            self._selector.register(worker.pidfd, selectors.EVENT_READ)

    def _feed(self, worker: Worker) -> None:
        if not worker.loaded or worker.leaving or worker.solo or self._urgent:
            return
        # Near the end of the queue nobody hoards what another could run.
        depth = PREFETCH if len(self._queue) > PREFETCH * self._limit else 1
        while self._queue and not worker.leaving and len(worker.outstanding) < depth:
            others = {w.file for w in self._workers if w is not worker and not w.leaving}
            worker.assign(self._queue.take(worker.file, others))
        idle = not (worker.outstanding or worker.leaving or self._suspects or self._solo)
        if self._filling and idle and self._workers == [worker] and not self._filling[0].isolate:
            worker.assign(self._filling.popleft())

    def _wait(self) -> None:
        """Sleep until a worker says something, ends, or runs out of time."""
        now = time.monotonic()
        deadlines = [w.deadline(self._descriptor) for w in self._workers]
        limit = LONG_POLL if all(w.pidfd is not None for w in self._workers) else SHORT_POLL
        timeout = min([limit, *(d - now for d in deadlines if d is not None)])
        self._selector.select(max(0.0, timeout))

    # Hearing from workers

    def _attend(self, worker: Worker, emit: Emit) -> None:
        # In this order: what an ended worker wrote is in the pipe by then.
        ended = worker.has_ended()
        for message in worker.messages():
            self._receive(worker, message, emit)
        if ended:
            self._bury(worker, emit)
            return
        if worker.closed:
            worker.kill()
        deadline = worker.deadline(self._descriptor)
        if deadline is not None and time.monotonic() > deadline:
            worker.kill_silent()

    def _receive(self, worker: Worker, message: dict[str, Any], emit: Emit) -> None:
        if worker.timed_out:
            return  # The request to tell where it hangs has woken it up: too late.
        if "result" in message:
            self._idle_deaths = 0
            worker.done += 1
            worker.answered = time.monotonic()
            if worker.diagnoses:
                self._settle(worker, None, emit)
                return
            emit(Result.from_json(message["result"]))
        elif "identity" in message:
            worker.brought_up = True
            self.identity = self.identity or message["identity"]
        elif "loaded" in message:
            worker.loaded = True
            if worker.probes_health:
                self._learn_health(message["healthy"], emit)
            if worker.solo:
                worker.assign(worker.solo)
        else:
            worker.failure = message.get("cannot_load") or message.get("broken")
            worker.problem = LoadProblem(message["problem"]) if message.get("problem") else None

    def _learn_health(self, healthy: bool, emit: Emit) -> None:
        if not self._loaded_once:
            self._loaded_once, self._healthy_at_first = True, healthy
        elif self._healthy_at_first and not healthy:
            self._lose("the smallest computation fails in a fresh process", emit)
            return
        suspects, self._suspects = self._suspects, []
        for casualty in suspects:
            self._believe(casualty, emit)

    # Causes of crashes

    def _believe(self, casualty: Casualty, emit: Emit) -> None:
        """Emit a death that is not a loss of the device, once its cause is known."""
        result, cause = casualty.result, casualty.death.cause
        if not (self._settings.diagnose and casualty.death.by_signal):
            emit(result)
        elif cause in self._diagnoses:
            emit(_diagnosed(casualty, self._diagnoses[cause]))
        elif cause in self._undiagnosed:
            self._undiagnosed[cause].append(casualty)
        elif len(self._diagnoses) + len(self._undiagnosed) < LIMIT:
            self._undiagnosed[cause] = [casualty]
            self._diagnosing[result.id] = cause
            check = self._checks[result.id]
            self.run_next(replace(check, isolate=True, deadline=DEADLINE))
        else:
            emit(result)

    def _settle(self, worker: Worker, diagnosis: Diagnosis | None, emit: Emit) -> None:
        """Emit the crashes of the cause that a worker was to find out."""
        assert worker.solo is not None
        cause = self._diagnosing.pop(worker.solo.id, None)
        if cause is None:
            return  # It has answered, and then ended.
        self._diagnoses[cause] = diagnosis
        for casualty in self._undiagnosed.pop(cause):
            emit(_diagnosed(casualty, diagnosis))

    def _stop_diagnosing(self, emit: Emit) -> None:
        """Emit all that waits for a diagnosis without one."""
        for queue in (self._urgent, self._filling):
            kept = [check for check in queue if check.id not in self._diagnosing]
            queue.clear()
            queue.extend(kept)
        for worker in [worker for worker in self._workers if worker.diagnoses]:
            self._remove(worker)
        waiting, self._undiagnosed = self._undiagnosed, {}
        self._diagnosing.clear()
        for casualties in waiting.values():
            for casualty in casualties:
                emit(casualty.result)

    # Deaths

    def _bury(self, worker: Worker, emit: Emit) -> None:
        running, outstanding = worker.running, worker.outstanding
        code, output = self._remove(worker), worker.output()
        if worker.diagnoses:
            self._settle(worker, diagnosis.read(worker.whole_output()), emit)
            return
        if worker.brought_up and not worker.loaded:
            self._learn_health(False, emit)
            return
        if not worker.loaded:
            self._loading_failed(worker, ended(code), output, emit)
            return
        if running is not None:
            self._suspects.append(self._casualty(worker, running, code, output))
            outstanding = outstanding[1:]
        elif outstanding:
            self._idle_deaths += 1
        for check in reversed(outstanding):
            self._line(check).appendleft(check)
        if self._idle_deaths >= IDLE_DEATHS:
            self._lose(worker.failure or f"workers end between checks: {ended(code)}", emit)

    def _casualty(self, worker: Worker, check: Check, code: int, output: str) -> Casualty:
        """The check in which a worker died or was killed."""
        limit = self._descriptor.deadlines.of(check.deadline)
        sample = worker.journal.current_sample
        death = Death(
            how=f"silent for {limit:g} s" if worker.timed_out else ended(code),
            by_signal=code < 0 and not worker.timed_out,
            sample=sample,
            frame=innermost_frame(output),
        )
        outcome = Outcome.TIMEOUT if worker.timed_out else Outcome.CRASH
        result = Result(check.id, outcome, str(death), output=without_harness(output))
        result.duration = worker.journal.silent_seconds
        if sample is not None and check.sample_repro:
            result.repro = check.sample_repro(self._descriptor, self._settings.seed, sample)
        return Casualty(result, death)

    def _loading_failed(self, worker: Worker, how: str, output: str, emit: Emit) -> None:
        reason = worker.failure or _loading_death(worker, how, output, self._descriptor)
        if not self._loaded_once:
            problem = worker.problem if worker.failure else _problem_of_death(worker)
            raise CannotLoad(reason, problem)
        if worker.solo:
            self._line(worker.solo).appendleft(worker.solo)
        if self._workers and not worker.probes_health:
            # It loads in the workers there are: go on with as many as the backend bears.
            self._limit = len(self._workers)
        else:
            self._lose(f"the backend does not load any more: {reason}", emit)

    def _lose(self, reason: str, emit: Emit) -> None:
        """The device is gone: book that on what ran when it went, and run nothing more."""
        self._stop_diagnosing(emit)
        suspects, self._suspects = self._suspects, []
        for result in (casualty.result for casualty in suspects):
            result.outcome = Outcome.DEVICE_LOST
            result.message = f"{result.message}; then {reason}"
            emit(result)
        self._lost = reason
        for worker in list(self._workers):
            for check in worker.outstanding:
                self._queue.append(check)
            self._remove(worker)
        self._give_up(emit)

    def _give_up(self, emit: Emit) -> None:
        for queue in (self._urgent, self._queue, self._solo, self._filling):
            checks = list(queue)
            queue.clear()
            for check in checks:
                reason = DeviceGone(text=str(self._lost))
                emit(Result(check.id, Outcome.NOT_RUN, reason=reason))

    def _remove(self, worker: Worker) -> int:
        self._workers.remove(worker)
        for fd in (worker.results, worker.pidfd):
            if fd is not None:
                self._selector.unregister(fd)
        return worker.reap()


def _diagnosed(casualty: Casualty, diagnosis: Diagnosis | None) -> Result:
    """A crash with what a second run of its cause says: the cause first, then where it was."""
    result, death = casualty.result, casualty.death
    if diagnosis is None:
        return result
    if diagnosis.operator or diagnosis.overflow:
        result.message = death.diagnosed(diagnosis.of(death.how))
    result.detail += f"{diagnosis.section()}\n{GUIDE}\n"
    return result


def _loading_death(worker: Worker, how: str, output: str, descriptor: Descriptor) -> str:
    if worker.timed_out:
        return f"did not load within {descriptor.deadlines.startup:g} s"
    # What the process itself said is above the stacks that faulthandler adds.
    said, _, _ = output.partition("Fatal Python error")
    last = next(reversed(said.strip().splitlines()), "")
    return f"{how} while loading" + (f"; it wrote: {last}" if last else "")


def _problem_of_death(worker: Worker) -> LoadProblem:
    return LoadProblem.TOO_SLOW if worker.timed_out else LoadProblem.DIED
