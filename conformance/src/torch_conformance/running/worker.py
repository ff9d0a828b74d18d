# SPDX-License-Identifier: BSD-3-Clause
"""The worker: a process that loads the backend and runs the checks that it receives.

Commands and results are JSON lines on pipes of their own, because backends print to stdout. A
worker never ends through the interpreter's shutdown: some backends abort there after everything
passed, which is a check of its own and not the fault of the last check.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from torch_conformance.authoring import backend
from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.authoring.journal import Journal
from torch_conformance.running import diagnosis, loading, probes
from torch_conformance.running.formatting import guard_assertions
from torch_conformance.spec import descriptor
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import BAD, CannotLoad

# The parts of a check's output that are kept for its failure: a C++ exception tells its reason at
# the beginning of what it prints, Python at the end.
OUTPUT_HEAD, OUTPUT_TAIL = 2000, 3000
# The bytes that are searched for a native stack.
OUTPUT_MOST = 4 << 20
DUMP_SIGNAL = signal.SIGUSR1
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Terms:
    """Start-up parameters of a worker; integers are file descriptors."""

    commands: int
    results: int
    journal: int
    output: int
    parent: int
    seed: int
    health: bool
    diagnose: bool

    def send(self, **message: Any) -> None:
        """Write one message to the runner."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.results, data) :]

    def received(self) -> Iterator[dict[str, Any]]:
        """Commands, until the runner closes its end."""
        with os.fdopen(self.commands, "rb") as pipe:
            for line in pipe:
                yield json.loads(line)


def serve(target: Descriptor, terms: Terms) -> NoReturn:
    """Be a worker: load the backend, run what comes, end the process."""
    status = 1
    try:
        _detach(target, terms)
        status = _serve(target, terms)
    except BaseException as error:
        try:
            terms.send(broken=f"{type(error).__name__}: {backend.first_line(error)}")
        except OSError:
            pass  # The runner is gone; there is nobody to tell.
    finally:
        os._exit(status)


def _serve(target: Descriptor, terms: Terms) -> int:
    from torch_conformance.authoring.device import Device
    from torch_conformance.running.execute import execute
    from torch_conformance.running.identity import identity

    guard_assertions()
    if terms.diagnose:
        diagnosis.install()
    journal = Journal(terms.journal)
    journal.process = os.getpid()
    try:
        dev = Device(target, loading.bring_up(target), seed=terms.seed)
    except CannotLoad as error:
        terms.send(cannot_load=str(error), problem=error.problem)
        return 1
    backend.settle_after_fork()
    dev.journal = journal
    if terms.health:
        # Sent first: the smallest computation may end the process, which is not a failure to load.
        terms.send(identity=identity(dev))
    terms.send(loaded=True, healthy=_healthy(dev) if terms.health else None)
    for command in terms.received():
        if "capabilities" in command:
            dev.capabilities = frozenset(command["capabilities"])
            dev.broken = command["broken"]
        elif "run" in command:
            begin = os.lseek(terms.output, 0, os.SEEK_END)
            journal.start(begin)
            result = execute(_find(command["run"], command["file"]), dev)
            if result.outcome in BAD:
                _flush()
                result.output = output_since(terms.output, begin)
            terms.send(result=result.to_json())
        else:
            break
    loading.tear_down(target)
    return 0


def _detach(target: Descriptor, terms: Terms) -> None:
    """A process group of its own, bound to the life of the runner, with output to a file."""
    if os.getpgid(0) == os.getpgid(terms.parent):
        os.setpgid(0, 0)  # A spawned worker is in the group of its launcher, which the runner ends.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if _runner_is_gone(terms):
        os._exit(1)  # It ended before the line above could bind us to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(terms.output, 1)
    os.dup2(terms.output, 2)
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    faulthandler.enable(sys.stderr)
    faulthandler.register(DUMP_SIGNAL, sys.stderr)
    if target.memory_limit_mb:
        import resource

        limit = target.memory_limit_mb << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _runner_is_gone(terms: Terms) -> bool:
    """Whether nobody holds the other end of the commands.

    The parent process does not tell: it is the launcher's, where the launcher forks.
    """
    commands = select.poll()
    commands.register(terms.commands, 0)  # POLLHUP comes unasked.
    return bool(commands.poll(0))


def _healthy(dev: Any) -> bool:
    """Whether the smallest computation works."""
    import torch

    try:
        return bool((torch.ones(2, device=dev.device()) + 1).cpu().tolist() == [2.0, 2.0])
    except BaseException:
        return False


def _find(id: str, file: str) -> Check:
    if id.startswith(probes.PREFIX):
        return probes.check_of(id.removeprefix(probes.PREFIX))
    if id not in REGISTRY:  # A forked worker has them from its parent.
        from torch_conformance.authoring.discovery import import_checks

        import_checks(Path(file))
    return REGISTRY[id]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # A check may have closed or replaced the stream.


def output_since(file: int, begin: int) -> str:
    """What was written to the output file since offset `begin`, the middle left out if long."""
    size = os.fstat(file).st_size - begin
    if size <= OUTPUT_HEAD + OUTPUT_TAIL:
        data = os.pread(file, max(size, 0), begin)
    else:
        tail = os.pread(file, OUTPUT_TAIL, begin + size - OUTPUT_TAIL)
        data = os.pread(file, OUTPUT_HEAD, begin) + b"\n[...]\n" + tail
    return data.decode(errors="replace").strip()


def whole_output(file: int, begin: int) -> str:
    """What was written to the output file since offset `begin`, all of it."""
    return os.pread(file, OUTPUT_MOST, begin).decode(errors="replace")


def main() -> NoReturn:
    """Entry of a worker that was started as a fresh interpreter."""
    from _pytest.assertion import install_importhook
    from _pytest.config import get_config

    config = json.loads(sys.argv[1])
    target = descriptor.decode(config["descriptor"])
    install_importhook(get_config()).mark_rewrite("torch_conformance.checks", "conformance_extra")
    os.environ[backend.AUTOLOAD] = "1" if target.autoload else "0"
    serve(target, Terms(**config["terms"]))


if __name__ == "__main__":
    main()
