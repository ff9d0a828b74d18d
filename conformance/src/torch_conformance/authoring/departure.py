# SPDX-License-Identifier: BSD-3-Clause
"""How processes that used the device end: exit status, signal and output of short programs.

A fresh interpreter costs seconds, most of it importing torch. Where a child that is forked before
the first use of the device can use it, one fresh interpreter loads the backend, touches nothing,
and forks a child for each program. The child runs the program and leaves as any script does,
through the interpreter's own shutdown; each program still meets an unused device. A backend whose
import starts threads may hang in such a child, which says nothing about how processes end: each
program then has a fresh interpreter.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import subprocess

    from torch_conformance.authoring.device import Device
    from torch_conformance.spec.descriptor import Descriptor

_TRACEBACK = "Traceback (most recent call last)"
#: How much of what a process wrote is shown, in characters.
TAIL = 2000
#: Seconds after which a program that hangs is ended; its status is then that of SIGALRM.
LIMIT = 60
#: Seconds that the first forked child may take for the smallest use of the device.
PROBE_LIMIT = 20
#: The last line of a program of which nobody asks how it leaves, which takes long.
AT_ONCE = "import os; os._exit(0)\n"

#: The parent enforces the limits: a child may hang in a handler of the fork, before it runs a line.
_NURSERY = """
import json, os, signal, sys, tempfile, time
def run(program, name, limit):
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            exec(compile(program, name, "exec"), {"__name__": "__main__"})
            sys.exit(0)
        end, done = time.monotonic() + limit, (0, 0)
        while not done[0] and time.monotonic() < end:
            time.sleep(0.002)
            done = os.waitpid(child, os.WNOHANG)
        if not done[0]:
            os.kill(child, signal.SIGALRM)
            time.sleep(0.1)
            os.kill(child, signal.SIGKILL)
            done = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(done[1]), output.read().decode(errors="replace")
probe, programs = json.loads(sys.argv[1])
ended = None
if run(probe, "probe", PROBE_LIMIT)[0] == 0:
    ended = {name: run(program, name, LIMIT) for name, program in programs.items()}
print("ENDED" + json.dumps(ended), end="")
"""
#: It leaves at once: only whether a forked child can use the device is asked.
_PROBE = "import os\ntorch.zeros(2, device=D).cpu()\nos._exit(0)\n"


class Ended(NamedTuple):
    """The end of a program: exit status (a negative signal number) and what it wrote."""

    status: int
    output: str

    def verify(self, status: int = 0) -> None:
        """Fail unless the program ended with `status`."""
        assert self.status == status, _how(self.status, self.output)


def why_ended(done: subprocess.CompletedProcess[str]) -> str:
    """How a process ended, and below it the end of what it wrote to stderr."""
    return _how(done.returncode, done.stderr)


def _how(status: int, output: str) -> str:
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    # The interpreter ends with a positive status for an exception, and not with a signal.
    return f"ended with {how}\n{tail(output, of_exception=status > 0)}".rstrip()


def tail(output: str, of_exception: bool = True) -> str:
    """The last whole lines of what a process wrote.

    Of an exception that is longer than that with its traceback, the first lines of its message and
    the frames above: the last lines may be a list of all that PyTorch has registered.
    """
    last = output.rfind(_TRACEBACK)
    if of_exception and 0 <= last < len(output) - TAIL:
        frames, message = _parted(output[last:])
        message = message if len(message) <= TAIL else message[:TAIL].rpartition("\n")[0]
        return _last_lines(frames, TAIL - len(message)) + message
    return _last_lines(output, TAIL)


def _parted(traceback: str) -> tuple[str, str]:
    """The frames, and the exception: the first line behind them that is not indented."""
    heading = len(_TRACEBACK) + 2
    found = re.search(r"^[^\s]", traceback[heading:], re.MULTILINE)
    place = heading + found.start() if found else len(traceback)
    return traceback[:place], traceback[place:]


def _last_lines(text: str, room: int) -> str:
    """Whole lines: half a one is a new cause each time."""
    kept = text[max(0, len(text) - room) :]
    return kept if kept == text else kept.partition("\n")[2]


_known: dict[tuple[str, str], dict[str, Ended]] = {}


def ends(dev: Device, programs: Mapping[str, str]) -> dict[str, Ended]:
    """How each of `programs` ends, by name; they see torch as `torch` and the device type as `D`.

    Asked again for the same programs, a process answers from memory.
    """
    key = dev.type, json.dumps(programs)
    if key not in _known:
        start = f"import torch\nD = {str(dev.device())!r}\n"
        full = {name: start + program for name, program in programs.items()}
        forked = _forked(dev, start + _PROBE, full) if _may_fork(dev.descriptor) else None
        _known[key] = _fresh(dev, full) if forked is None else forked
    return _known[key]


def _may_fork(target: Descriptor) -> bool:
    """Whether the descriptor allows it; whether a child can use the device is then tried."""
    return target.start_method == "fork" and target.capabilities.get("fork", True)


def _forked(dev: Device, probe: str, programs: Mapping[str, str]) -> dict[str, Ended] | None:
    """How children of one process end; None if such a child cannot use the device."""
    nursery = _NURSERY.replace("PROBE_LIMIT", str(PROBE_LIMIT)).replace("LIMIT", str(LIMIT))
    try:
        done = dev.python(
            nursery,
            args=[json.dumps([probe, programs])],
            timeout=PROBE_LIMIT + LIMIT * (1 + len(programs)),
        )
    except AssertionError:
        return None
    ended = json.loads(done.stdout.rpartition("ENDED")[2] or "null")
    return ended and {name: Ended(*end) for name, end in ended.items()}


def _fresh(dev: Device, programs: Mapping[str, str]) -> dict[str, Ended]:
    return {name: _alone(dev, program) for name, program in programs.items()}


def _alone(dev: Device, program: str) -> Ended:
    try:
        end = dev.python(program, timeout=LIMIT)
    except AssertionError as error:
        return Ended(-signal.SIGALRM, str(error))
    return Ended(end.returncode, end.stdout + end.stderr)
