# SPDX-License-Identifier: BSD-3-Clause
"""How processes that used the device end: exit status, signal and output of short programs.

A fresh interpreter costs seconds, most of it importing torch. Where the backend can be forked
before its first use, one fresh interpreter loads it, touches nothing, and forks a child for each
program. The child runs the program and leaves as any script does, through the interpreter's own
shutdown; each program still meets an unused device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device

#: Seconds after which a program that hangs is ended by SIGALRM.
LIMIT = 60

_NURSERY = """
import json, os, signal, sys, tempfile
ended = {}
for name, program in json.loads(sys.argv[1]).items():
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            signal.alarm(LIMIT)
            exec(compile(program, name, "exec"), {"__name__": "__main__"})
            sys.exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        ended[name] = status, output.read().decode(errors="replace")
print("ENDED" + json.dumps(ended), end="")
"""


class Ended(NamedTuple):
    """The end of a program: exit status (a negative signal number) and what it wrote."""

    status: int
    output: str

    def verify(self, status: int = 0) -> None:
        """Fail unless the program ended with `status`."""
        how = f"killed by signal {-self.status}" if self.status < 0 else f"status {self.status}"
        assert self.status == status, f"ended with {how}: {self.output[-2000:]}"


_known: dict[tuple[str, str], dict[str, Ended]] = {}


def ends(dev: Device, programs: Mapping[str, str]) -> dict[str, Ended]:
    """How each of `programs` ends, by name; they see torch as `torch` and the device type as `D`.

    Asked again for the same programs, a process answers from memory.
    """
    key = dev.type, json.dumps(programs)
    if key not in _known:
        start = f"import torch\nD = {dev.type!r}\n"
        full = {name: start + program for name, program in programs.items()}
        _known[key] = _forked(dev, full) if dev.has("fork") else _fresh(dev, full)
    return _known[key]


def _forked(dev: Device, programs: Mapping[str, str]) -> dict[str, Ended]:
    nursery = _NURSERY.replace("LIMIT", str(LIMIT))
    done = dev.python(nursery, args=[json.dumps(programs)], timeout=LIMIT * (1 + len(programs)))
    assert done.returncode == 0, done.stderr[-2000:]
    ended = json.loads(done.stdout.rpartition("ENDED")[2])
    return {name: Ended(*end) for name, end in ended.items()}


def _fresh(dev: Device, programs: Mapping[str, str]) -> dict[str, Ended]:
    done = {name: dev.python(program) for name, program in programs.items()}
    return {name: Ended(end.returncode, end.stdout + end.stderr) for name, end in done.items()}
