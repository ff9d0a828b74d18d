# SPDX-License-Identifier: BSD-3-Clause
"""The journal: memory a worker shares with its runner, so that its last word survives its death.

A write is a store to shared memory: no system call, so it is cheap enough for every sample, and
visible to the runner even when the writer is killed right after it.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from typing import BinaryIO

_SLOTS = 6
_STARTED, _SAMPLE, _BEAT, _OUTPUT, _CLOSED, _PROCESS = range(_SLOTS)


class Journal:
    """Which check a worker is in, which sample of it, since when, and where its output begins."""

    def __init__(self, file: BinaryIO | int | None = None) -> None:
        if file is None:
            file = tempfile.TemporaryFile()
            file.truncate(_SLOTS * 8)
        self._file = file
        self.fileno = file if isinstance(file, int) else file.fileno()
        self._slots = memoryview(mmap.mmap(self.fileno, _SLOTS * 8)).cast("q")
        self.beat()

    def start(self, output_offset: int = 0) -> None:
        """Worker: the next check starts now; its output begins at this offset of the file."""
        slots = self._writable()
        slots[_SAMPLE] = -1
        slots[_OUTPUT] = output_offset
        slots[_BEAT] = time.monotonic_ns()
        # Last: the runner reads the other slots as belonging to this check.
        slots[_STARTED] += 1

    def sample(self, index: int) -> None:
        """Worker: sample `index` of the running check starts now."""
        slots = self._writable()
        slots[_SAMPLE] = index
        slots[_BEAT] = time.monotonic_ns()

    def beat(self) -> None:
        """Restart the deadline's clock."""
        self._slots[_BEAT] = time.monotonic_ns()

    def close(self) -> None:
        """Runner: nothing after this counts; a worker that would begin something ends instead."""
        self._slots[_CLOSED] = 1

    def _writable(self) -> memoryview:
        if self._slots[_CLOSED]:
            os._exit(1)
        return self._slots

    @property
    def process(self) -> int:
        """The id of the worker's process, which a launcher may have forked; 0 at first."""
        return self._slots[_PROCESS]

    @process.setter
    def process(self, id: int) -> None:
        self._slots[_PROCESS] = id

    @property
    def started(self) -> int:
        """How many checks the worker has started."""
        return self._slots[_STARTED]

    @property
    def current_sample(self) -> int | None:
        """The sample last started in the running check, if it has samples."""
        index = self._slots[_SAMPLE]
        return None if index < 0 else index

    @property
    def silent_seconds(self) -> float:
        """Seconds since the worker last wrote."""
        return (time.monotonic_ns() - self._slots[_BEAT]) / 1e9

    @property
    def output_offset(self) -> int:
        """Where the output of the running check begins."""
        return self._slots[_OUTPUT]
