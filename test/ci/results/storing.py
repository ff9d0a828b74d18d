# SPDX-License-Identifier: BSD-3-Clause
"""Stores for tests: what to add, what is in them, and processes that are killed on the way."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dashboard_sample
import synthetic

from torch_backend_ci.results import duck
from torch_backend_ci.results.add import Told, add
from torch_backend_ci.results.compact import compact
from torch_backend_ci.results.store import Store

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
#: The calls that change something on disk.
CALLS: tuple[tuple[Any, str], ...] = (
    (os, "replace"),
    (os, "fsync"),
    (os, "mkdir"),
    (os, "unlink"),
    (duck, "copy"),
)

NIGHTS = ("10-30", "10-31", "11-10", "11-11", "11-12")
Relations = tuple[list[Any], list[Any]]


def reports(folder: Path, count: int, **changes: Any) -> list[Path]:
    """Files of valid reports of a night each, of two months."""
    nights = [f"2026-{night}T01:00:00+00:00" for night in NIGHTS[:count]]
    made = {
        f"r{seed}": dashboard_sample.report(started=started, seed=seed, **changes)
        for seed, started in enumerate(nights)
    }
    return dashboard_sample.write(folder, made)


def file(path: Path, content: Any) -> Path:
    """A report as a file."""
    return synthetic.write(path, content)


def added(store: Path, files: Iterable[Path], now: datetime = NOW) -> list[Told]:
    """What became of each file."""
    return list(add(store, files, now))


def fates(told: Iterable[Told]) -> list[str]:
    """What became of them, in a word each."""
    return [one.fate.value for one in told]


def compacted(store: Path, keep_days: int | None = None) -> list[Any]:
    """What a compaction says it did."""
    return list(compact(Store(store), keep_days))


def relations(store: Path) -> Relations:
    """All there is to be read, sorted."""
    return Store(store).read(
        lambda database: (
            database.execute("SELECT * FROM runs ORDER BY id").fetchall(),
            database.execute("SELECT * FROM results ORDER BY run, check_id").fetchall(),
        )
    )


class Moment(str, Enum):
    """When a process is killed. After a call is before the next one."""

    BEFORE = "before a call"
    AMID = "half of a file is written"


def killed(work: Callable[[], object], point: int, moment: Moment) -> bool:
    """Run it in a process that is killed at one of its calls; whether it came to it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _run(work, point, moment)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _run(work: Callable[[], object], point: int, moment: Moment) -> None:
    calls = itertools.count(1)
    status = 1
    try:
        for module, name in CALLS if moment is Moment.BEFORE else CALLS[-1:]:
            original = getattr(module, name)
            patch.object(module, name, _deadly(original, calls, point, moment)).start()
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _deadly(
    original: Callable[..., Any], calls: Iterator[int], point: int, moment: Moment
) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if next(calls) != point:
            return original(*args)
        if moment is Moment.AMID:
            original(*args)
            os.truncate(args[-1], os.stat(args[-1]).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("alive")

    return call
