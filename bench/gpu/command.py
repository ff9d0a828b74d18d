# SPDX-License-Identifier: BSD-3-Clause
"""One program of a step: its output goes to a log; at its deadline it ends with all it began."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# After SIGINT a program may still write what it has; then it is killed.
GRACE = 8.0
POLL = 0.2
TAIL = 15


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    code: int
    timed_out: bool
    seconds: float
    log: Path

    def why(self) -> str:
        """In words, with the end of what it printed."""
        if self.timed_out:
            how = f"no end within {self.seconds:.0f} s"
        elif self.code < 0:
            how = signal.Signals(-self.code).name
        else:
            how = f"exit status {self.code}"
        last = self.tail()
        return f"{how}; {self.log.name} ends with: {last}" if last else how

    def tail(self) -> str:
        """The last lines of the log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines[-TAIL:] if line.strip())


def run(
    command: Sequence[str | Path],
    log: Path,
    seconds: float,
    environment: Mapping[str, str],
    folder: Path,
    tick: Callable[[], None] = lambda: None,
) -> Ended:
    """Run `command` for at most `seconds`; `tick` is called every now and then meanwhile."""
    begin = time.monotonic()
    with log.open("ab") as output:
        output.write(f"$ {' '.join(map(str, command))}\n".encode())
        output.flush()
        try:
            child = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            output.write(f"{error}\n".encode())
            return Ended(127, False, 0.0, log)
        try:
            timed_out = not _wait(child, begin + seconds, tick)
            if timed_out:
                _signal(child, signal.SIGINT)
                _wait(child, time.monotonic() + GRACE, tick)
        finally:
            # Also what outlived a program that ended by itself, and all when we are interrupted.
            _signal(child, signal.SIGKILL)
            child.wait()
    return Ended(child.returncode, timed_out, time.monotonic() - begin, log)


def _wait(child: subprocess.Popen[bytes], until: float, tick: Callable[[], None]) -> bool:
    while child.poll() is None:
        if time.monotonic() > until:
            return False
        tick()
        time.sleep(POLL)
    return True


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)
