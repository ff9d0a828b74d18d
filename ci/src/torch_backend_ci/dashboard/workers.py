# SPDX-License-Identifier: BSD-3-Clause
"""Work for several processes. They are forked, so they have what their parent had in memory, and
they end with it, whatever ends it.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from torch_backend_ci.errors import CiError
from torch_backend_ci.output import say
from torch_conformance.running.interruption import held_back

T = TypeVar("T")
R = TypeVar("R")
INTERVAL = 5.0
"""Seconds between two lines of progress."""


class Workers:
    """So many processes at once; none is left behind. Not for several threads."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))

    def map(self, work: Callable[[T], R], tasks: Sequence[T], what: str) -> list[R]:
        """What `work` makes of each task, in the order of tasks; `what` names them to people.

        The first exception of any of them is raised, and the others are stopped.
        """
        global _work
        _work = work
        gc.freeze()  # a collection in each process would touch, and so copy, all of it
        context = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(min(self.jobs, len(tasks) or 1), context, _begin)
        try:
            with held_back(signal.SIGINT):  # the processes are forked by submit
                futures: list[Future[R]] = [pool.submit(_do, task) for task in tasks]
            _tell(futures, what)
            return [future.result() for future in futures]
        except BrokenProcessPool:
            raise CiError(
                "a process of the build was killed, probably for want of memory: "
                "give fewer --jobs or more memory"
            ) from None
        except BaseException:  # also Ctrl-C: nobody wants what is not done yet
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            gc.unfreeze()


def _tell(futures: Sequence[Future[R]], what: str) -> None:
    """Wait for all or an exception, and say how far they are every few seconds."""
    told = time.monotonic()
    for number, future in enumerate(as_completed(futures), 1):
        future.result()
        if time.monotonic() - told > INTERVAL:
            told = time.monotonic()
            say(f"{what}: {100 * number // len(futures)} %")


_work: Callable[[Any], Any] | None = None
"""What forked processes do: it need not be picklable."""


def _do(task: Any) -> Any:
    assert _work is not None
    try:
        return _work(task)
    finally:
        gc.collect()


def _begin() -> None:
    """In each process: leave Ctrl-C to the parent, and end when it has ended.

    Garbage is collected after each task: while hundreds of thousands of results are read, looking
    for it took two thirds of the time.
    """
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
